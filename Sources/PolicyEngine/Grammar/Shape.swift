/// The form of a value in a policy file. The grammar check and the JSON Schema both derive from it
/// and therefore agree.
indirect enum Shape: Sendable {
  /// Text, which is empty only if permitted.
  case text(mayBeEmpty: Bool = false)
  /// A name of letters, digits, dots, hyphens and underscores.
  case identifier
  /// A pattern of paths.
  case pattern
  case bool
  case integer(ClosedRange<Int>)
  /// Bytes with a unit.
  case size
  /// A duration with a unit.
  case duration
  /// A version of an operating system.
  case version
  /// A range of versions.
  case versions
  /// One of several words.
  case choice([String])
  /// A list.
  case list(Shape)
  /// One value or a list of them.
  case oneOrMany(Shape)
  /// A mapping of fixed keys.
  case record(Record)
  /// A mapping whose keys are names or fixed words.
  case keyed(by: Keys, Shape)
  /// A word or a number in one form, a mapping in another.
  case either(Shape, Shape)

  /// The keys of a mapping.
  enum Keys: Sendable {
    case words([String])
    /// Any text; the associated value names the kind of key in the singular.
    case names(String)
  }

  static func choice<Value: RawRepresentable & CaseIterable>(
    _: Value.Type
  ) -> Shape where Value.RawValue == String {
    .choice(Value.allCases.map(\.rawValue))
  }

  static func keyed<Value: RawRepresentable & CaseIterable>(
    by _: Value.Type, _ shape: Shape
  ) -> Shape where Value.RawValue == String {
    .keyed(by: .words(Value.allCases.map(\.rawValue)), shape)
  }
}

/// A mapping of fixed keys.
struct Record: Sendable {
  /// Its name in the JSON Schema.
  let name: String
  /// The name in messages, with its article: "a rule".
  let title: String
  /// The permitted keys.
  let keys: [Key]
  /// The keys of which at least one is required.
  var needsAnyOf: [String] = []
  /// The keys of which exactly one is required.
  var needsOneOf: [String] = []

  struct Key: Sendable {
    let name: String
    let shape: Shape
    var isRequired = false
    /// The description for editors.
    let about: String
  }

  func key(_ name: String) -> Key? { keys.first { $0.name == name } }
}

extension Shape {
  /// The expected value in messages.
  var expectation: String {
    switch self {
    case .text: "text"
    case .identifier: "a name of letters, digits, '.', '-' and '_'"
    case .pattern: "a pattern"
    case .bool: "true or false"
    case .integer(let range): "a number from \(range.lowerBound) to \(range.upperBound)"
    case .size: "a size such as 512MiB"
    case .duration: "a duration such as 30d, 12h, 15m or 45s"
    case .version: "a version such as 5.0.1"
    case .versions: "versions such as \">=5.1\" or \"5.0.1..<6\""
    case .choice(let words): words.count == 1 ? words[0] : "one of \(words.joined(separator: ", "))"
    case .list(let shape): "a list, each element \(shape.expectation)"
    case .oneOrMany(let shape): "\(shape.expectation), or a list of them"
    case .record(let record):
      "a mapping of \(record.keys.map(\.name).joined(separator: ", "))"
    case .keyed(.words(let words), _): "a mapping of \(words.joined(separator: ", "))"
    case .keyed(.names(let name), _): "a mapping by \(name)"
    case .either(let first, let second): "\(first.expectation), or \(second.expectation)"
    }
  }
}
