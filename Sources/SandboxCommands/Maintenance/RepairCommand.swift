internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl repair`: repairs a damaged repository.
struct RepairCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "repair",
      abstract: "Repair a damaged repository",
      discussion: """
        'sandboxctl check' lists the damage and the files it affects. Data in intact packs can be \
        restored regardless of other damage; a repair makes it fast to find again.

        \(Examples.text([
          "sandboxctl repair index --repo repo", "sandboxctl repair packs --repo repo",
          "sandboxctl repair snapshots --repo repo --dry-run",
        ]))
        """,
      subcommands: [Index.self, Packs.self, Snapshots.self])
  }
}

extension RepairCommand {
  /// `sandboxctl repair index`: rebuilds the index from the packs.
  struct Index: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "index",
        abstract: "Rebuild damaged or missing parts of the index",
        usage: "sandboxctl repair index [--dry-run] [<options>]",
        discussion: """
          Reads the tables, but not the data, of packs that no usable index object lists, and \
          writes an index object for them. Damaged index objects are then removed, unless a pack \
          that they may list cannot be read. Index objects of a later version of the program are \
          kept. Snapshots and packs are not changed.

          See sandboxctl-repair-index(1) for the JSON output and the exit statuses.

          \(Examples.text([
            "sandboxctl repair index --repo repo --dry-run", "sandboxctl repair index --repo repo",
          ]))
          """)
    }

    @OptionGroup var change: RepositoryChangeOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try change.repository.open(console).repository
      let report = try change.run { counters, isStopping in
        try IndexRepair(
          opened, isDry: change.dryRun, counters: counters, isStopping: isStopping
        ).run()
      }
      let status = console.warn(skipping: report.unreadable)
      _ = console.warn(skipping: report.kept)
      try change.output.show(
        [report.json(isDry: change.dryRun)], lines: report.lines(isDry: change.dryRun), console)
      return status
    }
  }
}

extension IndexRepair.Report {
  /// Returns the report as text.
  fileprivate func lines(isDry: Bool) -> [String] {
    if isIdle { return ["the index is intact: nothing to repair"] }
    var lines: [String] = []
    if packs > 0 {
      lines.append(
        "\(isDry ? "would index" : "indexed") \(Sizes.count(packs, "pack")) with "
          + Sizes.count(blobs, "blob"))
    }
    if !removed.isEmpty {
      lines.append(
        "\(isDry ? "would remove" : "removed") "
          + Sizes.count(removed.count, "damaged index object"))
    }
    if !kept.isEmpty {
      lines.append(
        "\(isDry ? "would keep" : "kept") \(Sizes.count(kept.count, "unusable index object"))")
    }
    if !unreadable.isEmpty {
      lines.append("\(Sizes.count(unreadable.count, "pack")) cannot be read")
    }
    return lines
  }

  /// Returns the report as `repair index --json` prints it.
  fileprivate func json(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry), "packs": .integer(Int64(packs)), "blobs": .integer(Int64(blobs)),
      "written": .array(written.map { .string($0.hex) }),
      "removed": .array(removed.map { .string($0.hex) }),
      "kept": .integer(Int64(kept.count)), "unreadable": .integer(Int64(unreadable.count)),
    ]
  }
}

extension RepairCommand {
  /// `sandboxctl repair packs`: stores the intact data of damaged packs again.
  struct Packs: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "packs",
        abstract: "Save the intact data of damaged packs and remove them from the index",
        usage: "sandboxctl repair packs [--dry-run] [<options>]",
        discussion: """
          Reads the packs that 'sandboxctl check' recorded as damaged, and those whose size \
          differs from the index, and stores their intact data again. The packs then move to the \
          directory 'damaged' of the repository, and the index no longer lists them, nor missing \
          packs. Nothing is deleted. Snapshots are not changed: 'sandboxctl check' lists what they \
          lost, and the next backup stores it again if the source still has it.

          See sandboxctl-repair-packs(1) for the JSON output and the exit statuses.

          \(Examples.text([
            "sandboxctl check --read-data --repo repo",
            "sandboxctl repair packs --repo repo --dry-run",
            "sandboxctl repair packs --repo repo",
          ]))
          """)
    }

    @OptionGroup var change: RepositoryChangeOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try change.repository.open(console).repository
      let report = try change.run { counters, isStopping in
        try PackRepair(
          opened, isDry: change.dryRun, counters: counters, isStopping: isStopping
        ).run()
      }
      try change.output.show(
        [report.json(isDry: change.dryRun)], lines: report.lines(isDry: change.dryRun), console)
      console.warn(of: report.damagedCondemned)
      hint(report, console)
      return report.lostBlobs == 0 ? .done : .damaged
    }

    private func hint(_ report: PackRepair.Report, _ console: Console) {
      if report.isIdle, report.isUnchecked {
        console.hint(
          "'sandboxctl check --read-data\(change.repository.suffix)' finds damaged packs")
      } else if report.lostBlobs > 0 {
        console.hint(
          "the next backup stores lost data again if the source still has it; "
            + "'sandboxctl check\(change.repository.suffix)' lists the affected files")
      }
    }
  }
}

extension PackRepair.Report {
  /// Returns the report as text: a line for each pack, and totals.
  fileprivate func lines(isDry: Bool) -> [String] {
    if isIdle { return ["no pack is damaged or missing: nothing to repair"] }
    let saved = packs.reduce(0) { $0 + $1.savedBlobs }
    let bytes = packs.map(\.savedBytes).clampedSum
    let moved = packs.count { $0.state == .damaged }
    var lines = packs.map { pack in
      let found =
        pack.state == .whole
        ? "intact again"
        : "\(pack.state), \(Sizes.count(pack.savedBlobs, "blob")) saved, \(pack.lostBlobs) lost"
      return "pack \(pack.id.hex.prefix(8)): \(found)"
    }
    lines.append(
      "\(isDry ? "would store" : "stored") \(Sizes.count(saved, "blob")) (\(Sizes.text(bytes))) "
        + "again, \(Sizes.count(lostBlobs, "blob")) lost")
    if moved > 0 {
      lines.append(
        "\(isDry ? "would move" : "moved") \(Sizes.count(moved, "damaged pack")) to the directory "
          + "'damaged' of the repository")
    }
    return lines
  }

  /// Returns the report as `repair packs --json` prints it.
  fileprivate func json(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry),
      "packs": .array(
        packs.map { pack in
          [
            "id": .string(pack.id.hex), "state": .string(pack.state.rawValue),
            "saved_blobs": .integer(Int64(pack.savedBlobs)),
            "saved_bytes": .integer(Int64(clamping: pack.savedBytes)),
            "lost_blobs": .integer(Int64(pack.lostBlobs)),
          ]
        }),
      "indexes_rewritten": .integer(Int64(indexes)),
    ]
  }
}

extension RepairCommand {
  /// `sandboxctl repair snapshots`: writes snapshots again without the lost data.
  struct Snapshots: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "snapshots",
        abstract: "Rewrite damaged snapshots without the lost data",
        usage: "sandboxctl repair snapshots [<snap> ...] [--forget] [--dry-run] [<options>]",
        discussion: """
          For each snapshot that has lost content, or each such one among the given snapshots, \
          writes a new snapshot with everything else and the same time, tags and pin, which lists \
          what is lost. Only 'sandboxctl check --read-data' finds damaged data: run it first, then \
          'sandboxctl repair packs', which saves what it can. The old snapshots are kept unless \
          --forget is given.

          See sandboxctl-repair-snapshots(1) for the JSON output and the exit statuses.

          \(Examples.text([
            "sandboxctl repair snapshots --repo repo --dry-run",
            "sandboxctl repair snapshots --repo repo --forget",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp("The snapshots to repair (default: all).", valueName: "snap"))
    var snapshots: [String] = []

    @Flag(help: "Remove each old snapshot after the new one is durable.")
    var forget = false

    @OptionGroup var list: ListOptions
    @OptionGroup var change: RepositoryChangeOptions

    static var precedence: [OptionPrecedence] {
      OptionPrecedence.target(["repo"], dropping: ["forget"])
    }

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try change.repository.open(console).repository
      let ids = try opened.snapshots(named: snapshots, console)
      let report = try change.run { counters, isStopping in
        try SnapshotRepair(
          opened, of: ids, isDry: change.dryRun, isForgetting: forget, workers: opened.workers,
          counters: counters, isStopping: isStopping
        ).run { try show($0, console) }
      }
      try summarize(report, console)
      console.warn(of: report.damagedCondemned)
      let status = console.warn(skipping: report.unreadable)
      hint(report, console)
      return report.repaired == 0 && report.lost == 0 ? status : .damaged
    }

    private func show(_ repaired: SnapshotRepair.Repaired, _ console: Console) throws {
      if change.output.json { return try console.result(repaired.json(isDry: change.dryRun)) }
      if change.output.quiet { return }
      let losses = Sizes.count(repaired.losses, "lost path")
      let new =
        repaired.isLost
        ? ", nothing is left"
        : repaired.new.map { ", written again as \($0.id.hex.prefix(8))" } ?? ""
      let removed = repaired.isRemoved ? ", removed" : ""
      try console.result("snapshot \(repaired.old.id.hex.prefix(8)): \(losses)\(new)\(removed)")
      try console.list(ListExcerpt(repaired.lost, all: list.all), after: "  ") { note in
        (note.path.isEmpty ? "" : "\(note.path): ") + note.note
      }
    }

    private func summarize(_ report: SnapshotRepair.Report, _ console: Console) throws {
      try change.output.show(
        [report.json(isDry: change.dryRun)], lines: [report.line(isDry: change.dryRun)], console)
    }

    private func hint(_ report: SnapshotRepair.Report, _ console: Console) {
      if report.unreadable.contains(where: { $0.kind == .damaged && !$0.isRefused }) {
        console.hint(
          "restore damaged snapshots from a copy, or remove them with "
            + "'sandboxctl forget --force ID\(change.repository.suffix)'")
      } else if report.isIdle, report.isUnchecked {
        console.hint("'sandboxctl check --read-data\(change.repository.suffix)' finds damaged data")
      } else if report.lostThatStay > 0, !change.dryRun {
        let suffix = change.repository.suffix
        let unpin =
          report.lostThatArePinned > 0 ? "'sandboxctl snapshots unpin ID\(suffix)' and " : ""
        console.hint(
          "a prune is refused as long as there is a snapshot of which nothing is left: copy what it "
            + "lost from another repository, or remove it with \(unpin)"
            + "'sandboxctl forget --force ID\(suffix)'")
      } else if report.repaired > 0, !change.dryRun {
        console.hint("the next backup stores what is lost again if the source still has it")
      }
    }
  }
}

extension SnapshotRepair.Repaired {
  /// Returns a snapshot as `repair snapshots --json` prints it.
  fileprivate func json(isDry: Bool) -> JSON {
    var members = [JSON.Member("id", .string(old.id.hex))]
    if let new { members.append(JSON.Member("new", .string(new.id.hex))) }
    members += [
      JSON.Member("dry_run", .bool(isDry)), JSON.Member("removed", .bool(isRemoved)),
      JSON.Member("pinned", .bool(isPinned)), JSON.Member("nothing_left", .bool(isLost)),
      JSON.Member("losses", .integer(Int64(losses))), JSON.Member("lost", lost.json),
    ]
    return .object(members)
  }
}

extension [PathNote] {
  /// The notes as JSON.
  var json: JSON {
    .array(map { .object(JSON.path($0.path) + [JSON.Member("note", .string($0.note))]) })
  }
}

extension SnapshotRepair.Report {
  /// Returns the report as text.
  fileprivate func line(isDry: Bool) -> String {
    let all = Sizes.count(snapshots, "snapshot")
    if repaired == 0, lost == 0 {
      return "\(all) checked, nothing is lost: nothing to repair"
    }
    let nothing = lost > 0 ? ", nothing is left of \(Sizes.count(lost))" : ""
    let removed = removed > 0 ? ", removed \(Sizes.count(removed, "old one"))" : ""
    return
      "\(isDry ? "would repair" : "repaired") \(Sizes.count(repaired)) of \(all)\(nothing)\(removed)"
  }

  /// Returns the last line of `repair snapshots --json`.
  fileprivate func json(isDry: Bool) -> JSON {
    [
      "summary": [
        "dry_run": .bool(isDry), "snapshots": .integer(Int64(snapshots)),
        "repaired": .integer(Int64(repaired)), "lost": .integer(Int64(lost)),
        "removed": .integer(Int64(removed)),
        "unreadable": .integer(Int64(unreadable.count)),
      ]
    ]
  }
}
