internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// `sandboxctl trash empty`: deletes what is in the trash.
struct TrashEmptyCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "empty",
      abstract: "Delete what operations on a device replaced or removed",
      usage: "sandboxctl trash empty [<operation> ...] [--root <dir>] [<options>]",
      discussion: """
        Deletes for good what the named operations put into the trash, or all of them. What an \
        operation that is going on, or was interrupted, put there stays.

        Exit status 3 names what could not be deleted. 130 says that a signal ended it: what it had \
        not come to is in the trash as before.

        \(Examples.text([
          "sandboxctl trash empty --root device --dry-run",
          "sandboxctl trash empty --root device --older-than 7d",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("Operations, as 'trash list' names them.", valueName: "operation"))
  var operations: [ByteString] = []

  @OptionGroup var device: DeviceOptions

  @Option(help: ArgumentHelp("Delete only what is older, as 7d or 12h.", valueName: "time"))
  var olderThan: TimeSpan?

  @Flag(name: .shortAndLong, help: "Say what would be deleted and delete nothing.")
  var dryRun = false

  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let counters = ProgressCounters()
    let outcomes = try progress.run(counters, output) { isStopping in
      try empty(counters, isStopping)
    }
    for outcome in outcomes { try tell(outcome, console) }
    if outcomes.contains(where: \.isInterrupted) { return .interrupted }
    return outcomes.allSatisfy(\.failed.isEmpty) ? .done : .doneInPart
  }

  private func empty(
    _ counters: ProgressCounters, _ isStopping: @escaping @Sendable () -> Bool
  ) throws -> [TrashOutcome] {
    let trashes = try device.choices().map { try $0.find() }.map { device in
      (root: device.root, trash: Trash(of: device), items: try Trash(of: device).unmeasured())
    }
    try requireKnown(Set(trashes.flatMap { $0.items.map(\.id) }))
    var outcomes: [TrashOutcome] = []
    for (root, trash, items) in trashes {
      var outcome = TrashOutcome(root: root)
      // All of it is measured before the first goes, so that it can be said when it will be done.
      let measured = items.filter(isMeant).map { item in
        var item = item
        if !isStopping() { trash.measure(&item) }
        counters.expect(files: item.totals.entries - item.totals.directories, bytes: 0)
        return item
      }
      for item in measured where !outcome.isInterrupted {
        outcome.take(item, from: trash, dryRun: dryRun, counters, isStopping)
      }
      outcomes.append(outcome)
      if outcome.isInterrupted { break }
    }
    return outcomes
  }

  private func requireKnown(_ known: Set<ByteString>) throws {
    guard let missing = Set(operations).subtracting(known).sorted().first else { return }
    throw LifecycleError(
      .notFound, "cannot empty the trash of '\(missing)': there is no such operation in it",
      hint: "'sandboxctl trash list' names them")
  }

  private func isMeant(_ item: Trash.Item) -> Bool {
    guard operations.isEmpty || operations.contains(item.id) else { return false }
    return olderThan.map { Host.now().since(item.time) > $0.seconds } ?? true
  }

  private func tell(_ outcome: TrashOutcome, _ console: Console) throws {
    if output.json { return try console.result(outcome.json) }
    for (id, reason) in outcome.failed { console.warning("not deleted: \(id): \(reason)") }
    if output.quiet { return }
    let operations = Sizes.count(outcome.removed.count, "operation")
    try console.result(
      "\(dryRun ? "would delete" : "deleted") \(outcome.totals.text) of \(operations)")
  }
}

/// What became of a trash.
private struct TrashOutcome {
  let root: ByteString
  private(set) var removed: [ByteString] = []
  private(set) var totals = RestoreTotals()
  private(set) var failed: [(id: ByteString, reason: String)] = []
  private(set) var isInterrupted = false

  init(root: ByteString) { self.root = root }

  mutating func take(
    _ item: Trash.Item, from trash: Trash, dryRun: Bool, _ counters: ProgressCounters,
    _ isStopping: @escaping () -> Bool
  ) {
    do throws(SystemError) {
      if try trash.isInUse(item) {
        return fail(item, because: "its operation is going on, or was interrupted", counters)
      }
      if isStopping() {
        isInterrupted = true
      } else if !dryRun {
        isInterrupted = try !trash.remove(item, counting: counters, isStopping: isStopping)
      }
      if isInterrupted { return }
      removed.append(item.id)
      totals.add(item.totals)
    } catch { fail(item, because: error.reason, counters) }
  }

  private mutating func fail(
    _ item: Trash.Item, because reason: String, _ counters: ProgressCounters
  ) {
    failed.append((item.id, reason))
    counters.didFail()
  }

  var json: JSON {
    .object(
      JSON.path(root, named: "root") + [
        JSON.Member("removed", .array(removed.map { .object(JSON.path($0, named: "id")) })),
        JSON.Member("freed", totals.json),
        JSON.Member(
          "failed",
          .array(
            failed.map {
              .object(JSON.path($0.id, named: "id") + [JSON.Member("note", .string($0.reason))])
            })),
      ])
  }
}
