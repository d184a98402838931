internal import ArgumentParser
internal import Codecs
internal import PolicyEngine
internal import SandboxModel

/// `sandboxctl policy list`.
struct PolicyListCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "list",
      abstract: "List the policies and overlays",
      discussion: Examples.text(["sandboxctl policy list", "sandboxctl policy list --json"]))
  }

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let documents = try PolicyFiles.library(extra: []).documents
    if output.json {
      for document in documents { try console.result(document.json) }
      return .done
    }
    var table = Table([
      ("policy", .left), ("layout", .left), ("extends", .left), ("rules", .right),
      ("examples", .right), ("file", .left), ("title", .left),
    ])
    for document in documents {
      table.add([
        document.name ?? "(overlay)", document.layout?.rawValue ?? "",
        document.extends.map(\.name).joined(separator: ", "), Sizes.count(document.ruleCount),
        Sizes.count(document.examples.count), document.source.name, document.title ?? "",
      ])
    }
    for line in table.lines { try console.result(line) }
    return .done
  }
}

extension PolicyDocument {
  /// The number of rules and marks in the file.
  fileprivate var ruleCount: Int {
    rules.count + apps.reduce(0) { $0 + $1.rules.count }
      + groups.reduce(0) { $0 + $1.rules.count } + finalRules.count + markers.count
      + finalMarkers.count
  }

  fileprivate var json: JSON {
    [
      "policy": name.map { .string($0) } ?? .null, "overlay": .bool(name == nil),
      "layout": layout.map { .string($0.rawValue) } ?? .null,
      "title": title.map { .string($0) } ?? .null,
      "extends": .array(extends.map { .string($0.name) }), "rules": .integer(Int64(ruleCount)),
      "examples": .integer(Int64(examples.count)), "file": .string(source.name),
      "origin": .string(source.origin.name),
    ]
  }
}
