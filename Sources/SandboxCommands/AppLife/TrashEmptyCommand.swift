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

        Exit status 3 names what could not be deleted.

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

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let wanted = Set(operations)
    let trashes = try device.choices().map { try $0.find() }.map { device in
      (root: device.root, trash: Trash(of: device), items: try Trash(of: device).items())
    }
    let known = Set(trashes.flatMap { $0.items.map(\.id) })
    if let missing = wanted.subtracting(known).sorted().first {
      throw LifecycleError(
        .notFound, "cannot empty the trash of '\(missing)': there is no such operation in it",
        hint: "'sandboxctl trash list' names them")
    }
    let now = Host.now()
    var status = ExitStatus.done
    for (root, trash, items) in trashes {
      var outcome = TrashOutcome()
      for item in items where wanted.isEmpty || wanted.contains(item.id) {
        if let olderThan, now.since(item.time) <= olderThan.seconds { continue }
        outcome.take(item, from: trash, dryRun: dryRun)
      }
      if !outcome.failed.isEmpty { status = .doneInPart }
      try tell(outcome, root, console)
    }
    return status
  }

  private func tell(_ outcome: TrashOutcome, _ root: ByteString, _ console: Console) throws {
    if output.json { return try console.result(outcome.json(of: root)) }
    for (id, reason) in outcome.failed { console.warning("not deleted: \(id): \(reason)") }
    if output.quiet { return }
    let operations = Sizes.count(outcome.removed.count, "operation")
    try console.result(
      "\(dryRun ? "would delete" : "deleted") \(outcome.totals.text) of \(operations)")
  }
}

/// What became of a trash.
private struct TrashOutcome {
  private(set) var removed: [ByteString] = []
  private(set) var totals = RestoreTotals()
  private(set) var failed: [(id: ByteString, reason: String)] = []

  mutating func take(_ item: Trash.Item, from trash: Trash, dryRun: Bool) {
    do throws(SystemError) {
      if try trash.isInUse(item) {
        failed.append((item.id, "its operation is going on, or was interrupted"))
        return
      }
      if !dryRun { try trash.remove(item) }
      removed.append(item.id)
      totals.add(item.totals)
    } catch { failed.append((item.id, error.reason)) }
  }

  func json(of root: ByteString) -> JSON {
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
