import Codecs
import Foundation
import TestSupport
import Testing

@testable import PolicyEngine

struct SchemaTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  @Test func theFileMatchesTheGrammar() throws {
    let file = Self.root.appendingPathComponent("policies/policy.schema.json")
    let text = try String(contentsOf: file, encoding: .utf8)
    #expect(text == PolicySchema.text + "\n", "print it again with 'sandboxctl policy schema'")
  }

  @Test func theSchemaIsJSONWithValidReferences() throws {
    let schema = try JSON(parsing: PolicySchema.text)
    let definitions = Set(schema["$defs"]?.members?.map(\.name) ?? [])
    #expect(definitions.isSuperset(of: ["rule", "marker", "example", "purge-terms"]))
    func references(_ value: JSON) -> [String] {
      let inner = (value.members?.map(\.value) ?? []) + (value.array ?? [])
      return (value["$ref"]?.string.map { [$0] } ?? []) + inner.flatMap(references)
    }
    let all = references(schema)
    #expect(!all.isEmpty)
    for reference in all {
      #expect(definitions.contains(String(reference.dropFirst("#/$defs/".count))))
    }
  }

  @Test(arguments: [
    ("policy: x\nschema: 1\n", true), ("policy: x\n", false), ("overlay: all\nschema: 1\n", true),
    ("overlay: [flatpak]\nschema: 1\n", true), ("overlay: x\nschema: 1\n", false),
    ("policy: x\noverlay: all\nschema: 1\n", false), ("policy: x\nschema: 1\nrulez: []\n", false),
    ("policy: x\nschema: 1\nrules: [{id: a, match: b, class: cache}]\n", true),
    ("policy: x\nschema: 1\nrules: [{id: a, match: b}]\n", false),
    ("policy: x\nschema: 1\nrules: [{id: a, match: b, class: cach}]\n", false),
    ("policy: x\nschema: 1\nrules: [{id: a, match: b, purge: {order: 1}}]\n", true),
    ("policy: x\nschema: 1\nrules: [{id: a, match: b, purge: {when: anytime}}]\n", false),
    ("policy: x\nschema: 1\nretain: {safe-harbor: 3d}\n", true),
    ("policy: x\nschema: 1\nretain: {safe-harbor: 3 days}\n", false),
    ("policy: x\nschema: 1\napps: {a.b: {rules: []}}\n", true),
    ("policy: x\nschema: 1\napps: {a.b: {rule: []}}\n", false),
    ("policy: x\nschema: 1\nexamples: [{in: data, path: a, class: cache}]\n", true),
    ("policy: x\nschema: 1\nexamples: [{in: dada, path: a, class: cache}]\n", false),
    ("policy: x\nschema: 1\nmarkers: [{id: a, xattr: b, then: {backup: never}}]\n", true),
    ("policy: x\nschema: 1\nmarkers: [{id: a, xattr: b, file: c, then: {backup: never}}]\n", false),
  ])
  func editorsAndTheEngineAgree(text: String, isValid: Bool) throws {
    let node = try YAML.parse(text)
    let schema = SchemaValidator(PolicySchema.document)
    #expect(schema.accepts(JSON(node)) == isValid, "the schema")
    var check = GrammarCheck(file: "x")
    check.check(node, against: .record(Grammar.file), named: "the file")
    #expect(check.issues.isEmpty == isValid, "the engine")
  }

  @Test func builtinPoliciesMatchTheSchema() throws {
    let directory = Self.root.appendingPathComponent("policies")
    let files = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter {
      $0.hasSuffix(".yaml")
    }
    let schema = SchemaValidator(PolicySchema.document)
    for file in files {
      let text = try Data(contentsOf: directory.appendingPathComponent(file))
      #expect(schema.accepts(JSON(try YAML.parse(Array(text)))), "\(file)")
    }
  }
}
