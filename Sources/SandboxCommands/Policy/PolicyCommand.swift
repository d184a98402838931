internal import ArgumentParser

/// `sandboxctl policy …`: lists, shows and checks policies.
struct PolicyCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "policy",
      abstract: "List, show and check policies",
      discussion: """
        A policy is a file of rules that assign each path a data class and decide about its \
        backup, update, purge and restore. sandboxctl-policy(5) describes its format. Some \
        policies are built in; files in ~/.config/sandboxctl/policies and /etc/sandboxctl/policies \
        add policies and overlays.

        \(Examples.text(["sandboxctl policy list", "sandboxctl policy show ios"]))
        """,
      subcommands: [
        PolicyListCommand.self, PolicyShowCommand.self, PolicyLintCommand.self,
        PolicyTestCommand.self, PolicySchemaCommand.self,
      ])
  }
}
