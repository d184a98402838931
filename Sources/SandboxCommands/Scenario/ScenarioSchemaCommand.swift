internal import ArgumentParser
internal import Scenario

/// `sandboxctl scenario schema`: prints the JSON Schema of scenarios.
struct ScenarioSchemaCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "schema",
      abstract: "Print the JSON Schema of scenarios, for editors",
      discussion: """
        An editor that knows the schema completes the keys of a scenario and marks mistakes. \
        'scenario run' checks more, for example that a restore names an earlier backup.

        \(Examples.text(["sandboxctl scenario schema"]))
        """)
  }

  func run(_ console: Console) throws -> ExitStatus {
    try console.result(ScenarioGrammar.schema)
    return .done
  }
}
