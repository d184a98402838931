internal import ArgumentParser
internal import SystemIO

/// The program.
package enum SandboxctlProgram {
  /// Parses the command line, runs the command and ends the program with its exit status.
  package static func runAndExit() -> Never {
    try? StandardStream.occupyClosed()
    Host.returnLargeBlocks()
    reportLostMappings()
    // Without these, signals end the program at once, and leave leases to expire and staged files.
    try? StandardStream.holdBrokenPipe()
    try? StandardStream.failAtSizeLimit()
    guard let status = SandboxctlCommand.execute(Host.arguments.map(\.argument)) else {
      StandardStream.endByBrokenPipe()
    }
    SandboxctlCommand.exit(withError: ExitCode(status.rawValue))
  }
}

extension SandboxctlProgram {
  /// Reports a failed read of a mapped file as an error instead of a signal. Mapped files are the
  /// copies of the index and the temporary file of large tables (`SpillPool`).
  private static func reportLostMappings() {
    let directory = Host.cacheDirectory?.appending("sandboxctl") ?? ""
    let message = """
      sandboxctl: error: cannot read a mapped file: a copy of the index in '\(directory)', or the \
      temporary file in /var/tmp
      sandboxctl: hint: check the disks of both; the copies of the index can be deleted and are \
      then rebuilt; 'sandboxctl recover' finishes an interrupted operation

      """
    // Without the handler the signal still ends the program.
    try? MappedFile.exitOnReadFailure(saying: message)
  }
}

extension SandboxctlCommand {
  /// Returns the exit status, or nil if the reader of standard output has ended and no other
  /// failure was reported.
  fileprivate static func execute(_ arguments: [String]) -> ExitStatus? {
    let console = Console(root: Self.self)
    defer { console.end() }
    console.isJSON = arguments.contains("--json")
    console.givenOptions = OptionNeed.names(in: arguments)
    var line = ConfiguredCommandLine(arguments)
    var (status, hasFailed) = (ExitStatus.done, false)
    do {
      line = try ConfiguredCommandLine.read(arguments, of: Self.self)
      console.isJSON = line.words.contains("--json")
      console.showOutages()
      status = try perform(line, console).after(skipping: console.skippedStatus)
    } catch {
      let failure = line.naming(
        Failure(error, passingOverDamage: console.skippedStatus == .damaged))
      (status, hasFailed) = (failure.status, report(failure, of: error, console))
    }
    warnOfUnsyncedDirectories(console)
    warnOfUnreadFlags(console)
    do {
      try console.flush()
    } catch {
      let failure = Failure(error)
      if report(failure, of: error, console) { (status, hasFailed) = (failure.status, true) }
      try? console.flush()
    }
    return StandardStream.hasLostReader && !hasFailed ? nil : status
  }

  /// Prints a failure, unless it merely results from the end of the reader of standard output, as
  /// in `sandboxctl dump … | head`. Returns whether it was printed.
  private static func report(
    _ failure: Failure, of error: any Error, _ console: Console
  ) -> Bool {
    let cause = error as? SystemError ?? failure.cause
    let follows = failure.status == .interrupted || cause?.isBrokenPipe == true
    if StandardStream.hasLostReader, follows { return false }
    console.failure(failure)
    return true
  }

  /// Warns once about a file system that cannot sync directories.
  private static func warnOfUnsyncedDirectories(_ console: Console) {
    guard let directory = UnsyncedDirectories.first else { return }
    console.warning(
      "the file system of '\(Paths.text(directory))' cannot sync directories: the latest changes "
        + "there may be lost in a power failure")
  }

  /// Warns once about file flags that a sandbox forbids to read.
  private static func warnOfUnreadFlags(_ console: Console) {
    guard let file = UnreadFlags.first else { return }
    console.warning(
      "a sandbox or the file system forbids reading all flags (chattr) of '\(Paths.text(file))': "
        + "flags that are unknown, such as 'no access time', are neither stored nor compared")
  }

  private static func perform(
    _ line: ConfiguredCommandLine, _ console: Console
  ) throws -> ExitStatus {
    var command: any ParsableCommand
    do {
      command = try parseAsRoot(line.words)
    } catch {
      if exitCode(for: error) != .success, let mistake = line.mistake() { throw mistake }
      return try answer(error, to: line.given, console)
    }
    if let command = command as? any SandboxCommand {
      try command.requireText(in: line.words)
      try KnownCommand(Self.self).requireOnce(line.given)
      try command.requireEffect(of: line.given, in: line.words)
      return try command.run(console)
    }
    do {
      try command.run()
    } catch {
      return try answer(error, to: line.given, console)
    }
    return .done
  }

  private static func unknownCommand(in arguments: [String]) -> UsageError? {
    KnownCommand(Self.self).unknownCommand(in: arguments)
  }

  /// Prints help and versions as results.
  ///
  /// - Throws: `UsageError` for a mistake in the arguments.
  private static func answer(
    _ error: any Error, to arguments: [String], _ console: Console
  ) throws -> ExitStatus {
    if exitCode(for: error) == .success {
      if arguments.first == "help", let unknown = unknownCommand(in: arguments) { throw unknown }
      try console.result(Examples.atEnd(of: fullMessage(for: error)))
      return .done
    }
    if let unknown = unknownCommand(in: arguments) { throw unknown }
    throw KnownCommand(Self.self).mistake(error, in: arguments)
  }
}

/// The root command, with all commands by group.
struct SandboxctlCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "sandboxctl",
      abstract: "Back up, restore and understand the data of sandboxed apps",
      discussion: """
        sandboxctl classifies the files of sandboxed apps by policy, backs up the data that cannot \
        be recreated into a repository of ordinary archives, and restores it. It also installs, \
        updates and removes apps together with their data, and deletes caches.

        \(Examples.text([
          "sandboxctl sample device",
          "sandboxctl apps --root device",
          "sandboxctl init repo --plain",
          "sandboxctl backup --root device --repo repo",
          "sandboxctl restore latest --to restored --repo repo",
        ]))
        """,
      version: Version.text,
      groupedSubcommands: [
        CommandGroup(
          name: "Everyday",
          subcommands: [BackupCommand.self, RestoreCommand.self, ScheduleCommand.self]),
        CommandGroup(
          name: "Repository",
          subcommands: [
            InitCommand.self, SnapshotsCommand.self, ListCommand.self, DiffCommand.self,
            FindCommand.self, VersionsCommand.self, DumpCommand.self, StatsCommand.self,
            MountCommand.self,
            ForgetCommand.self, PruneCommand.self, CopyCommand.self, MirrorCommand.self,
            CheckCommand.self, RepairCommand.self, KeyCommand.self, LeasesCommand.self,
            CacheCommand.self,
            ImportCommand.self, ExportCommand.self,
          ]),
        CommandGroup(
          name: "App lifecycle",
          subcommands: [
            InstallCommand.self, UpdateCommand.self, RollbackCommand.self, OffloadCommand.self,
            ReinstallCommand.self, UninstallCommand.self, PurgeCommand.self, RecoverCommand.self,
            TrashCommand.self,
            MigrateCommand.self,
          ]),
        CommandGroup(
          name: "Device and policy",
          subcommands: [
            AppsCommand.self, ClassifyCommand.self, ExplainCommand.self, PolicyCommand.self,
            AuditCommand.self, ExcludeCommand.self, IncludeCommand.self,
            InterAppCommand.self,
            ScenarioCommand.self,
          ]),
        CommandGroup(name: "Sample data", subcommands: [SampleCommand.self]),
      ]
    )
  }
}
