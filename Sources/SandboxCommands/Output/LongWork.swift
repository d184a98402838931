internal import ArchiveStore
internal import ArgumentParser
internal import Synchronization
internal import SystemIO

/// The progress options of long operations.
struct ProgressOptions: ParsableArguments {
  @Flag(
    name: .shortAndLong,
    help: "Report progress without a terminal: every minute, or every second with --json.")
  var verbose = false

  /// Runs a long operation with a progress display. A signal stops it early.
  ///
  /// - Parameter body: the operation. It calls `isStopping` often, and throws `interrupted` once
  ///   that returns true.
  func run<Result>(
    _ counters: ProgressCounters, _ output: OutputOptions,
    body: (_ isStopping: @escaping @Sendable () -> Bool) throws -> Result
  ) throws -> Result {
    let display = try ProgressDisplay(counters, manner(output))
    defer { display.end() }
    return try body(StopSignals.isStopping)
  }

  private func manner(_ output: OutputOptions) -> ProgressDisplay.Manner {
    if output.json { return verbose ? .events : .onRequest }
    return output.quiet ? .onRequest : ProgressDisplay.Manner(isVerbose: verbose)
  }
}

extension ProgressDisplay.Manner {
  /// Selects a progress line if the terminal supports it; otherwise a line every minute if
  /// requested.
  init(canDraw: Bool = true, isVerbose: Bool) {
    let isDumb = Host.environment("TERM").map { $0 == "dumb" } ?? true
    let isLine = canDraw && StandardStream.errors().isTerminal && !isDumb
    self = isLine ? .line : isVerbose ? .eachMinute : .onRequest
  }
}

/// A flag that one thread sets and others read.
final class StopFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  var isSet: Bool { flag.load(ordering: .acquiring) }

  func set() { flag.store(true, ordering: .releasing) }
}
