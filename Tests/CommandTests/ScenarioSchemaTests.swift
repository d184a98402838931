import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// The JSON Schema of scenarios, `scenario schema`, with an independent validator.
struct ScenarioSchemaTests {
  private static let policies = Shared.packageRoot.appendingPathComponent("policies")

  @Test func theFileIsThePrintedSchema() throws {
    let printed = try CommandLine().succeed("scenario schema")
    let file = Self.policies.appendingPathComponent("scenario.schema.json")
    let text = try String(contentsOf: file, encoding: .utf8)
    #expect(text == printed, "print it again with 'sandboxctl scenario schema'")
  }

  @Test func allScenariosOfTheProgramMatch() throws {
    let directory = Self.policies.appendingPathComponent("scenarios")
    let files = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    #expect(files.count == 10)
    let texts = try files.map {
      try String(contentsOf: directory.appendingPathComponent($0), encoding: .utf8)
    }
    for (file, faults) in zip(files, try faults(texts)) {
      #expect(faults.isEmpty, "\(file): \(faults)")
    }
  }

  /// The schema refuses mistakes that the program refuses by its grammar.
  @Test func mistakesOfTheGrammarAreRefused() throws {
    let head = "scenario: x\nschema: 1\ndevice: {sample: 0}\nsteps:\n"
    let cases: [(text: String, isValid: Bool)] = [
      (head + "  - recover: true\n", true), (head + "  - recovr: true\n", false),
      (head + "  - {recover: true, moment: x}\n", false),
      (head + "  - write: {path: apps/a/data/x, text: y, mode: \"644\"}\n", true),
      (head + "  - write: {path: apps/a/data/x}\n", false),
      (head + "  - write: {path: apps/a/data/x, text: y, size: 1}\n", false),
      (head + "  - expect: [{match: \"apps/**\", exists: true}]\n", true),
      (head + "  - expect: [{match: \"apps/**\"}]\n", false),
      (head + "  - expect: [{exists: true}]\n", false),
      (head + "  - purge: {level: extreme}\n", false),
      (head + "  - interrupt: {step: {backup: {}}, at: 0}\n", false),
      (head + "  - interrupt: {step: {backup: {}}, at: 1}\n", true),
      ("scenario: x\nschema: 1\nsteps: [{recover: true}]\n", false),
    ]
    let cli = try CommandLine(inMemory: true)
    for (wanted, faults) in zip(cases, try faults(cases.map(\.text))) {
      #expect(faults.isEmpty == wanted.isValid, "\(wanted.text): \(faults)")
      try cli.directory.write(wanted.text, at: "x.yaml")
      // Nothing runs for a version that the file does not name.
      let outcome = try cli.run("scenario run x.yaml --only-version 1")
      #expect(outcome.errors.contains("no scenario matches") == wanted.isValid, "\(wanted.text)")
    }
  }

  /// Returns the mistakes in each document that jsonschema finds.
  private func faults(_ documents: [String]) throws -> [[String]] {
    let schema = try JSON(
      parsing: String(
        contentsOf: Self.policies.appendingPathComponent("scenario.schema.json"), encoding: .utf8))
    let values = try documents.map { Self.value(try YAML.parse(Array($0.utf8))) }
    let script = """
      import json, sys, jsonschema
      schema, documents = json.load(sys.stdin)
      jsonschema.Draft202012Validator.check_schema(schema)
      validator = jsonschema.Draft202012Validator(schema)
      print(json.dumps([[e.message[:200] for e in validator.iter_errors(d)] for d in documents]))
      """
    let outcome = try Program.run(
      "/usr/bin/python3", ["-B", "-c", script],
      input: JSON.array([schema, .array(values)]).compactBytes)
    #expect(outcome.code == 0, "\(outcome.errors)")
    return try #require(
      try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String]])
  }

  /// The value that an editor reads from a YAML node.
  private static func value(_ node: YAMLNode) -> JSON {
    if let elements = node.sequence { return .array(elements.map(value)) }
    if let entries = node.mapping {
      return .object(entries.map { JSON.Member($0.name, value($0.value)) })
    }
    if case .scalar(let scalar) = node.content {
      switch scalar.resolved {
      case .null: return .null
      case .bool(let value): return .bool(value)
      case .integer(let value): return .integer(value)
      case .double(let value): return .double(value)
      default: break
      }
    }
    return .string(node.text ?? "")
  }
}
