import Codecs
import Foundation

/// Validates values against a JSON Schema, as far as the policy schema needs it.
struct SchemaValidator {
  private let root: JSON

  init(_ root: JSON) { self.root = root }

  func accepts(_ value: JSON) -> Bool { accepts(value, root) }

  private func accepts(_ value: JSON, _ schema: JSON) -> Bool {
    if let isAccepted = schema.bool { return isAccepted }
    return (schema.members ?? []).allSatisfy { holds($0.name, $0.value, value, schema) }
  }

  private func holds(_ keyword: String, _ rule: JSON, _ value: JSON, _ schema: JSON) -> Bool {
    switch keyword {
    case "$ref":
      let name = rule.string.map { String($0.dropFirst("#/$defs/".count)) } ?? ""
      return root["$defs"]?[name].map { accepts(value, $0) } ?? false
    case "type":
      return (rule.array ?? [rule]).contains { isOfType(value, $0.string ?? "") }
    case "enum": return rule.array?.contains(value) ?? false
    case "required":
      guard value.members != nil else { return true }
      return rule.array?.allSatisfy { value[$0.string ?? ""] != nil } ?? false
    case "properties":
      return (value.members ?? []).allSatisfy { member in
        rule[member.name].map { accepts(member.value, $0) } ?? true
      }
    case "additionalProperties":
      return (value.members ?? []).allSatisfy { member in
        schema["properties"]?[member.name] != nil || accepts(member.value, rule)
      }
    case "items": return (value.array ?? []).allSatisfy { accepts($0, rule) }
    case "minItems": return value.array.map { Int64($0.count) >= rule.integer ?? 0 } ?? true
    case "anyOf": return rule.array?.contains { accepts(value, $0) } ?? false
    case "oneOf": return rule.array?.count { accepts(value, $0) } == 1
    case "minLength": return value.string.map { Int64($0.utf8.count) >= rule.integer ?? 0 } ?? true
    case "minimum": return value.double.map { $0 >= rule.double ?? 0 } ?? true
    case "maximum": return value.double.map { $0 <= rule.double ?? 0 } ?? true
    case "pattern":
      return value.string.map {
        $0.range(of: rule.string ?? "", options: .regularExpression) != nil
      } ?? true
    case "$schema", "$defs", "title", "description": return true
    default: return false
    }
  }

  private func isOfType(_ value: JSON, _ type: String) -> Bool {
    switch type {
    case "object": value.members != nil
    case "array": value.array != nil
    case "string": value.string != nil
    case "integer": value.integer != nil
    case "number": value.double != nil
    case "boolean": value.bool != nil
    default: false
    }
  }
}

extension JSON {
  /// Creates the value that an editor reads from a YAML node.
  init(_ node: YAMLNode) {
    switch node.content {
    case .sequence(let elements): self = .array(elements.map { JSON($0) })
    case .mapping(let entries):
      self = .object(entries.map { JSON.Member($0.name, JSON($0.value)) })
    case .scalar(let scalar):
      switch scalar.resolved {
      case .null: self = .null
      case .bool(let value): self = .bool(value)
      case .integer(let value): self = .integer(value)
      case .double(let value): self = .double(value)
      case .string(let value): self = .string(value)
      }
    }
  }
}
