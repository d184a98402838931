internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// `sandboxctl stats [SNAP]`: shows the size of a repository or a snapshot.
struct StatsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "stats",
      abstract: "Show the size of the snapshots and of the repository",
      usage: "sandboxctl stats [<snap>] [<options>]",
      discussion: """
        For the whole repository: the size of all snapshots together, of the distinct data in \
        them, and of the stored data, with the ratios of deduplication and compression. For one \
        snapshot: files and bytes of each app (or group or directory) and data class.

        With --json prints one object; for a snapshot with rows of owner, class, files and bytes.

        \(Examples.text([
          "sandboxctl stats --repo repo", "sandboxctl stats latest --repo repo",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp("The snapshot to show (default: the whole repository).", valueName: "snap"))
  var snapshot: String?

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ReadingOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let name = try snapshot.map(SnapshotName.init)
    let repository = try repository.open().repository
    let watch = try progress.watch(
      repository, console, of: name == nil ? "blob" : "file", isQuiet: output.quiet)
    if let name {
      return try count(
        name.find(in: repository, console), in: repository, watch: watch, console)
    }
    let statistics = try repository.statistics(cache: repository.hostIndexCache, watch: watch)
    console.warn(of: statistics.damagedIndexes)
    if output.json {
      try console.result(statistics.json)
    } else {
      for line in statistics.lines { try console.result(line) }
    }
    for error in statistics.unreadable { console.warning(error.description) }
    return statistics.unreadable.isEmpty ? .done : .damaged
  }

  private func count(
    _ stored: StoredSnapshot, in repository: Repository, watch: ReadingWatch, _ console: Console
  ) throws -> ExitStatus {
    watch.expectAll(of: stored)
    let reader = try repository.beginCachedReading(watch)
    defer { console.warn(of: reader.remarks) }
    let statistics = try SnapshotStatistics(of: stored, from: reader) { remark in
      console.warning("damaged: \(remark.path.isEmpty ? "." : remark.path): \(remark.remark)")
    }
    if output.json {
      try console.result(statistics.json(stored))
    } else {
      for line in statistics.table.lines { try console.result(line) }
    }
    return statistics.damaged == 0 ? .done : .damaged
  }
}
