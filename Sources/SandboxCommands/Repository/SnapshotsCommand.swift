internal import ArgumentParser

/// `sandboxctl snapshots`: lists and shows snapshots.
struct SnapshotsCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "snapshots",
      abstract: "List the snapshots of a repository",
      discussion: """
        Without a subcommand the snapshots are listed, with the options of 'snapshots list'.

        \(Examples.text([
          "sandboxctl snapshots --repo repo", "sandboxctl snapshots show latest --repo repo",
        ]))
        """,
      subcommands: [SnapshotsListCommand.self, SnapshotsShowCommand.self],
      defaultSubcommand: SnapshotsListCommand.self)
  }
}
