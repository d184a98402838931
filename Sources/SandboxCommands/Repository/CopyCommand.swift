internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl copy`: copies snapshots into another repository.
struct CopyCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "copy",
      abstract: "Copy snapshots into another repository",
      usage: "sandboxctl copy --to <repo> [<snap> ...] [--check] [--dry-run] [<options>]",
      discussion: """
        Copies the given snapshots, those that match the filters, or all, from the repository into \
        the one given with --to. Only data that the target lacks is read. Snapshots that the \
        target already has, as the original or as a copy, are skipped. Snapshots that need lost \
        data are reported and not copied. The next copy continues an interrupted one.

        See sandboxctl-copy(1) for the rules, the JSON output and the exit statuses.

        \(Examples.text([
          "sandboxctl init second --plain --no-default",
          "sandboxctl copy --to second --repo repo --dry-run",
          "sandboxctl copy latest --to second --repo repo --check",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp("The snapshots to copy (default: all that match).", valueName: "snap"))
  var snapshots: [String] = []

  @Option(
    help: ArgumentHelp("The repository to copy into.", valueName: "repo"), completion: .directory)
  var to: ByteString

  @OptionGroup var filter: SnapshotFilterOptions

  @Flag(help: "Read back all data that the snapshots need from the target before they are saved.")
  var check = false

  @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
  var dryRun = false

  @OptionGroup var targetKeys: TargetKeyOptions
  @OptionGroup var targetRemote: TargetRemoteOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  static var precedence: [OptionPrecedence] {
    OptionPrecedence.oneOf([OptionPrecedence.arguments], ["app", "host", "tag"])
  }

  func run(_ console: Console) throws -> ExitStatus {
    if !snapshots.isEmpty, !filter.isEmpty { throw SnapshotFilterOptions.namedAsWell }
    var choice = try repository.choice(for: console)
    choice.isKeyOfAnother = targetKeys.options == nil
    var other = try RepositoryOptions.Choice(
      to, otherRemote.settings, keys: targetKeys.options)
    try choice.requireAnotherLocation(than: other)
    let source = try choice.open(console).repository
    try choice.requireApart(from: other)
    if other.keys == nil { (other.keys, other.isKeyOfAnother) = (repository.keys, true) }
    console.suggested = suggestedForTarget
    let target = try other.open(console).repository
    console.suggested = repository.suggested
    let ids = try source.snapshots(named: snapshots, console)
    // An error of the copy may concern either of the two repositories.
    console.suggested = SuggestedCommands()
    let counters = ProgressCounters(of: "pack")
    let report = try progress.run(counters, output) { isStopping in
      var copy = RepositoryCopy(
        from: source.copySide, to: target.copySide, isDry: dryRun, isChecking: check,
        workers: max(source.workers, target.workers), counters: counters, isStopping: isStopping)
      if !output.quiet { copy.onWait = { noteWait(for: $0, console) } }
      return try copy.run { head in ids?.contains(head.id) ?? filter.isSelected(head) }
    }
    try output.show(
      report.jsonLines(isDry: dryRun), lines: report.lines(isDry: dryRun, isChecked: check),
      console)
    warn(of: report, from: source, to: target, console)
    if report.snapshots == 0, !output.quiet { filter.noteNoMatch(console) }
    if report.isInterrupted { return .interrupted }
    if report.hasDamage { return .damaged }
    let isWhole = report.incomplete.isEmpty && report.damagedInTarget.isEmpty
    return .together([
      isWhole ? .done : .doneInPart, ExitStatus(without: report.unreadable + report.damaged),
    ])
  }

  /// The commands that messages suggest for the other repository.
  private var suggestedForTarget: SuggestedCommands {
    SuggestedCommands(
      suffix: RepositoryOptions.suffix(for: to, otherRemote, keys: targetKeys.options),
      suffixWithoutKey: RepositoryOptions.suffix(for: to, otherRemote, keys: nil))
  }

  /// The connection to the other repository.
  private var otherRemote: RemoteOptions { targetRemote.options(besides: repository.remote) }

  /// Prints the programs that this one waits for, which may take a long time.
  private func noteWait(for leases: [LeaseStatus], _ console: Console) {
    let copies = Sizes.count(leases.count, "other copy")
    let suffix = suggestedForTarget.suffixWithoutKey
    console.note(
      "waiting until \(copies) into '\(to)' \(leases.count == 1 ? "has" : "have") saved snapshots"
        + leases.map(\.words).joined(separator: ",")
        + "; at most 3 minutes for one that was killed ('sandboxctl leases\(suffix)' lists the "
        + "programs)")
  }

  private func warn(
    of report: RepositoryCopy.Report, from source: Repository, to target: Repository,
    _ console: Console
  ) {
    _ = console.warn(skipping: report.damaged + report.unreadable)
    for error in report.targetDamage { console.warning("\(error) in '\(to)'") }
    for snapshot in report.incomplete {
      console.warning("snapshot \(snapshot.shownLoss), and was not copied")
    }
    for snapshot in report.damagedInTarget {
      console.warning("snapshot \(snapshot.shownLoss) in '\(to)'")
    }
    console.hintOlderKey(
      for: report.incomplete + report.damagedInTarget, besides: report.damaged + report.unreadable)
    // Data that only an older key opens is not lost.
    if !report.incomplete.allSatisfy(\.needsOlderKey),
      !report.damaged.contains(where: \.isRefused)
    {
      let suffix = repository.suffix(withKey: source.isEncrypted)
      console.hint(
        "'sandboxctl repair snapshots\(suffix)' rewrites such snapshots without the lost data")
    }
    if !report.damagedInTarget.allSatisfy(\.needsOlderKey) {
      let keys = target.isEncrypted ? targetKeys.options ?? repository.keys : nil
      let suffix = RepositoryOptions.suffix(for: to, otherRemote, keys: keys)
      console.hint(
        "run 'sandboxctl check --read-data\(suffix)', then copy again: data of damaged packs is "
          + "then stored again")
    }
  }
}

extension Repository {
  /// The repository with this host's caches for it.
  fileprivate var copySide: RepositoryCopy.Side {
    RepositoryCopy.Side(self, indexCache: hostIndexCache, headCache: hostHeadCache)
  }
}

extension Console {
  /// Prints the remedy for snapshots that need an older key, unless it was printed for errors.
  func hintOlderKey(
    for snapshots: [IncompleteSnapshot], besides errors: [StoreError]
  ) {
    guard snapshots.contains(where: \.needsOlderKey),
      !errors.contains(where: { $0.needsOlderKey && $0.hint != nil })
    else { return }
    hint(
      "use a passphrase, or all lines of the recovery key; 'sandboxctl key rewrap' makes older data "
        + "readable for all recipients")
  }
}

extension IncompleteSnapshot {
  /// The id and the number of losses with an example, to continue a sentence.
  var shownLoss: String {
    let name = "\(head.id.hex.prefix(8)) of \(Times.text(head.time))"
    if needsOlderKey { return "\(name) needs an older key\(shownPaths)" }
    let first = lost.first.map { note in
      note.path.isEmpty ? " (\(note.note))" : ", for example '\(note.path)' (\(note.note))"
    }
    return "\(name) has \(Sizes.count(losses, "lost path"))\(first ?? "")"
  }

  /// The number of paths that need an older key with an example.
  private var shownPaths: String {
    guard let first = lost.first, !first.path.isEmpty else { return "" }
    return " for \(Sizes.count(losses, "path")), for example '\(first.path)'"
  }

  /// Returns the snapshot as a line of `copy --json` and `mirror --json`.
  func json(_ outcome: String) -> JSON {
    [
      "id": .string(head.id.hex), "time": .string(head.time.rfc3339),
      "outcome": .string(outcome), "losses": .integer(Int64(losses)),
      "needs_older_key": .bool(needsOlderKey), "lost": lost.json,
    ]
  }
}

extension RepositoryCopy.Report {
  /// Returns the report as text: a line for each copied snapshot, and totals.
  func lines(isDry: Bool, isChecked: Bool) -> [String] {
    var lines = copied.map { $0.line }
    let others = present > 0 ? ", \(Sizes.count(present)) existed before" : ""
    let verb = isDry ? "would copy" : "copied"
    lines.append(
      "\(verb) \(Sizes.count(copied.count)) of \(Sizes.count(snapshots, "snapshot"))\(others)")
    if neededBlobs > 0 { lines.append(amounts(isDry: isDry)) }
    if isChecked, !isDry {
      lines.append(
        "read \(Sizes.text(checkedBytes)) in \(Sizes.count(checkedBlobs, "blob")) again: "
          + (damagedInTarget.isEmpty ? "no damage found" : "damage found"))
    }
    if isInterrupted { lines.append("interrupted: the next copy continues") }
    return lines
  }

  private func amounts(isDry: Bool) -> String {
    let needed =
      "the other repository \(isDry ? "lacks" : "lacked") \(Sizes.text(missingBytes)) of "
      + Sizes.text(neededBytes)
    guard !isDry, newPacks > 0 else { return needed }
    let frames = [
      movedFrames > 0 ? "\(Sizes.count(movedFrames, "frame")) unchanged" : nil,
      partFrames > 0 ? "parts of \(Sizes.count(partFrames, "frame"))" : nil,
    ]
    let stored = "stored \(Sizes.text(newBytes)) in \(Sizes.count(newPacks, "pack"))"
    return ([needed, stored] + frames.compactMap { $0 }).joined(separator: ", ")
  }

  /// Returns the report as `copy --json` prints it: a line for each snapshot that was copied or
  /// that is damaged, and the summary.
  func jsonLines(isDry: Bool) -> [JSON] {
    copied.map { $0.json(isDry: isDry) } + incomplete.map { $0.json("incomplete") }
      + damagedInTarget.map { $0.json("damaged-in-target") } + [["summary": summary(isDry: isDry)]]
  }

  private func summary(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry), "snapshots": .integer(Int64(snapshots)),
      "present": .integer(Int64(present)), "copied": .integer(Int64(copied.count)),
      "incomplete": .integer(Int64(incomplete.count)),
      "damaged_in_target": .integer(Int64(damagedInTarget.count)),
      "unreadable": .integer(Int64(unreadable.count)),
      "damaged": .array(damaged.map { .string($0.description) }),
      "target_damage": .array(targetDamage.map { .string($0.description) }),
      "needed_blobs": .integer(Int64(neededBlobs)),
      "needed_bytes": .integer(Int64(clamping: neededBytes)),
      "missing_blobs": .integer(Int64(missingBlobs)),
      "missing_bytes": .integer(Int64(clamping: missingBytes)),
      "moved_frames": .integer(Int64(movedFrames)), "part_frames": .integer(Int64(partFrames)),
      "new_packs": .integer(Int64(newPacks)), "new_bytes": .integer(Int64(clamping: newBytes)),
      "checked_blobs": .integer(Int64(checkedBlobs)),
      "checked_bytes": .integer(Int64(clamping: checkedBytes)),
      "interrupted": .bool(isInterrupted),
    ]
  }
}

extension RepositoryCopy.Copied {
  fileprivate var line: String {
    let copy = id.map { $0 == head.id ? "" : " as \($0.hex.prefix(8))" } ?? ""
    return "snapshot \(head.id.hex.prefix(8)) of \(Times.text(head.time)), "
      + "\(head.deviceText)\(copy)"
  }

  fileprivate func json(isDry: Bool) -> JSON {
    var members = [
      JSON.Member("id", .string(head.id.hex)), JSON.Member("time", .string(head.time.rfc3339)),
      JSON.Member("outcome", .string(isDry ? "would-copy" : "copied")),
    ]
    if let id { members.append(JSON.Member("copy", .string(id.hex))) }
    return .object(members)
  }
}
