internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// `sandboxctl ls SNAP[:PATH]`: what is in a snapshot.
struct ListCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "ls",
      abstract: "List what is in a snapshot",
      usage: "sandboxctl ls <snap[:path]> [--recursive] [<options>]",
      discussion: """
        SNAP is at least four characters of an id, latest, or latest~2. PATH is a logical path, as \
        apps/com.example.app/data/Documents; without it the whole snapshot is meant. A folder's \
        entries are listed, with --recursive all that is below it.

        \(Examples.text([
          "sandboxctl ls latest --repo repo", "sandboxctl ls latest:apps --recursive --repo repo",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The snapshot and a path in it.", valueName: "snap[:path]"))
  var what: String

  @Flag(name: .shortAndLong, help: "List all that is below the path.")
  var recursive = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let place = try SnapshotPath(what)
    let repository = try repository.open().repository
    let stored = try repository.snapshot(matching: place.snapshot)
    let reader = try repository.beginReading()
    switch try reader.source(place.path, in: stored) {
    case .single(let entry): try show(entry, at: place.path, console)
    case .folder(let tree, _):
      try reader.walk(tree) { path, entry in
        try show(entry, at: place.path.appending(path), console)
        return recursive ? .enter : .skip
      }
    }
    return .done
  }

  private func show(_ entry: TreeEntry, at path: ByteString, _ console: Console) throws {
    if output.json { return try console.result(entry.json(at: path)) }
    let size = entry.contentSize.map(Sizes.text) ?? ""
    let blanks = String(repeating: " ", count: max(0, 9 - size.count))
    let time = entry.isOfDevice ? Times.text(entry.modified) : String(repeating: " ", count: 16)
    try console.result("\(entry.modeText)  \(blanks)\(size)  \(time)  \(path)\(entry.suffix)")
  }
}
