internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import PolicyEngine
internal import Retention
internal import SandboxModel
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl forget`: removes snapshots, by rules or by name.
struct ForgetCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "forget",
      abstract: "Remove snapshots by retention rules or by id",
      usage: "sandboxctl forget (<snap> ... | --keep-last <n> ...) [--dry-run] [<options>]",
      discussion: """
        Removes the given snapshots, or those that no --keep rule keeps. The rules apply to each \
        device, host and scope separately. Pinned snapshots and snapshots dated in the future are \
        kept; those made before an update, a restore or a removal are kept for the time that the \
        policy states. The last snapshot of a group is removed only with --allow-last.

        See sandboxctl-forget(1) for the rules, the JSON output and the exit statuses.

        \(Examples.text([
          "sandboxctl forget --keep-daily 7 --keep-weekly 5 --repo repo --dry-run",
          "sandboxctl forget --keep-within 14d --keep-monthly 12 --repo repo",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The snapshots to remove, regardless of the rules.", valueName: "snap"))
  var snapshots: [String] = []

  @OptionGroup var keep: RetentionOptions

  @Option(
    help: ArgumentHelp(
      "Apply the rules to each group of snapshots with the same device, host, scope or tags; '' for "
        + "one group (default: device,host,scope).", valueName: "names"))
  var groupBy: GroupBy?

  @OptionGroup var filter: SnapshotFilterOptions

  @Flag(
    help: "Only snapshots with the name that this host has now; with --host those as well.")
  var thisHost = false

  @Flag(help: "Allow the removal of all snapshots of a group.")
  var allowLast = false

  @Flag(help: "Also remove a snapshot that cannot be read, if it is named by its full id.")
  var force = false

  @Flag(help: "Then remove data that no snapshot needs, as 'sandboxctl prune' does.")
  var prune = false

  @OptionGroup var limits: PruneOptions

  @Flag(
    help: "Also show the bytes that only the removed snapshots need; reads all directories.")
  var sizes = false

  @Option(
    help: ArgumentHelp(
      "Skip this run if the last one with the same rules and this option succeeded less than a day, "
        + "a week or a month ago.", valueName: "interval"))
  var atMost: RunInterval?

  @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
  var dryRun = false

  @OptionGroup var metrics: MetricsOptions

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  /// The rules also apply to another repository: without them, no rule could be given in addition
  /// to those in the file, and each rule keeps more snapshots.
  static var precedence: [OptionPrecedence] {
    OptionPrecedence.oneOf([OptionPrecedence.arguments], ["app", "host", "tag", "this-host"])
      + OptionPrecedence.oneOf(["host"], ["this-host"])
      + ["app", "host", "repo", "tag", "this-host"].flatMap {
        OptionPrecedence.target([$0], dropping: ["allow-last", "force"])
      }
  }

  static var needs: [OptionNeed] { OptionNeed.of("max-unused", "repack-small", other: "prune") }

  func run(_ console: Console) throws -> ExitStatus {
    // 'latest' would name a snapshot other than the latest of that app, host or tag.
    if !snapshots.isEmpty, !filter.isEmpty { throw SnapshotFilterOptions.namedAsWell }
    if !snapshots.isEmpty, thisHost {
      throw UsageError(
        .optionsConflict, "snapshots are both named and selected by '--this-host'",
        hint: "give names or this option")
    }
    let (start, stamp) = (Host.now(), stamp)
    if let last = stamp?.load(), let atMost, !atMost.isDue(last: last, now: start) {
      if progress.verbose || dryRun {
        console.note(
          "nothing to do: the last run was at \(Times.text(last)), and this one runs "
            + "\(atMost.rawValue) at most")
      }
      return .done
    }
    if dryRun { return try forget(console).status }
    let status = try metrics.record(of: "forget", console) {
      let done = try forget(console)
      return (done.status, { $0.add(done) })
    }
    if status == .done { stamp?.save(start) }
    return status
  }

  /// The record of the last run with the same rules; nil without `--at-most` or rules, for named
  /// snapshots (to which the option does not apply), and if the repository cannot be opened.
  private var stamp: RunStamp? {
    guard atMost != nil, snapshots.isEmpty, !keep.rules.isEmpty,
      let opened = try? repository.open().repository
    else { return nil }
    let words =
      keep.words + selection.words + ["--group-by", String(grouping.rawValue)]
      + (allowLast ? ["--allow-last"] : []) + (prune ? ["--prune"] : [])
    return opened.hostRunStamp(of: "forget", words: words)
  }

  /// The result of a run.
  struct Done {
    var status: ExitStatus
    let plan: RetentionPlan
    let removed: Int
    /// The hosts of the accepted snapshots that are kept.
    let hosts: [HostSnapshots]
    var pruned: RepositoryPrune.Report?
  }

  private func forget(_ console: Console) throws -> Done {
    if snapshots.isEmpty { try requireRules() }
    let opened = try repository.open(console).repository
    if !dryRun { try opened.requireWritable() }
    var operation = try ForgetOperation(opened, cache: opened.hostHeadCache)
    let known = operation.heads.damaged.count
    let plan = try makePlan(&operation, console)
    let freed = try sizes ? freed(by: plan, opened) : nil
    try show(plan, pins: operation.pins, console)
    let removed = try remove(plan, by: operation, console)
    try summarize(plan, removed: removed, freed: freed, console)
    if snapshots.isEmpty, plan.groups.isEmpty, !output.quiet {
      filter.noteNoMatch(console)
      if thisHost, filter.isEmpty { console.note("no snapshot is of this host") }
    }
    let status = ExitStatus.together([
      snapshots.isEmpty
        ? warn(of: plan, operation, console)
        : console.warn(skipping: operation.heads.damaged[known...]),
      warn(ofLost: try operation.lostPinned(), console),
    ])
    let kept = plan.groups.flatMap(\.entries).filter {
      $0.isKept && opened.refusal(of: $0.head) == nil
    }
    var done = Done(
      status: status, plan: plan, removed: removed,
      hosts: HostSnapshots.grouped(kept.map { ($0.head.host, $0.head.time) }))
    guard prune else { return done }
    let pruned = try limits.run(
      opened, without: dryRun ? Set(plan.removed) : nil, mayRemoveAll: allowLast && removed > 0,
      progress: progress, output: output, console)
    done.status = ExitStatus.together([status, pruned.status])
    done.pruned = pruned.report
    return done
  }

  /// Prints warnings about pinned snapshots that are lost.
  private func warn(ofLost pinned: Set<SnapshotID>, _ console: Console) -> ExitStatus {
    for id in pinned.sorted() { console.warning("the pinned snapshot \(id.hex) is lost") }
    if pinned.isEmpty { return .done }
    console.hint(RepositoryPrune.lostPinnedHint)
    return .damaged
  }

  private func freed(
    by plan: RetentionPlan, _ opened: Repository
  ) throws -> RepositoryPrune.Freed {
    let counters = ProgressCounters(of: "directory")
    return try progress.run(counters, output) { isStopping in
      try RepositoryPrune(
        opened, indexCache: opened.hostIndexCache, headCache: opened.hostHeadCache,
        workers: opened.workers, counters: counters, isStopping: isStopping
      ).freed(byRemoving: Set(plan.removed))
    }
  }

  private func requireRules() throws {
    if !keep.rules.isEmpty { return }
    throw UsageError(
      .optionRequired, "no rule says which snapshots to keep",
      hint: "give a rule, for example '--keep-daily 7', or name the snapshots to remove")
  }

  /// Returns the plan, and prints warnings about damaged snapshots, even if the plan is refused.
  private func makePlan(
    _ operation: inout ForgetOperation, _ console: Console
  ) throws -> RetentionPlan {
    let known = operation.heads.damaged.count
    do {
      return try operation.verifiedPlan { operation in
        try snapshots.isEmpty ? planByRules(operation) : planByName(operation, console)
      }
    } catch {
      _ = console.warn(skipping: operation.heads.damaged[known...])
      throw error
    }
  }

  private func planByRules(_ operation: ForgetOperation) throws -> RetentionPlan {
    let policies = RetainTimes()
    var terms = RetentionTerms(
      keep.rules, grouping: grouping, now: Host.now(), retain: policies.seconds)
    terms.mayEmptyGroups = allowLast
    let plan = operation.plan(terms, of: selection.isSelected)
    if let mistake = policies.mistake { throw mistake }
    return plan
  }

  /// The snapshots that take part. A former name of this host is not added: machines that were
  /// cloned together with their machine ID cannot be distinguished from one that was renamed.
  private var selection: SnapshotFilterOptions {
    var selection = filter
    if thisHost { selection.hosts.append(Host.name) }
    return selection
  }

  private var grouping: SnapshotGrouping { groupBy?.grouping ?? .standard }

  private func planByName(
    _ operation: ForgetOperation, _ console: Console
  ) throws -> RetentionPlan {
    let finder = SnapshotFinder(operation.repository, console)
    let named = try snapshots.map { text in
      let name = try SnapshotName(text)
      guard case .id(let digits) = name else {
        return ForgetOperation.Named(try finder.find(name).id)
      }
      let id = try operation.repository.snapshotID(matching: digits)
      let isFull = digits.utf8.count == id.hex.utf8.count
      return ForgetOperation.Named(id, isForced: force && isFull)
    }
    return try operation.plan(
      removing: named, grouping: grouping, mayEmptyGroups: allowLast, now: Host.now())
  }

  /// Removes the snapshots and returns their number; in a dry run the number that would be removed.
  private func remove(
    _ plan: RetentionPlan, by operation: ForgetOperation, _ console: Console
  ) throws -> Int {
    if dryRun { return plan.removed.count }
    let counters = ProgressCounters(of: "snapshot")
    var removed = 0
    do {
      let report = try progress.run(counters, output) { isStopping in
        try operation.run(plan, counters: counters, isStopping: isStopping) { _ in removed += 1 }
      }
      for id in report.pinned {
        console.warning("the snapshot \(id.hex.prefix(8)) was pinned in the meantime: it is kept")
      }
    } catch {
      if removed > 0 {
        console.note("\(removed) of \(Sizes.count(plan.removed.count, "snapshot")) were removed")
      }
      throw error
    }
    return removed
  }

  /// Prints warnings about snapshots to which the rules do not apply, and returns the status.
  private func warn(
    of plan: RetentionPlan, _ operation: ForgetOperation, _ console: Console
  ) -> ExitStatus {
    let entries = plan.groups.flatMap(\.entries)
    for entry in entries where entry.reasons.contains(.future) {
      console.warning(
        "the snapshot \(entry.head.id.hex.prefix(8)) is dated in the future "
          + "(\(Times.text(entry.head.time))): it is kept, and the rules ignore it")
    }
    let unknown = entries.filter { $0.reasons.contains(.retainUnknown) }.map(\.head.id)
    if !unknown.isEmpty {
      console.warning(
        "no policy says how long automatic snapshots are kept: \(Sizes.count(unknown.count)) kept"
          + unknown.shortNames)
    }
    noteHosts(of: plan, console)
    let refused = plan.groups.filter(\.isRefused)
    for group in refused {
      console.warning(
        "no rule keeps a snapshot of \(GroupText(group).title): all \(group.kept) are kept")
    }
    if !refused.isEmpty {
      console.hint(
        "add a rule such as '--keep-last 1', or '--allow-last' to remove all snapshots of a group")
    }
    let status = console.warn(skipping: operation.heads.damaged)
    return status == .damaged || refused.isEmpty ? status : .doneInPart
  }
}

extension ForgetCommand {
  /// Reports that a device has snapshots of several host names, which are groups of their own.
  private func noteHosts(of plan: RetentionPlan, _ console: Console) {
    if groupBy != nil || output.quiet { return }
    var hosts: [String: Set<String>] = [:]
    for group in plan.groups {
      guard let device = group.key.device, let host = group.key.host else { continue }
      hosts[device, default: []].insert(host)
    }
    let count = hosts.values.count(where: { $0.count > 1 })
    if count == 0 { return }
    console.note(
      "\(Sizes.count(count, "device")) with several host names: the rules apply to each name; if a "
        + "host was renamed, '--group-by device,scope' makes them one group")
  }

  /// The properties by which snapshots are grouped.
  struct GroupBy: ExpressibleByArgument {
    let grouping: SnapshotGrouping

    init?(argument: String) {
      guard let grouping = SnapshotGrouping(argument) else { return nil }
      self.grouping = grouping
    }
  }
}

/// The times for which the policies of this host keep automatic snapshots.
private final class RetainTimes {
  private struct Key: Hashable {
    let policy: String
    let layout: String
  }

  private var known: [Key: [RetainedItem: Int64]] = [:]
  /// The first mistake in a policy. Without a valid policy, it is unknown how long it keeps
  /// snapshots.
  private(set) var mistake: (any Error)?

  /// Returns the seconds for which the policy of a snapshot, or the default one of its layout,
  /// keeps it; nil if neither specifies it.
  func seconds(_ head: SnapshotHead) -> Int64? {
    let item: RetainedItem? =
      switch head.reason {
      case .preUpdate: .preUpdateSnapshot
      case .preRestore: .preRestoreSnapshot
      case .preRollback: .preRollbackSnapshot
      case .uninstall: .uninstallSnapshot
      default: nil
      }
    let key = Key(policy: head.policy.name, layout: head.device.layout)
    let times = known[key] ?? times(key)
    known[key] = times
    return item.flatMap { times[$0] }
  }

  private func times(_ key: Key) -> [RetainedItem: Int64] {
    // A layout of a later version has no policy.
    guard let layout = Layout(rawValue: key.layout) else { return [:] }
    do {
      let library = try PolicyFiles.library(policy: key.policy, layout: layout, extra: [])
      let name = library.policy(key.policy) == nil ? nil : key.policy
      return try library.compile(PolicyRequest(policy: name, layout: layout)).retain
    } catch {
      mistake = mistake ?? error
      return [:]
    }
  }
}
