internal import ArchiveStore
internal import ArgumentParser

/// The options of a command that changes a repository, or shows the changes without making them.
struct RepositoryChangeOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
  var dryRun = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  /// Runs the operation with a progress display, which counts items called `noun`. A signal stops
  /// it early.
  func run<Report>(
    counting noun: String = "file",
    _ body: (ProgressCounters, @escaping @Sendable () -> Bool) throws -> Report
  ) throws -> Report {
    let counters = ProgressCounters(of: noun)
    return try progress.run(counters, output) { try body(counters, $0) }
  }
}
