internal import ArgumentParser

/// `sandboxctl scenario`: tests of what happens to an app's data.
struct ScenarioCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "scenario",
      abstract: "Test what happens to an app's data",
      discussion: """
        A scenario is a file with steps (write, update, backup, restore, purge and others) and \
        expectations about the data between them, for continuous integration. It works on a copy \
        of a device. sandboxctl-scenario(5) describes the file.

        \(Examples.text([
          "sandboxctl scenario list",
          "sandboxctl scenario run app.scenario.yaml --junit results.xml",
        ]))
        """,
      subcommands: [
        ScenarioRunCommand.self, ScenarioInitCommand.self, ScenarioListCommand.self,
        ScenarioSchemaCommand.self,
      ])
  }
}
