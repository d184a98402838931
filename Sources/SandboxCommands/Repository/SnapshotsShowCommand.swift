internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl snapshots show SNAP`: shows the details of a snapshot.
struct SnapshotsShowCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "show",
      abstract: "Show the details of a snapshot",
      usage: "sandboxctl snapshots show <snap> [<options>]",
      discussion: """
        Prints the snapshot's device, time and policy, its apps and the size of each data class, \
        the data that was excluded with the rule, entries that could not be read, warnings, mounts \
        not entered, and how each database was captured.

        With --json prints the stored document (Snapshot in docs/repository-format.md), preceded \
        by the id.

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
