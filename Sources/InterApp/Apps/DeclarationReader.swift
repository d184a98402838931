internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Reads values of an Info.plist that a stranger wrote: a value of a wrong type is a finding and is
/// ignored, and the numbers of elements are limited.
struct DeclarationReader {
  let app: BundleIdentifier
  private(set) var findings: [DeclarationFinding] = []

  /// The maximum number of elements of a list. Real apps declare at most a few hundred.
  static let elementLimit = 1000

  init(_ app: BundleIdentifier) { self.app = app }

  mutating func warn(_ key: String, _ reason: String) {
    findings.append(DeclarationFinding(.warning, of: app, at: key, reason: reason))
  }

  mutating func note(_ key: String, _ reason: String) {
    findings.append(DeclarationFinding(.note, of: app, at: key, reason: reason))
  }

  /// Returns the dictionaries of a list, each with its position.
  mutating func dictionaries(
    _ key: String, of list: PropertyList
  ) -> [(key: String, value: PropertyList)] {
    elements(key, of: list).enumerated().compactMap { index, element in
      let place = "\(key)[\(index)]"
      if element.dictionaryValue != nil { return (place, element) }
      warn(place, "it is of the type \(element.kind), not a dictionary")
      return nil
    }
  }

  /// Returns the elements of a list; none, with a finding, if the value is not a list.
  private mutating func elements(_ key: String, of list: PropertyList) -> [PropertyList] {
    guard let value = list[key] else { return [] }
    guard let elements = value.arrayValue else {
      warn(key, "it is of the type \(value.kind), not an array")
      return []
    }
    return limited(elements, key)
  }

  private mutating func limited(_ elements: [PropertyList], _ key: String) -> [PropertyList] {
    if elements.count > Self.elementLimit {
      warn(
        key,
        "it has \(elements.count) elements; those after the first \(Self.elementLimit) are ignored")
    }
    return Array(elements.prefix(Self.elementLimit))
  }

  /// Returns a string; nil if it is missing or empty or, with a finding, if it is of another type.
  mutating func text(_ name: String, of list: PropertyList, at key: String) -> ByteString? {
    guard let value = list[name] else { return nil }
    guard let text = value.stringValue else {
      warn("\(key).\(name)", "it is of the type \(value.kind), not a string")
      return nil
    }
    return text.isEmpty ? nil : ByteString(text)
  }

  /// Returns a string or the strings of a list; those with an unresolved build setting are reported
  /// and ignored.
  mutating func texts(_ name: String, of list: PropertyList, at key: String) -> [ByteString] {
    guard let value = list[name] else { return [] }
    let place = "\(key).\(name)"
    if let text = value.stringValue {
      return [resolved(ByteString(text), at: place)].compactMap(\.self)
    }
    guard let elements = value.arrayValue else {
      warn(place, "it is of the type \(value.kind), not a string or an array")
      return []
    }
    return limited(elements, place).enumerated().compactMap { index, element in
      guard let text = element.stringValue else {
        warn("\(place)[\(index)]", "it is of the type \(element.kind), not a string")
        return nil
      }
      return resolved(ByteString(text), at: "\(place)[\(index)]")
    }
  }

  /// Returns a string; nil, with a finding, if it is empty or refers to a build setting.
  private mutating func resolved(_ text: ByteString, at key: String) -> ByteString? {
    if text.isEmpty {
      warn(key, "it is empty")
      return nil
    }
    guard let setting = Self.buildSetting(in: text) else { return text }
    warn(key, "'\(text)' has the unresolved build setting '\(setting)' and is not registered")
    return nil
  }

  /// Returns the first reference to a build setting in a string, `$(NAME)` or `${NAME}`, or nil.
  static func buildSetting(in text: ByteString) -> ByteString? {
    let bytes = text.bytes
    // A string of opening delimiters alone must not be searched to its end for each of them.
    var absent: Set<UInt8> = []
    for start in bytes.indices where bytes[start] == UInt8(ascii: "$") && start + 1 < bytes.endIndex
    {
      let closing: UInt8
      switch bytes[start + 1] {
      case UInt8(ascii: "("): closing = UInt8(ascii: ")")
      case UInt8(ascii: "{"): closing = UInt8(ascii: "}")
      default: continue
      }
      if absent.contains(closing) { continue }
      guard let end = bytes[start...].firstIndex(of: closing) else {
        absent.insert(closing)
        continue
      }
      return ByteString(bytes[start...end])
    }
    return nil
  }

  /// Returns the type identifiers of a list; invalid ones are reported and ignored.
  mutating func identifiers(
    _ name: String, of list: PropertyList, at key: String
  ) -> [TypeIdentifier] {
    texts(name, of: list, at: key).compactMap { identifier($0, at: "\(key).\(name)") }
  }

  /// Returns a type identifier; nil, with a finding, if the text is not one.
  mutating func identifier(_ text: ByteString, at key: String) -> TypeIdentifier? {
    guard let identifier = TypeIdentifier(text) else {
      warn(key, "'\(text)' is not a type identifier: \(TypeIdentifier.fault(of: text) ?? "")")
      return nil
    }
    if let oddity = identifier.oddity { warn(key, "'\(text)': \(oddity)") }
    return identifier
  }
}
