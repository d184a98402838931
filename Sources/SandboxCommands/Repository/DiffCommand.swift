internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// `sandboxctl diff SNAP SNAP [PATH]`: what has changed from one snapshot to another.
struct DiffCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "diff",
      abstract: "Tell what differs between two snapshots",
      usage: "sandboxctl diff <snap> <snap> [<path>] [--metadata] [<options>]",
      discussion: """
        Lists, for all of both snapshots or for a logical path, what was added (+), removed (-), \
        modified (M, its content) or replaced by something of another type (T). With --metadata also \
        what has the same content under another mode, owner, time, flag or attribute (U). Directories \
        that are the same in both are not read. Of several devices latest is the one that was backed \
        up last, which is said, and latest~1 the one before it of the same device.

        With --json each difference is a line: path, change (added, removed, content, metadata, \
        type), differs (content, mode, owner, group, modified, attributes, flags, links), before and \
        after as 'ls --json' has them, without the path. The last line is the summary.

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

  @Argument(help: "The logical path to compare; without it all is compared.")
  var path: ByteString?

  @Flag(name: .shortAndLong, help: "List what differs in metadata alone, too.")
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
