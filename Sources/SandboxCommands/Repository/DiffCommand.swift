internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// `sandboxctl diff SNAP SNAP [PATH]`: shows the differences between two snapshots.
struct DiffCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "diff",
      abstract: "Show the differences between two snapshots",
      usage: "sandboxctl diff <snap> <snap> [<path>] [--metadata] [<options>]",
      discussion: """
        Lists the entries that were added (+), removed (-), modified (M, content) or replaced by \
        an entry of another type (T), in the whole snapshots or below a logical path. With \
        --metadata also lists entries with equal content but another mode, owner, time, flag or \
        attribute (U). Directories that are equal in both are not read.

        'latest' is the snapshot that was made last, of any device; latest~1 is the one before it \
        of the same device.

        \(Examples.text([
          "sandboxctl backup --root device --repo repo", "sandboxctl sample device --day 1",
          "sandboxctl backup --root device --repo repo",
          "sandboxctl diff latest~1 latest --repo repo",
          "sandboxctl diff latest~1 latest apps/org.example.notebook --repo repo",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The snapshot to compare from.", valueName: "snap"))
  var first: String

  @Argument(help: ArgumentHelp("The snapshot to compare with.", valueName: "snap"))
  var second: String

  @Argument(help: "The logical path to compare (default: the whole snapshots).")
  var path: ByteString?

  @Flag(name: .shortAndLong, help: "Also list differences in metadata only.")
  var metadata = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ReadingOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let (first, second) = (try SnapshotName(first), try SnapshotName(second))
    let repository = try repository.open().repository
    let watch = try progress.watch(repository, console, isQuiet: output.quiet)
    let finder = SnapshotFinder(repository, console)
    let (before, after) = (try finder.find(first), try finder.find(second))
    let path = path ?? ""
    let logical = try (try? before.snapshot.logicalPath(path)) ?? after.snapshot.logicalPath(path)
    let reader = try repository.beginCachedReading(watch)
    defer { console.warn(of: reader.remarks) }
    let comparison = try SnapshotComparison(before, after, path: logical, from: reader)
    var summary = DifferenceSummary()
    try comparison.run { finding in
      switch finding {
      case .difference(let difference):
        summary.count(difference)
        if difference.kind != .metadata || metadata { try show(difference, console) }
      case .damage(let path, let error):
        summary.damaged += 1
        console.warning("damaged: \(path.isEmpty ? "." : path): \(error.reason)")
      }
    }
    if output.json {
      try console.result(summary.json)
    } else if !output.quiet {
      try console.result(summary.text(listsMetadata: metadata))
    }
    return summary.damaged == 0 ? .done : .damaged
  }

  private func show(_ difference: SnapshotDifference, _ console: Console) throws {
    if output.json { return try console.result(difference.json) }
    try console.result(difference.text)
  }
}
