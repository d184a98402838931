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
        They show what the platforms' guides promise about an app's data. 'scenario run' runs those \
        that are named, or all of them if none is.

        \(Examples.text([
          "sandboxctl scenario list",
          "sandboxctl scenario run purge-takes-caches-only",
        ]))
        """)
  }

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    for (name, source) in ScenarioFiles.builtin {
      guard let document = ScenarioDocument.read(source).document else { continue }
      let versions = document.versions.map(\.name)
      if output.json {
        try console.result(
          [
            "name": .string(name), "file": .string(source.name),
            "description": document.description.map { .string($0) } ?? .null,
            "versions": .array(versions.map { .string($0) }),
            "steps": .integer(Int64(document.steps.count)),
            "sources": .array(document.sources.map { .string($0) }),
          ])
      } else {
        let about = document.description.map { "  " + $0 } ?? ""
        try console.result("\(name)\(about)  (\(versions.joined(separator: ", ")))")
      }
    }
    return .done
  }
}
