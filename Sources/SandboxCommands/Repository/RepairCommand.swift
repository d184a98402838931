internal import ArgumentParser

/// `sandboxctl repair`: what can be made good in a damaged repository.
struct RepairCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "repair",
      abstract: "Make good what can be in a damaged repository",
      discussion: """
        'sandboxctl check' says what is damaged and what that costs. What lies in packs that are \
        whole can be restored whatever else is damaged; a repair makes it as quick to find as before.

        \(Examples.text([
          "sandboxctl repair index --repo repo", "sandboxctl repair packs --repo repo",
        ]))
        """,
      subcommands: [RepairIndexCommand.self, RepairPacksCommand.self])
  }
}
