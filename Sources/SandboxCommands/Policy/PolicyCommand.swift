internal import ArgumentParser

/// `sandboxctl policy …`: the rules by which everything is decided.
struct PolicyCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "policy",
      abstract: "List, show and check policies",
      discussion: """
        A policy is a file of rules that gives every path a data class and says what becomes of it; \
        sandboxctl-policy(5) describes it. The program brings some; files in \
        ~/.config/sandboxctl/policies and /etc/sandboxctl/policies add to them or lie over them.

        \(Examples.text(["sandboxctl policy list", "sandboxctl policy show ios"]))
        """,
      subcommands: [
        PolicyListCommand.self, PolicyShowCommand.self, PolicyLintCommand.self,
        PolicyTestCommand.self, PolicySchemaCommand.self,
      ])
  }
}
