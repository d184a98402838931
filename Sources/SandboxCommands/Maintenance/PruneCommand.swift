internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import PolicyEngine
internal import SystemIO

/// `sandboxctl prune`: removes data that no snapshot needs.
struct PruneCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "prune",
      abstract: "Remove data that no snapshot needs",
      usage: "sandboxctl prune [--dry-run] [--max-unused <limit>] [<options>]",
      discussion: """
        Removes packs without used data. Rewrites packs of which more than half is unused, further \
        packs until the unused data is within the limit, and small packs if there are many. \
        Backups and restores may run at the same time: packs that they may need are left for a \
        later prune. The next prune continues an interrupted one.

        See sandboxctl-prune(1) for the rules, the JSON output and the exit statuses.

        \(Examples.text([
          "sandboxctl forget --keep-daily 7 --keep-monthly 12 --repo repo",
          "sandboxctl prune --repo repo --dry-run", "sandboxctl prune --repo repo",
        ]))
        """)
  }

  @OptionGroup var limits: PruneOptions

  @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
  var dryRun = false

  @OptionGroup var metrics: MetricsOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    if dryRun { return try prune(console).status }
    return try metrics.record(of: "prune", console) {
      let (status, report) = try prune(console)
      return (status, { $0.add(report) })
    }
  }

  private func prune(
    _ console: Console
  ) throws -> (status: ExitStatus, report: RepositoryPrune.Report) {
    try limits.run(
      try repository.open(console).repository, without: dryRun ? [] : nil, progress: progress,
      output: output, console)
  }
}

/// The limits of a prune.
struct PruneOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The unused data to tolerate: a share of the repository such as 5%, a size, or 'unlimited' "
        + "(default: 10%).", valueName: "limit"))
  var maxUnused: UnusedLimit?

  @Flag(help: "Combine all packs of less than 16 MiB, even if there are only a few.")
  var repackSmall = false

  @Flag(help: "Remove all data if the repository has no snapshot, which otherwise is an error.")
  var removeAll = false

  private var request: PruneRequest {
    var request = PruneRequest()
    if let maxUnused { request.maxUnused = maxUnused.limit }
    if repackSmall { request.smallPacks = 1 }
    return request
  }

  /// A limit for unused data on the command line.
  struct UnusedLimit: ExpressibleByArgument {
    let limit: PruneRequest.UnusedLimit

    init?(argument: String) {
      if argument == "unlimited" {
        limit = .unlimited
      } else if argument.hasSuffix("%") {
        guard let percent = Double(argument.dropLast()), (0..<100).contains(percent) else {
          return nil
        }
        limit = .fraction(percent / 100)
      } else {
        guard let size = ByteSize(argument: argument) else { return nil }
        limit = .bytes(UInt64(size.bytes))
      }
    }
  }

  /// Prunes a repository and prints the result; or, with `without`, prints the plan for the
  /// repository without these snapshots.
  ///
  /// - Parameter mayRemoveAll: whether it is permitted that no snapshot is left, because the user
  ///   has just removed the last one.
  func run(
    _ repository: Repository, without removed: Set<SnapshotID>?, mayRemoveAll: Bool = false,
    progress: ProgressOptions, output: OutputOptions, _ console: Console
  ) throws -> (status: ExitStatus, report: RepositoryPrune.Report) {
    let isDry = removed != nil
    var request = request
    request.mayRemoveAll = removeAll || mayRemoveAll
    let counters = ProgressCounters(of: "pack")
    let report = try progress.run(counters, output) { isStopping in
      let prune = RepositoryPrune(
        repository, request, indexCache: repository.hostIndexCache,
        headCache: repository.hostHeadCache, workers: repository.workers, counters: counters,
        isStopping: isStopping)
      return if let removed { try prune.plan(without: removed) } else { try prune.run() }
    }
    try output.show([report.json(isDry: isDry)], lines: report.lines(isDry: isDry), console)
    console.warn(of: report.damagedCondemned)
    for error in report.damaged { console.warning("\(error); the pack was not rewritten") }
    if report.lostBlobs > 0 {
      console.warning("snapshots need \(Sizes.count(report.lostBlobs, "blob")) that no pack has")
      console.hint(
        report.unindexedPacks > 0
          ? "\(Sizes.count(report.unindexedPacks, "pack")) may hold them and are kept: run "
            + "'sandboxctl repair index'" : "'sandboxctl check' lists the affected files")
    }
    return (report.status, report)
  }
}

extension MetricsText {
  /// Adds the metrics of a prune, with `prefix` before their names.
  mutating func add(_ report: RepositoryPrune.Report, prefix: String = "") {
    let packs = report.plan.packs
    let used = packs.map(\.used).clampedSum
    let unused = packs.map(\.unused).clampedSum
    let rows: [(name: String, help: String, value: UInt64)] = [
      ("snapshots", "Snapshots in the repository.", UInt64(report.snapshots)),
      ("packs", "Packs before the prune.", UInt64(packs.count)),
      ("used_bytes", "Stored bytes that snapshots needed before the prune.", used),
      ("unused_bytes", "Stored bytes that no snapshot needed before the prune.", unused),
      ("removed_packs", "Packs that were removed.", UInt64(report.removedPacks)),
      ("removed_bytes", "Bytes of these packs.", report.removedBytes),
      ("new_packs", "Packs that were written.", UInt64(report.newPacks)),
      ("new_bytes", "Bytes of these packs.", report.newBytes),
      ("waiting_packs", "Packs that a later prune removes.", UInt64(report.waitingPacks)),
      ("damaged_packs", "Packs that are damaged and stay.", UInt64(report.damaged.count)),
      ("lost_blobs", "Blobs that snapshots need and no pack has.", UInt64(report.lostBlobs)),
    ]
    for row in rows { add(prefix + row.name, help: row.help, value: row.value) }
  }
}

extension RepositoryPrune.Report {
  fileprivate var status: ExitStatus {
    if isInterrupted { return .interrupted }
    return damaged.isEmpty && lostBlobs == 0 ? .done : .damaged
  }

  /// Returns the report as text.
  fileprivate func lines(isDry: Bool) -> [String] {
    var lines = [summary]
    if plan.isIdle, removedPacks == 0, waitingPacks == 0 { return lines + ["nothing to prune"] }
    for action in [PrunePlan.Action.remove, .rewrite] {
      for (reason, packs) in plan.groups(action) {
        let size = Sizes.text(packs.map(\.size).clampedSum)
        let used = Sizes.text(packs.map(\.used).clampedSum)
        lines.append(
          "\(action.rawValue)  \(Sizes.count(packs.count, "pack")), \(size)"
            + (action == .rewrite ? " with \(used) used: " : ": ") + reason.text)
      }
    }
    if isDry {
      if removedPacks > 0 {
        lines.append(
          "remove  \(Sizes.count(removedPacks, "pack")), \(Sizes.text(removedBytes)): marked by an "
            + "earlier prune")
      }
      if waitingPacks > 0 { lines.append(waiting) }
      return lines + ["would free \(Sizes.text(plan.freedBytes + removedBytes))"]
    }
    let written = newPacks > 0 ? ", wrote \(Sizes.count(newPacks, "pack"))" : ""
    let freed = removedBytes > newBytes ? removedBytes - newBytes : 0
    lines.append(
      "removed \(Sizes.count(removedPacks, "pack"))\(written): \(Sizes.text(freed)) freed")
    if waitingPacks > 0 { lines.append(waiting) }
    if isInterrupted { lines.append("interrupted: the next prune continues") }
    return lines
  }

  private var waiting: String { waitingLine(of: "pack", removedBy: "a later prune") }

  private var summary: String {
    let used = plan.packs.map(\.used).clampedSum
    let unused = plan.packs.map(\.unused).clampedSum
    let share = Int((Double(unused) * 100 / Double(max(1, used + unused))).rounded())
    return "\(Sizes.count(snapshots, "snapshot")), \(Sizes.count(plan.packs.count, "pack")): "
      + "\(Sizes.text(used)) used, \(Sizes.text(unused)) unused (\(share) %)"
  }

  /// Returns the report as `prune --json` prints it.
  fileprivate func json(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry), "snapshots": .integer(Int64(snapshots)),
      "packs": .integer(Int64(plan.packs.count)),
      "used_bytes": .integer(Int64(clamping: plan.packs.map(\.used).clampedSum)),
      "unused_bytes": .integer(Int64(clamping: plan.packs.map(\.unused).clampedSum)),
      "plan": .array(plan.packs.filter { $0.action != .keep }.map(\.json)),
      "removed_packs": .integer(Int64(removedPacks)),
      "removed_bytes": .integer(Int64(clamping: removedBytes)),
      "new_packs": .integer(Int64(newPacks)), "new_bytes": .integer(Int64(clamping: newBytes)),
      "waiting_packs": .integer(Int64(waitingPacks)),
      "waiting_for": .array(waitingFor.map { .string($0.description) }),
      "ended_leases": endedLeasesJSON,
      "damaged": .array(damaged.map { .string($0.description) }),
      "lost_blobs": .integer(Int64(lostBlobs)), "interrupted": .bool(isInterrupted),
    ]
  }
}

extension PrunePlan {
  /// Returns the packs of an action by reason.
  fileprivate func groups(_ action: Action) -> [(Reason, [Pack])] {
    Reason.allCases.compactMap { reason in
      let packs = packs(action).filter { $0.reason == reason }
      return packs.isEmpty ? nil : (reason, packs)
    }
  }
}

extension PrunePlan.Pack {
  fileprivate var json: JSON {
    [
      "id": .string(id.hex), "action": .string(action.rawValue),
      "reason": .string(reason?.rawValue ?? ""), "bytes": .integer(Int64(clamping: size)),
      "used_bytes": .integer(Int64(clamping: used)),
      "unused_bytes": .integer(Int64(clamping: unused)),
      "moved_unused_bytes": .integer(Int64(clamping: moved)),
    ]
  }
}

extension PrunePlan.Reason {
  fileprivate var text: String {
    switch self {
    case .unused: "no snapshot needs their data"
    case .mostlyUnused: "more than half of their data is unused"
    case .limit: "more unused data than the limit"
    case .small: "many small packs"
    case .notIndexed: "left by backups that ended early"
    }
  }
}
