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
    if output.quiet { return .onRequest }
    let isDumb = Host.environment("TERM").map { $0 == "dumb" } ?? true
    if StandardStream.errors().isTerminal, !isDumb { return .line }
    return verbose ? .eachMinute : .onRequest
  }
}

/// A flag that one thread sets and others see.
final class StopFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  var isSet: Bool { flag.load(ordering: .acquiring) }

  func set() { flag.store(true, ordering: .releasing) }
}
