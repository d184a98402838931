internal import ArchiveStore
internal import ArgumentParser
internal import Synchronization
internal import SystemIO

/// How long work tells how far it is.
struct ProgressOptions: ParsableArguments {
  @Flag(
    name: .shortAndLong,
    help: "Without a terminal, say each minute how far it is; with --json, each second.")
  var verbose = false

  /// Runs work that takes long: it shows how far it is and ends early when a signal asks it to.
  ///
  /// - Parameter body: asks often whether it is to stop; then it ends as `interrupted`.
  func run<Result>(
    _ counters: ProgressCounters, _ output: OutputOptions,
    _ body: (_ isStopping: @escaping @Sendable () -> Bool) throws -> Result
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
  /// How a person is shown it: by a line where the terminal can have one, else each minute if that is
  /// wanted.
  init(canDraw: Bool = true, isVerbose: Bool) {
    let isDumb = Host.environment("TERM").map { $0 == "dumb" } ?? true
    let isLine = canDraw && StandardStream.errors().isTerminal && !isDumb
    self = isLine ? .line : isVerbose ? .eachMinute : .onRequest
  }
}

/// A flag that one thread sets and others see.
final class StopFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  var isSet: Bool { flag.load(ordering: .acquiring) }

  func set() { flag.store(true, ordering: .releasing) }
}
