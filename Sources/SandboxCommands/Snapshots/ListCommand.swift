internal import ArchiveStore
internal import ArgumentParser
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl ls SNAP[:PATH]`: lists the contents of a snapshot.
struct ListCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "ls",
      abstract: "List the contents of a snapshot",
      usage: "sandboxctl ls <snap[:path]> [--recursive] [--long] [<options>]",
      discussion: """
        \(SnapshotPath.help)

        Lists the entries of a directory with mode, size, time and path, with --recursive all \
        entries below it. A directory that cannot be read is reported, and the exit status is 13.

        \(Examples.text([
          "sandboxctl ls latest --repo repo", "sandboxctl ls latest:apps --recursive --repo repo",
          "sandboxctl ls latest:apps/org.example.notebook --long --repo repo",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The snapshot and a path in it.", valueName: "snap[:path]"))
  var what: ByteString

  @Flag(name: .shortAndLong, help: "List all entries below the path.")
  var recursive = false

  @Flag(
    name: .shortAndLong,
    help: "Also show owner, group, sizes in bytes, seconds and the class of data protection.")
  var long = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ReadingOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let snapshotPath = try SnapshotPath(what)
    let query = try progress.open(repository, console, isQuiet: output.quiet)
    let stored = try query.find(snapshotPath.name, fitting: snapshotPath.fits)
    let top = try snapshotPath.logicalPath(in: stored.snapshot)
    let reader = try query.beginReading()
    defer { console.warn(of: reader.remarks) }
    var line = ListingLine(names: long ? ListingLine.OwnerNames(stored.snapshot) : nil)
    // Read once, since the wrapper of an option is slow.
    let (isJSON, visit) = (output.json, recursive ? TreeWalk.Step.enter : .skip)
    let show = { (entry: TreeEntry, path: ByteString) throws in
      if isJSON { return try console.result(entry.json(at: path)) }
      line.set(entry, at: path)
      try console.result(bytes: line.bytes.span)
    }
    switch try reader.source(top, in: stored) {
    case .single(let entry): try show(entry, top)
    case .directory(let tree, _):
      var losses = ExitStatus.done
      try reader.walkPastDamage(tree) { path, finding in
        let path = top.appending(path)
        switch finding {
        case .entry(let entry): try show(entry, path)
        case .damage(let error), .lost(_, let error):
          losses = .together([losses, ExitStatus(without: [error])])
          console.warning("\(error.lossLabel): \(path.isEmpty ? "." : path): \(error.reason)")
        }
        return visit
      }
      return losses
    }
    return .done
  }
}
