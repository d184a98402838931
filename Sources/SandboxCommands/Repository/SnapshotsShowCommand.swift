internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl snapshots show SNAP`: all that a snapshot says of itself.
struct SnapshotsShowCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "show",
      abstract: "Show all that a snapshot says of itself",
      usage: "sandboxctl snapshots show <snap> [<options>]",
      discussion: """
        What it was made of, when and by which policy; the apps and the bytes of each data class in \
        it; what was left out by which rule, what could not be read, warnings, mounts that were not \
        entered, and how each database was captured.

        With --json it is the stored document (docs/repository-format.md, Snapshot) with the id \
        before it.

        \(Examples.text(["sandboxctl snapshots show latest --repo repo"]))
        """)
  }

  @Argument(help: ArgumentHelp("The snapshot.", valueName: "snap"))
  var snapshot: String

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let name = try SnapshotName(snapshot)
    let stored = try name.find(in: repository.open().repository, console)
    if output.json {
      let members = stored.snapshot.json.members ?? []
      try console.result(.object([JSON.Member("id", .string(stored.id.hex))] + members))
    } else {
      for line in SnapshotText(stored, listsAll: list.all).lines { try console.result(line) }
    }
    return .done
  }
}
