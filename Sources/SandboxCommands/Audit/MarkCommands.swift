internal import ArchiveStore
internal import ArgumentParser
internal import Audit
internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl exclude PATH…`: marks entries as excluded from backups.
struct ExcludeCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "exclude",
      abstract: "Mark files and directories as excluded from backups",
      usage: "sandboxctl exclude <path> ... [--root <dir>] [--for <destination>] [<options>]",
      discussion: """
        Sets the extended attribute by which an app of the device's platform and version excludes \
        data from backups. A mark on a directory covers everything below it. This program observes \
        it, and so does the platform's own backup once the data is on such a device. Apps must set \
        a mark again when they replace a file.

        A directory of the system, such as Library, is marked only with --force. 'include' removes \
        marks.

        \(Examples.text([
          "sandboxctl exclude darkroom/Documents/Albums --root device",
          "sandboxctl exclude notebook/Documents/Drafts --root device --for cloud --dry-run",
        ]))
        """)
  }

  static var ownOptions: Set<String> { ["for", "force"] }

  @Argument(help: ArgumentHelp("The entries to mark, as for 'explain'.", valueName: "path"))
  var paths: [ByteString]

  @Flag(help: "Mark a directory of the system, too.")
  var force = false

  @OptionGroup var verdict: MarkDestinationOptions
  @OptionGroup var marks: MarkOptions

  func run(_ console: Console) throws -> ExitStatus {
    let destination = try verdict.destination
    let verb = marks.dryRun ? "would be marked as" : "marked as"
    return try marks.change(paths, verb: verb, console) { operation in
      try operation.exclude(for: destination, force: force, dryRun: marks.dryRun)
    } show: { outcome in
      show(outcome, for: destination, console)
    }
  }

  private func show(
    _ outcome: MarkOperation.Outcome, for destination: Destination, _ console: Console
  ) {
    if marks.output.quiet { return }
    if outcome.dataClass == .userData || outcome.dataClass == .inbox {
      // Backups to other destinations still contain it.
      let backup =
        destination.isCloud
        ? "backup to the cloud" : destination.isUnencrypted ? "unencrypted backup" : "backup"
      console.warning("\(outcome.path): it is user data, which no \(backup) will contain")
    }
    if !outcome.isOfPlatform {
      console.note("\(outcome.path): only sandboxctl observes the mark on this platform")
    }
  }
}

/// `sandboxctl include PATH…`: removes the marks that exclude entries from backups.
struct IncludeCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "include",
      abstract: "Remove the marks that exclude files and directories from backups",
      usage: "sandboxctl include <path> ... [--root <dir>] [<options>]",
      discussion: """
        Removes all attributes of an entry by which the policy excludes data from backups, and the \
        file CACHEDIR.TAG in a directory if it is a tag. A mark on a directory above the entry \
        still covers it, and is reported. What a rule of the policy excludes stays excluded: \
        'explain' shows the rule.

        \(Examples.text([
          "sandboxctl include darkroom/Documents/Originals/IMG_0001.DNG --root device",
          "sandboxctl include podcast/Documents --root device --dry-run --json",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The entries, as for 'explain'.", valueName: "path"))
  var paths: [ByteString]

  @OptionGroup var marks: MarkOptions

  func run(_ console: Console) throws -> ExitStatus {
    let verb = marks.dryRun ? "would remove the mark" : "removed the mark"
    return try marks.change(paths, verb: verb, console) { operation in
      try operation.include(dryRun: marks.dryRun)
    } show: { outcome in
      if marks.output.quiet { return }
      for path in outcome.stillMarked {
        console.warning("\(outcome.path): the mark on '\(path)' still excludes it")
      }
      if outcome.isStored == false, outcome.stillMarked.isEmpty {
        console.note("\(outcome.path): a rule excludes it; 'sandboxctl explain' shows the rule")
      }
    }
  }
}

/// The destination to which a mark applies.
struct MarkDestinationOptions: ParsableArguments {
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "Exclude only from backups to this destination: cloud or unencrypted (default: all).",
      valueName: "destination"),
    completion: .list(["cloud", "unencrypted"]))
  var name: String?

  var destination: Destination {
    get throws {
      switch name {
      case nil: return Destination()
      case "cloud": return Destination(isCloud: true)
      case "unencrypted": return Destination(isUnencrypted: true)
      case let word?:
        throw UsageError(
          .invalidValue, "there is no destination '\(ByteString(word))'",
          hint: "choose 'cloud' or 'unencrypted'")
      }
    }
  }
}

/// The common part of `exclude` and `include`.
struct MarkOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Show what would change, without changing it.")
  var dryRun = false

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var output: OutputOptions

  /// Changes the marks of entries one after another. A failure does not stop the others.
  ///
  /// - Parameter verb: the words before the names of the changed marks.
  func change(
    _ paths: [ByteString], verb: String, _ console: Console,
    by change: (MarkOperation) throws -> MarkOperation.Outcome,
    show: (MarkOperation.Outcome) -> Void
  ) throws -> ExitStatus {
    let found = try device.find(for: paths)
    console.warn(ofInterruptedOn: found)
    let compiled = try policy.compile(for: found, output, console)
    // All paths first, so that a mistake in one does not leave the work half done.
    let operations = try paths.map { path in
      try MarkOperation(DevicePath(path, on: found).logical, on: found, policy: compiled)
    }
    var failures = 0
    for operation in operations {
      do {
        let outcome = try change(operation)
        try write(outcome, verb: verb, console)
        show(outcome)
      } catch let error as OperationError where operations.count > 1 {
        failures += 1
        console.warning(error.description)
      }
    }
    return failures == 0 ? .done : failures == operations.count ? .failed : .doneInPart
  }

  private func write(
    _ outcome: MarkOperation.Outcome, verb: String, _ console: Console
  ) throws {
    if output.json {
      return try console.result(
        .object(
          JSON.path(outcome.path) + [
            JSON.Member("dry_run", .bool(dryRun)),
            JSON.Member("marks", .array(outcome.changed.map { .string($0) })),
            JSON.Member("stored", outcome.isStored.map { .bool($0) } ?? .null),
            JSON.Member(
              "still_marked",
              .array(outcome.stillMarked.map { .object(JSON.path($0)) })),
          ]))
    }
    if output.quiet { return }
    let marks = outcome.changed.joined(separator: ", ")
    let text = outcome.changed.isEmpty ? "nothing to change" : "\(verb) \(marks)"
    try console.result("\(outcome.path): \(text)")
  }
}
