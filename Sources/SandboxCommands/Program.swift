internal import ArgumentParser
internal import SystemIO

/// A command of ours: does its work with a console, and says by its status how it went.
protocol SandboxCommand: ParsableCommand {
  func run(_ console: Console) throws -> ExitStatus
}

/// The program as a whole.
public enum SandboxctlProgram {
  /// Parses the command line, runs the command and ends the program with its exit status.
  public static func runAndExit() -> Never {
    Host.returnLargeBlocks()
    tellOfLostCopies()
    let status = SandboxctlCommand.execute(Host.arguments.map(\.argument))
    SandboxctlCommand.exit(withError: ExitCode(status.rawValue))
  }
}

extension SandboxctlProgram {
  /// Mapped files are the copies of the index and the temporary file of large tables
  /// (`SpillPool`). Where the disk fails to read one, that is an error with a message, not a signal.
  private static func tellOfLostCopies() {
    let directory = Host.cacheDirectory?.appending("sandboxctl") ?? ""
    let message = """
      sandboxctl: error: cannot read a mapped file: a copy of the index in '\(directory)', or the \
      temporary file in /var/tmp
      sandboxctl: hint: check the disks of both; copies of the index can be removed, as they are made \
      again; 'sandboxctl recover' finishes what was interrupted

      """
    // Without a handler the signal ends the program, too.
    try? MappedFile.endAtLoss(saying: message)
  }
}

extension SandboxctlCommand {
  fileprivate static func execute(_ arguments: [String]) -> ExitStatus {
    let console = Console()
    defer { console.end() }
    console.isJSON = arguments.contains("--json")
    var line = ConfiguredCommandLine(arguments)
    var status: ExitStatus
    do {
      line = try ConfiguredCommandLine.read(arguments)
      console.isJSON = line.words.contains("--json")
      status = try perform(line, console).after(passingOverDamage: console.hasSkipped)
    } catch {
      let failure = line.naming(Failure(error, passingOverDamage: console.hasSkipped))
      console.failure(failure)
      status = failure.status
    }
    warnOfUnsyncedDirectories(console)
    do {
      try console.flush()
    } catch {
      let failure = Failure(error)
      console.failure(failure)
      try? console.flush()
      status = failure.status
    }
    return status
  }

  /// Warns once of a file system on which what was written may not outlast a power failure.
  private static func warnOfUnsyncedDirectories(_ console: Console) {
    guard let directory = UnsyncedDirectories.first else { return }
    console.warning(
      "the file system of '\(Paths.text(directory))' cannot sync folders: after a power failure, what was "
        + "written there last may be missing")
  }

  private static func perform(
    _ line: ConfiguredCommandLine, _ console: Console
  ) throws -> ExitStatus {
    var command: any ParsableCommand
    do {
      command = try parseAsRoot(line.words)
    } catch {
      if exitCode(for: error) != .success, let mistake = line.mistake() { throw mistake }
      return try answer(error, line.given, console)
    }
    if let command = command as? any SandboxCommand {
      try WordChecks.requireText(command, line.words)
      try WordChecks.requireOnce(line.given)
      return try command.run(console)
    }
    do {
      try command.run()
    } catch {
      return try answer(error, line.given, console)
    }
    return .done
  }

  /// Help and versions are results; what is wrong with the words is a usage error.
  private static func answer(
    _ error: any Error, _ arguments: [String], _ console: Console
  ) throws -> ExitStatus {
    if exitCode(for: error) == .success {
      if arguments.first == "help", let unknown = UnknownCommand(arguments) { throw unknown.error }
      try console.result(Examples.atEnd(of: fullMessage(for: error)))
      return .done
    }
    if let unknown = UnknownCommand(arguments) { throw unknown.error }
    throw UsageError(parser: message(for: error), fullMessage(for: error))
  }
}
