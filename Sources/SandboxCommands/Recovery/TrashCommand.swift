internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import DeviceTransaction
internal import SandboxModel
internal import SystemIO

/// `sandboxctl trash`: lists or empties the trash of a device.
struct TrashCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "trash",
      abstract: "List or empty the trash of a device",
      discussion: """
        Data that an operation replaces or removes in the containers of an app is not deleted: it \
        moves to .sandboxctl/trash in the device's root, below the name of the operation and under \
        its logical path, and still uses its space. The next successful operation on the same app \
        deletes it if it is more than 24 hours old.

        \(Examples.text([
          "sandboxctl trash list --root device", "sandboxctl trash empty --root device",
        ]))
        """,
      subcommands: [List.self, Empty.self])
  }
}

extension TrashCommand {
  /// `sandboxctl trash list`: lists the trash of a device.
  struct List: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "list",
        abstract: "List the trash of a device",
        usage: "sandboxctl trash list [--root <dir>] [<options>]",
        discussion: """
          Prints a line for each operation, oldest first: when it began, what its trash contains, \
          and where that is. To recover a file, move it back from there.

          \(Examples.text([
            "sandboxctl trash list --root device", "sandboxctl trash list --root device --json",
          ]))
          """)
    }

    @OptionGroup var device: DeviceOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      var isEmpty = true
      for choice in try device.choices() {
        let found = try choice.find()
        console.warn(ofInterruptedOn: found)
        let items = try Trash(of: found).items()
        if !items.isEmpty { isEmpty = false }
        if output.json {
          for item in items { try console.result(item.json(of: found.root)) }
          continue
        }
        // An operation whose trash has no bytes is listed as well: its trash can be emptied.
        let excerpt = ListExcerpt(
          items, all: list.all, isEmpty: { _ in false }, size: \.totals.bytes)
        for item in excerpt.shown {
          try console.result(item.text)
          try console.list(
            ListExcerpt(item.directories, all: list.all), after: "  ", line: Paths.text)
        }
        if let remainder = excerpt.remainder { try console.result(remainder) }
      }
      if isEmpty, !output.json, !output.quiet { try console.result("the trash is empty") }
      return .done
    }
  }

  /// `sandboxctl trash empty`: deletes the contents of the trash.
  struct Empty: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "empty",
        abstract: "Delete the contents of a device's trash",
        usage: "sandboxctl trash empty [<operation> ...] [--root <dir>] [<options>]",
        discussion: """
          Permanently deletes the trash of the given operations, or of all. The trash of an \
          operation that is in progress or was interrupted is kept, and so is that of an app that \
          another operation changes.

          What cannot be deleted is reported, and the exit status is 3. If a signal ends the \
          command, the rest stays in the trash, and the exit status is 130.

          \(Examples.text([
            "sandboxctl trash empty --root device --dry-run",
            "sandboxctl trash empty --root device --older-than 7d",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp(
        "The operations whose trash to delete, as 'trash list' names them (default: all).",
        valueName: "operation"))
    var operations: [ByteString] = []

    @OptionGroup var device: DeviceOptions

    @Option(
      help: ArgumentHelp(
        "Delete only trash that is older, for example 7d or 12h.", valueName: "time")
    )
    var olderThan: TimeSpan?

    @Flag(name: .shortAndLong, help: "Show what would be deleted, without deleting.")
    var dryRun = false

    @OptionGroup var list: ListOptions
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let counters = ProgressCounters()
      let items = Trash.ItemSelection(
        operations: operations, minimumAge: olderThan.map(\.seconds))
      let outcomes = try progress.run(counters, output) { isStopping in
        try Trash.empty(
          device.choices().map { try $0.find() }, items, isDryRun: dryRun, counting: counters,
          isStopping: isStopping)
      }
      for outcome in outcomes { try show(outcome, console) }
      if outcomes.contains(where: \.isInterrupted) { throw Self.interrupted }
      return outcomes.allSatisfy(\.failed.isEmpty) ? .done : .doneInPart
    }

    private static let interrupted = OperationError(
      .interrupted, "trash empty was interrupted: the remaining files stay in the trash",
      hint: "run it again to continue")

    private func show(_ outcome: Trash.EmptyingResult, _ console: Console) throws {
      if output.json { return try console.result(outcome.json(isDryRun: dryRun)) }
      console.list(outcome.failed, as: .warning("not deleted: "), all: list.all) {
        "\($0.id): \($0.reason)"
      }
      if output.quiet { return }
      if outcome.removed.isEmpty, outcome.failed.isEmpty, !outcome.isInterrupted {
        return try console.result("nothing to delete")
      }
      let operations = Sizes.count(outcome.removed.count, "operation")
      try console.result(
        "\(dryRun ? "would delete" : "deleted") \(outcome.totals.text) of \(operations)")
    }
  }
}

extension Trash.EmptyingResult {
  fileprivate func json(isDryRun: Bool) -> JSON {
    .object(
      JSON.path(root, named: "root") + [
        JSON.Member("dry_run", .bool(isDryRun)),
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

extension Trash.Item {
  fileprivate func json(of root: ByteString) -> JSON {
    .object(
      JSON.path(root, named: "root") + JSON.path(id, named: "id") + [
        JSON.Member("operation", operation.map { .string($0) } ?? .null),
        JSON.Member("time", .string(time.rfc3339)),
        JSON.Member("subjects", .array(subjects.map { .object(JSON.path($0)) })),
        JSON.Member("holds", totals.json),
        JSON.Member("places", .array(directories.map { .object(JSON.path($0)) })),
      ])
  }

  fileprivate var text: String {
    let of = subjects.map(\.description).joined(separator: ", ")
    return "\(id)  \(Times.ago(time))  \(operation ?? "unknown") of \(of.isEmpty ? "?" : of): "
      + totals.text
  }
}
