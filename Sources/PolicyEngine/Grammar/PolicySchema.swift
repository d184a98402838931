package import Codecs

/// The JSON Schema of policy files, for editors; generated from the grammar.
public enum PolicySchema {
  /// The schema (JSON Schema 2020-12), as in `policies/policy.schema.json`, without the line break
  /// at the end of the file.
  public static var text: String { document.pretty }

  static var document: JSON {
    document(
      of: Grammar.file, title: "sandboxctl policy",
      description:
        "The classes of the data in an app's sandbox, and their handling. See sandboxctl-policy(5)."
    )
  }

  /// Returns the schema of a kind of file.
  package static func document(of root: Record, title: String, description: String) -> JSON {
    var writer = Writer()
    let file = writer.members(of: root)
    var members = [
      JSON.Member("$schema", "https://json-schema.org/draft/2020-12/schema"),
      JSON.Member("title", .string(title)),
      JSON.Member("description", .string(description)),
    ]
    members += file
    members.append(
      JSON.Member("$defs", .object(writer.definitions.sorted { $0.name < $1.name })))
    return .object(members)
  }

  /// Writes shapes as schemas; records become definitions with references.
  private struct Writer {
    private(set) var definitions: [JSON.Member] = []

    mutating func schema(_ shape: Shape) -> JSON {
      switch shape {
      case .list(let element): return ["type": "array", "items": schema(element)]
      case .oneOrMany(let element):
        let one = schema(element)
        return ["oneOf": [one, ["type": "array", "items": one, "minItems": 1]]]
      case .record(let record): return reference(to: record)
      case .keyed(.words(let words), let value):
        let value = schema(value)
        return [
          "type": "object", "properties": .object(words.map { JSON.Member($0, value) }),
          "additionalProperties": false,
        ]
      case .keyed(.names, let value):
        return ["type": "object", "additionalProperties": schema(value)]
      case .either(let first, let second): return ["oneOf": [schema(first), schema(second)]]
      default: return shape.scalarSchema
      }
    }

    private mutating func reference(to record: Record) -> JSON {
      if !definitions.contains(where: { $0.name == record.name }) {
        let index = definitions.count
        definitions.append(JSON.Member(record.name, .null))
        definitions[index].value = .object(members(of: record))
      }
      return ["$ref": .string("#/$defs/\(record.name)")]
    }

    /// Returns the schema members for a record.
    mutating func members(of record: Record) -> [JSON.Member] {
      var properties: [JSON.Member] = []
      for key in record.keys {
        var members = [JSON.Member("description", .string(key.about))]
        members += schema(key.shape).members ?? []
        properties.append(JSON.Member(key.name, .object(members)))
      }
      var members = [
        JSON.Member("type", "object"), JSON.Member("properties", .object(properties)),
        JSON.Member("additionalProperties", false),
      ]
      let required = record.keys.filter(\.isRequired).map { JSON.string($0.name) }
      if !required.isEmpty { members.append(JSON.Member("required", .array(required))) }
      if !record.needsAnyOf.isEmpty {
        members.append(JSON.Member("anyOf", Self.presence(record.needsAnyOf)))
      }
      if !record.needsOneOf.isEmpty {
        members.append(JSON.Member("oneOf", Self.presence(record.needsOneOf)))
      }
      return members
    }

    private static func presence(_ keys: [String]) -> JSON {
      .array(keys.map { ["required": [.string($0)]] })
    }
  }
}

extension Shape {
  fileprivate var scalarSchema: JSON {
    switch self {
    case .text(let mayBeEmpty):
      mayBeEmpty ? ["type": "string"] : ["type": "string", "minLength": 1]
    case .identifier: ["type": "string", "pattern": "^[A-Za-z0-9._-]+$"]
    case .pattern: ["type": "string", "minLength": 1]
    case .bool: ["type": "boolean"]
    case .integer(let range):
      [
        "type": "integer", "minimum": .integer(Int64(range.lowerBound)),
        "maximum": .integer(Int64(range.upperBound)),
      ]
    case .size:
      [
        "type": ["string", "integer"], "minimum": 0,
        "pattern": "^[0-9]+ *(B|[KMGT]|[KMGT]iB|kB|MB|GB|TB)?$",
      ]
    case .duration: ["type": "string", "pattern": "^[0-9]+ *[smhdw]$"]
    case .version: ["type": ["string", "number"], "pattern": "^[0-9]+(\\.[0-9]+){0,7}$"]
    case .versions:
      [
        "type": ["string", "number"],
        "pattern": "^ *((>=|>|<=|<) *[0-9.]+|[0-9.]+( *(\\.\\.<|\\.\\.\\.) *[0-9.]+)?) *$",
      ]
    case .choice(let words): ["enum": .array(words.map { .string($0) })]
    default: true
    }
  }
}
