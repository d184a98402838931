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
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      var isEmpty = true
      for choice in try device.choices() {
        let found = try choice.find()
        console.warn(ofInterruptedOn: found)
        for item in try Trash(of: found).items() {
          isEmpty = false
          try output.json
            ? console.result(item.json(of: found.root)) : console.result(item.text)
          if output.json { continue }
          for directory in item.directories { try console.result("  \(Paths.text(directory))") }
        }
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
          operation that is in progress or was interrupted is kept.

          The exit status is 3 if something could not be deleted; it is reported. It is 130 if a \
          signal ended the command; the rest stays in the trash.

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

    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let counters = ProgressCounters()
      let outcomes = try progress.run(counters, output) { isStopping in
        try empty(counters, isStopping)
      }
      for outcome in outcomes { try tell(outcome, console) }
      if outcomes.contains(where: \.isInterrupted) { throw Self.interrupted }
      return outcomes.allSatisfy(\.failed.isEmpty) ? .done : .doneInPart
    }

    private static let interrupted = OperationError(
      .interrupted, "trash empty was interrupted: the remaining files stay in the trash",
      hint: "run it again to continue")

    private func empty(
      _ counters: ProgressCounters, _ isStopping: @escaping @Sendable () -> Bool
    ) throws -> [Outcome] {
      let trashes = try device.choices().map { try $0.find() }.map { device in
        (root: device.root, trash: Trash(of: device), items: try Trash(of: device).unmeasured())
      }
      try requireKnown(Set(trashes.flatMap { $0.items.map(\.id) }))
      var outcomes: [Outcome] = []
      for (root, trash, items) in trashes {
        var outcome = Outcome(root: root)
        // Measured before the first deletion, for the estimate of the remaining time.
        let measured = items.filter(isMeant).map { item in
          var item = item
          if !isStopping() { trash.measure(&item) }
          counters.expect(files: item.totals.entries - item.totals.directories, bytes: 0)
          return item
        }
        for item in measured where !outcome.isInterrupted {
          outcome.take(
            item, from: trash, dryRun: dryRun, counting: counters, isStopping: isStopping)
        }
        outcomes.append(outcome)
        if outcome.isInterrupted { break }
      }
      return outcomes
    }

    private func requireKnown(_ known: Set<ByteString>) throws {
      guard let missing = Set(operations).subtracting(known).sorted().first else { return }
      throw OperationError(
        .notFound, code: .noTrashOperation,
        "cannot empty the trash of '\(missing)': there is no such operation",
        hint: "'sandboxctl trash list' lists the operations")
    }

    private func isMeant(_ item: Trash.Item) -> Bool {
      guard operations.isEmpty || operations.contains(item.id) else { return false }
      return olderThan.map { Host.now().since(item.time) > $0.seconds } ?? true
    }

    private func tell(_ outcome: Outcome, _ console: Console) throws {
      if output.json { return try console.result(outcome.json) }
      for (id, reason) in outcome.failed { console.warning("not deleted: \(id): \(reason)") }
      if output.quiet { return }
      let operations = Sizes.count(outcome.removed.count, "operation")
      try console.result(
        "\(dryRun ? "would delete" : "deleted") \(outcome.totals.text) of \(operations)")
    }
  }
}

extension TrashCommand.Empty {
  /// The result of emptying a trash.
  private struct Outcome {
    let root: ByteString
    private(set) var removed: [ByteString] = []
    private(set) var totals = RestoreTotals()
    private(set) var failed: [(id: ByteString, reason: String)] = []
    private(set) var isInterrupted = false

    init(root: ByteString) { self.root = root }

    mutating func take(
      _ item: Trash.Item, from trash: Trash, dryRun: Bool, counting counters: ProgressCounters,
      isStopping: @escaping () -> Bool
    ) {
      do throws(SystemError) {
        if try trash.isInUse(item) {
          return fail(item, because: "its operation is in progress or was interrupted", counters)
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
