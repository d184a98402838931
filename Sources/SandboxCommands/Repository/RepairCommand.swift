internal import ArgumentParser

/// `sandboxctl repair`: repairs a damaged repository.
struct RepairCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "repair",
      abstract: "Repair a damaged repository",
      discussion: """
        'sandboxctl check' lists the damage and the files it affects. Data in intact packs can be \
        restored regardless of other damage; a repair makes it fast to find again.

        \(Examples.text([
          "sandboxctl repair index --repo repo", "sandboxctl repair packs --repo repo",
        ]))
        """,
      subcommands: [RepairIndexCommand.self, RepairPacksCommand.self])
  }
}
