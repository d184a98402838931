internal import ArgumentParser
internal import BuiltinPolicies
internal import Codecs
internal import PolicyEngine
internal import SystemIO

/// `sandboxctl policy show NAME`.
struct PolicyShowCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "show",
      abstract: "Print a policy's file",
      discussion: """
        Prints the file unchanged, to read it or to use it as a template.

        \(Examples.text(["sandboxctl policy show everything"]))
        """)
  }

  @Argument(help: ArgumentHelp("The name of the policy.", valueName: "name"))
  var name: String

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let library = try PolicyFiles.library(extra: [])
    guard let document = library.policy(name) else {
      throw UsageError(
        "there is no policy '\(ByteString(name))'",
        hint: "choose one of \(library.policyNames.joined(separator: ", "))")
    }
    let text = String(decoding: document.source.bytes, as: UTF8.self)
    if output.json {
      try console.result(
        JSON.object([
          JSON.Member("policy", .string(name)),
          JSON.Member("file", .string(document.source.name)), JSON.Member("text", .string(text)),
        ]))
    } else {
      try console.result(text.hasSuffix("\n") ? String(text.dropLast()) : text)
    }
    return .done
  }
}

/// `sandboxctl policy schema`.
struct PolicySchemaCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "schema",
      abstract: "Print the JSON Schema of policy files, for editors",
      discussion: Examples.text(["sandboxctl policy schema"]))
  }

  func run(_ console: Console) throws -> ExitStatus {
    let text = String(decoding: BuiltinPolicies.schema, as: UTF8.self)
    try console.result(text.hasSuffix("\n") ? String(text.dropLast()) : text)
    return .done
  }
}
