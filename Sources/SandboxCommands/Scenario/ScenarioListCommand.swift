internal import ArgumentParser
internal import Codecs
internal import PolicyEngine
internal import Scenario
internal import SystemIO

/// `sandboxctl scenario list`: lists the scenarios that come with the program.
struct ScenarioListCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "list",
      abstract: "List the scenarios that come with the program",
      discussion: """
        They show what the platforms' guides promise about an app's data. 'scenario run' runs one \
        by its name, or all of them if no file is given.

        \(Examples.text(["sandboxctl scenario list"]))
        """)
  }

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let (documents, _) = try ScenarioFiles.read([]) { _ in }
    for document in documents {
      let versions = document.versions.map(\.name)
      if output.json {
        try console.result(
          [
            "file": .string(document.location.file), "name": .string(document.name),
            "description": document.description.map { .string($0) } ?? .null,
            "versions": .array(versions.map { .string($0) }),
            "steps": .integer(Int64(document.steps.count)),
            "sources": .array(document.sources.map { .string($0) }),
          ])
      } else {
        try console.result(
          "\(document.location.file)  \(document.name)  (\(versions.joined(separator: ", ")))")
      }
    }
    return .done
  }
}
