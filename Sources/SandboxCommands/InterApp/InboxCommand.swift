internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// `sandboxctl interapp inbox`: shows and changes the inboxes of apps.
struct InboxCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "inbox",
      abstract: "List, check, claim or clean the inboxes of apps",
      discussion: """
        The inbox of an app, Documents/Inbox, contains the files that were passed to it. The app \
        may read and delete them, but not write them; it moves them to its Documents directory to \
        change them.

        \(Examples.text([
          "sandboxctl interapp inbox list --root device",
          "sandboxctl interapp inbox claim report.pdf --app notebook --root device",
        ]))
        """,
      subcommands: [List.self, Check.self, Claim.self, Clean.self])
  }
}

/// The device, and the app whose inbox is meant.
struct InboxOptions: ParsableArguments {
  @Option(help: .app("Only the inbox of this app"))
  var app: ByteString?

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  /// In other commands `--app` selects the apps to back up or restore.
  static let own: Set<String> = ["app"]

  /// Returns the inboxes of the app, or of all apps with data.
  ///
  /// - Throws: `OperationError` if the layout has no inboxes.
  func inboxes(_ console: Console) throws -> [Inbox] {
    let found = try device.find()
    console.warn(ofInterruptedOn: found)
    if let app { return [try Inbox(of: found.appWithInbox(app), on: found)] }
    guard found.layout == .coreSimulator else {
      throw UsageError(
        .layoutUnsupported, "the layout '\(found.layout.rawValue)' has no inboxes",
        hint: "these commands need a device of the layout coresimulator")
    }
    return found.apps.compactMap { try? Inbox(of: $0, on: found) }
  }

  /// Performs work for each inbox. An app can replace its inbox by a link or a file: without
  /// `--app`, such an inbox is reported in a warning, and the others are processed.
  ///
  /// - Returns: The results, and `doneInPart` if the work failed for an inbox.
  /// - Throws: `OperationError` if it failed for the inbox of `--app`.
  func each<Result>(
    of inboxes: [Inbox], _ console: Console, _ work: (Inbox) throws -> Result
  ) throws -> (results: [Result], status: ExitStatus) {
    var results: [Result] = []
    for inbox in inboxes {
      do {
        results.append(try work(inbox))
      } catch let error as OperationError where app == nil {
        console.warning("\(inbox.app.identifier): \(error)")
      }
    }
    return (results, results.count == inboxes.count ? .done : .doneInPart)
  }

  /// Performs work for each inbox of `inboxes(_:)`.
  func each<Result>(
    _ console: Console, _ work: (Inbox) throws -> Result
  ) throws -> (results: [Result], status: ExitStatus) {
    try each(of: inboxes(console), console, work)
  }
}

extension InboxCommand {
  /// `sandboxctl interapp inbox list`: lists the files.
  struct List: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "list",
        abstract: "List the files of inboxes",
        usage: "sandboxctl interapp inbox list [--app <app>] [--root <dir>] [<options>]",
        discussion: """
          Prints a line for each file: its state, its size, and when it was delivered.

          \(Examples.text(["sandboxctl interapp inbox list --root device --json"]))
          """)
    }

    static var ownOptions: Set<String> { InboxOptions.own }

    @OptionGroup var inbox: InboxOptions
    @OptionGroup var list: ListOptions

    func run(_ console: Console) throws -> ExitStatus {
      let (found, status) = try inbox.each(console) { inbox in
        try inbox.files().filter { $0.state != .removed }.map { (inbox, $0) }
      }
      try InboxFilesText(
        Array(found.joined()), inbox.output, listsAll: list.all, isComplete: status == .done
      ).write(console)
      return status
    }
  }

  /// `sandboxctl interapp inbox check`: finds files that were written to.
  struct Check: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "check",
        abstract: "Find files of inboxes that were written to",
        usage: "sandboxctl interapp inbox check [--app <app>] [--root <dir>] [<options>]",
        discussion: """
          Compares the files with what was delivered, by size, hash and mode. The exit status is 5 \
          if one was changed or made writable, which the platform does not permit. Missing files, \
          and files that this program did not deliver, are listed but do not affect the exit status.

          \(Examples.text(["sandboxctl interapp inbox check --app notebook --root device"]))
          """)
    }

    static var ownOptions: Set<String> { InboxOptions.own }

    @OptionGroup var inbox: InboxOptions
    @OptionGroup var list: ListOptions

    func run(_ console: Console) throws -> ExitStatus {
      let (found, status) = try inbox.each(console) { inbox in
        try inbox.files().map { (inbox, $0) }
      }
      let files = Array(found.joined())
      try InboxFilesText(
        files, inbox.output, listsAll: list.all, isComplete: status == .done
      ).write(console)
      return files.contains { $0.1.state.isViolation } ? .goalNotMet : status
    }
  }

  /// `sandboxctl interapp inbox claim NAME… --app APP`: moves files to Documents.
  struct Claim: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "claim",
        abstract: "Move files from an inbox to Documents",
        usage: "sandboxctl interapp inbox claim <name> ... --app <app> [--root <dir>] [<options>]",
        discussion: """
          Moves the files to the app's Documents directory, as the app does before it changes them, \
          with the mode 0644. A name that is in use there gets -1, -2, … before its extension. \
          Nothing is moved if one of the names is not in the inbox, or while the app is running.

          \(Examples.text([
            "sandboxctl interapp inbox claim report.pdf --app notebook --root device"
          ]))
          """)
    }

    static var ownOptions: Set<String> { InboxOptions.own }

    @Argument(help: ArgumentHelp("The names of the files.", valueName: "name"))
    var names: [ByteString]

    @Flag(name: .shortAndLong, help: "Show what would be moved, without moving.")
    var dryRun = false

    @OptionGroup var inbox: InboxOptions

    func run(_ console: Console) throws -> ExitStatus {
      guard inbox.app != nil, let target = try inbox.inboxes(console).first else {
        throw UsageError(
          .optionRequired, "the app is missing", hint: "name it with --app")
      }
      for move in try target.claim(names, dryRun: dryRun) {
        try move.write(from: target, dryRun: dryRun, operation: nil, inbox.output, console)
      }
      return .done
    }
  }

  /// `sandboxctl interapp inbox clean`: moves old files to the trash.
  struct Clean: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "clean",
        abstract: "Move old files of inboxes to the trash",
        usage: "sandboxctl interapp inbox clean [--app <app>] [--root <dir>] [<options>]",
        discussion: """
          Moves files that were delivered more than 30 days ago, or before --older-than, to the \
          trash of the device, after asking; without a terminal, --yes is needed. Files that were \
          written to are kept, since they can be the only copy of the user's work: claim them.

          \(Examples.text([
            "sandboxctl interapp inbox clean --root device --older-than 7d --dry-run",
            "sandboxctl interapp inbox clean --app notebook --root device --yes",
          ]))
          """)
    }

    static var ownOptions: Set<String> { InboxOptions.own }

    @Option(
      help: ArgumentHelp("The age, for example 7d or 12h (default: 30d).", valueName: "time"))
    var olderThan: TimeSpan?

    @Flag(name: .shortAndLong, help: "Show what would be moved, without moving.")
    var dryRun = false

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @OptionGroup var inbox: InboxOptions

    /// 30 days, in seconds.
    private static let usualAge: Double = 30 * 24 * 3600

    private var age: Double { olderThan?.seconds ?? Self.usualAge }

    func run(_ console: Console) throws -> ExitStatus {
      let (all, status) = try inbox.each(console) { inbox in
        (inbox: inbox, files: try inbox.removable(olderThan: age))
      }
      let found = all.filter { !$0.files.isEmpty }
      for (target, files) in found where dryRun || !yes {
        for file in files {
          if dryRun || !inbox.output.json {
            try Inbox.Move(toTrash: file).write(
              from: target, dryRun: true, operation: nil, inbox.output, console)
          }
        }
      }
      if found.isEmpty {
        if !inbox.output.json, !inbox.output.quiet {
          let place = status == .done ? "" : " in the inboxes that can be read"
          try console.result("nothing is old enough\(place)")
        }
        return status
      }
      if dryRun { return status }
      guard try isConfirmed(console) else { return .failed }
      let names = Dictionary(
        uniqueKeysWithValues: found.map { ($0.inbox.path(), Set($0.files.map(\.name))) })
      let cleaned = try inbox.each(of: found.map(\.inbox), console) { target in
        let (moves, operation) = try target.clean(names[target.path()] ?? [], olderThan: age)
        for move in moves {
          try move.write(
            from: target, dryRun: false, operation: operation, inbox.output, console)
        }
      }
      return status == .done ? cleaned.status : status
    }

    private func isConfirmed(_ console: Console) throws -> Bool {
      if yes { return true }
      guard console.canAsk else {
        throw UsageError(
          .terminalRequired, "files would be moved to the trash, and there is no terminal to ask",
          hint: "confirm with --yes, or use --dry-run")
      }
      return try console.confirm("Move these files to the trash?")
    }
  }
}
