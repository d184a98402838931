internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

extension RepairCommand {
  /// `sandboxctl repair snapshots`: writes snapshots again without what is lost.
  struct Snapshots: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "snapshots",
        abstract: "Write damaged snapshots again without what is lost",
        usage: "sandboxctl repair snapshots [<snap> ...] [--forget] [--dry-run] [<options>]",
        discussion: """
          For each snapshot with content that cannot be restored, or each named one, writes a new \
          snapshot with everything else, of the same time, tags and pin, which names what is lost. \
          Damage to data is found only by 'sandboxctl check --read-data': run it before, and \
          'sandboxctl repair packs', which saves what it can. The old snapshots stay without \
          --forget.

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

    @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
    var dryRun = false

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try repository.open().repository
      let ids = try named(opened, console)
      let counters = ProgressCounters()
      let report = try progress.run(counters, output) { isStopping in
        try SnapshotRepair(
          opened, of: ids, isDry: dryRun, isForgetting: forget, workers: Host.processors,
          counters: counters, isStopping: isStopping
        ).run { try show($0, console) }
      }
      try summarize(report, console)
      console.warn(of: report.damagedCondemned)
      for error in report.unreadable { console.warning(error.description) }
      hint(report, console)
      return report.isIdle ? .done : .damaged
    }

    /// Returns the named snapshots; nil for all.
    private func named(_ opened: Repository, _ console: Console) throws -> Set<SnapshotID>? {
      if snapshots.isEmpty { return nil }
      let finder = SnapshotFinder(opened, console)
      return Set(try snapshots.map { try finder.find(SnapshotName($0)).id })
    }

    private func show(_ repaired: SnapshotRepair.Repaired, _ console: Console) throws {
      if output.json { return try console.result(repaired.json(isDry: dryRun)) }
      if output.quiet { return }
      let losses = Sizes.count(repaired.losses, "lost path")
      let new = repaired.new.map { ", written again as \($0.id.hex.prefix(8))" } ?? ""
      let removed = repaired.isRemoved ? ", removed" : ""
      try console.result("snapshot \(repaired.old.id.hex.prefix(8)): \(losses)\(new)\(removed)")
      try console.list(ListExcerpt(repaired.lost, all: list.all), after: "  ") { note in
        (note.path.isEmpty ? "" : "\(note.path): ") + note.note
      }
    }

    private func summarize(_ report: SnapshotRepair.Report, _ console: Console) throws {
      if output.json { return try console.result(report.json(isDry: dryRun)) }
      if output.quiet { return }
      let all = Sizes.count(report.snapshots, "snapshot")
      if report.repaired == 0 {
        return try console.result("\(all) checked, nothing is lost: nothing to repair")
      }
      let removed = report.removed > 0 ? ", removed \(Sizes.count(report.removed)) old ones" : ""
      try console.result(
        "\(dryRun ? "would repair" : "repaired") \(Sizes.count(report.repaired)) of \(all)\(removed)"
      )
    }

    private func hint(_ report: SnapshotRepair.Report, _ console: Console) {
      if report.unreadable.contains(where: { $0.kind == .damaged }) {
        console.hint(
          "restore damaged snapshots from a copy, or remove them with "
            + "'sandboxctl forget --force ID\(repository.suffix)'")
      } else if report.isIdle, report.isUnchecked {
        console.hint("'sandboxctl check --read-data\(repository.suffix)' finds damaged data")
      } else if report.repaired > 0, !dryRun {
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
      JSON.Member("pinned", .bool(isPinned)), JSON.Member("losses", .integer(Int64(losses))),
      JSON.Member("lost", lost.json),
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
  /// Returns the last line of `repair snapshots --json`.
  fileprivate func json(isDry: Bool) -> JSON {
    [
      "summary": [
        "dry_run": .bool(isDry), "snapshots": .integer(Int64(snapshots)),
        "repaired": .integer(Int64(repaired)), "removed": .integer(Int64(removed)),
        "unreadable": .integer(Int64(unreadable.count)),
      ]
    ]
  }
}
