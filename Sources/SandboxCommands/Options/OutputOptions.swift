internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import RemoteStorage
internal import SnapshotQueries
internal import SystemIO

/// The form of a command's output.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON, one object per line.")
  var json = false

  @Flag(name: .shortAndLong, help: "Omit notes and summaries.")
  var quiet = false

  @Option(help: Self.profileHelp)
  var profile: String?

  /// The help of `--profile`, also for commands that have no other of these options.
  static var profileHelp: ArgumentHelp {
    ArgumentHelp("Use the options of this profile of the configuration file.", valueName: "name")
  }
}

extension OutputOptions {
  /// Prints a result: as JSON, or as lines of text, which '--quiet' omits.
  func show(
    _ json: @autoclosure () -> [JSON], lines: @autoclosure () -> [String], _ console: Console
  ) throws {
    if self.json {
      for line in json() { try console.result(line) }
    } else if !quiet {
      for line in lines() { try console.result(line) }
    }
  }
}

/// The length of lists in text output.
struct ListOptions: ParsableArguments {
  @Flag(help: "List everything (default: the 20 largest, and a count of the others).")
  var all = false
}

/// The progress options of long operations.
struct ProgressOptions: ParsableArguments {
  @Flag(
    name: .shortAndLong,
    help: "Report progress even without a terminal: every minute, or every second with --json.")
  var verbose = false

  /// Runs a long operation with a progress display. A signal stops it early.
  ///
  /// - Parameter body: the operation. It calls `isStopping` often, and throws `interrupted` once
  ///   that returns true.
  func run<Result>(
    _ counters: ProgressCounters, _ output: OutputOptions,
    body: (_ isStopping: @escaping @Sendable () -> Bool) throws -> Result
  ) throws -> Result {
    let display = try ProgressDisplay(counters, manner(output), isJSON: output.json)
    defer {
      display.end()
      if !output.json { report() }
    }
    return try body(StopSignals.isStopping)
  }

  /// Plans an operation, or scans for a query, with a progress display. Shows the progress in
  /// directories, whose number is not known in advance. A signal ends the command.
  ///
  /// - Parameters:
  ///   - action: the command's action as a noun, for the error if it is interrupted.
  ///   - body: the planning, which begins no change. It calls `isStopping` for each directory, and
  ///     may return an unusable result once that returns true.
  func plan<Result>(
    _ action: String, _ output: OutputOptions,
    body: (_ isStopping: @escaping @Sendable () -> Bool) throws -> Result
  ) throws -> Result {
    let counters = ProgressCounters(of: "directory")
    return try run(counters, output) { isStopping in
      let result = try body {
        counters.didHandle(files: 1)
        return isStopping()
      }
      if isStopping() {
        throw OperationError(
          .interrupted, "the \(action) was interrupted", hint: "run it again")
      }
      return result
    }
  }

  /// Reports the transfers from and to other hosts, if requested.
  private func report() {
    let transfers = TransferCounts.ofProcess.state
    guard verbose, !transfers.isEmpty else { return }
    DrawnLine.write("sandboxctl: \(transfers.text)")
  }

  private func manner(_ output: OutputOptions) -> ProgressDisplay.Manner {
    if output.json { return verbose ? .events : .onRequest }
    return output.quiet ? .onRequest : ProgressDisplay.Manner(isVerbose: verbose)
  }
}

/// The progress options of commands that only read a repository.
struct ReadingOptions: ParsableArguments {
  @Flag(
    name: .shortAndLong,
    help: "Report progress every minute if there is no progress line on the terminal.")
  var verbose = false

  /// Opens a repository for a query.
  func open(
    _ repository: RepositoryOptions, _ console: Console, of noun: String = "file", isQuiet: Bool,
    isBytes: Bool = false
  ) throws -> SnapshotQuery {
    try query(
      of: repository.open(console, firstListings: Repository.listedByQueries).repository, console,
      of: noun, isQuiet: isQuiet, isBytes: isBytes)
  }

  /// These options as those of a long operation.
  var ofOperations: ProgressOptions {
    var options = ProgressOptions()
    options.verbose = verbose
    return options
  }

  /// Begins queries of a repository that is open.
  func query(
    of repository: Repository, _ console: Console, of noun: String = "file", isQuiet: Bool,
    isBytes: Bool = false
  ) throws -> SnapshotQuery {
    SnapshotQuery(
      repository, finder: SnapshotFinder(repository, console),
      watch: try watch(repository, console, of: noun, isQuiet: isQuiet, isBytes: isBytes),
      indexCache: { repository.hostIndexCache })
  }

  /// Starts the progress display for reading, until its results are printed. A signal ends the
  /// reading.
  ///
  /// No progress line is drawn if the results go to a pipe: its reader, such as a pager, may use
  /// the same terminal, and may end the command by exiting. Nor is one drawn if bytes go to a
  /// terminal.
  private func watch(
    _ repository: Repository, _ console: Console, of noun: String, isQuiet: Bool, isBytes: Bool
  ) throws -> ReadingWatch {
    let watch = ReadingWatch(repository, of: noun, isStopping: StopSignals.isStopping)
    let isApart = console.goesToFile || (console.isTerminal && !isBytes)
    let isSilent = isQuiet || console.isJSON
    try console.show(
      watch,
      isSilent ? .onRequest : ProgressDisplay.Manner(canDraw: isApart, isVerbose: verbose))
    return watch
  }
}

extension ReadingWatch {
  /// Sets the expected number of files to that of a snapshot.
  func expectAll(of stored: StoredSnapshot, bytes: UInt64 = 0) {
    counters.expect(files: Int(clamping: stored.snapshot.totals.files), bytes: bytes)
  }
}
