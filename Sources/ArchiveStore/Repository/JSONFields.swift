public import Codecs
public import SystemIO

/// Reads the members of a JSON object. Its errors name the invalid member.
struct JSONFields {
  let json: JSON
  /// The stored object that contains the text.
  let object: String

  func fault(_ name: String, _ expected: String) -> StoreError {
    .damaged(object, "its member \"\(name)\" is not \(expected)")
  }

  func string(_ name: String) throws(StoreError) -> String {
    guard let value = json[name]?.string else { throw fault(name, "a string") }
    return value
  }

  func string(_ name: String, default value: String) throws(StoreError) -> String {
    json[name] == nil ? value : try string(name)
  }

  /// Returns an integer that is not negative.
  func count(_ name: String) throws(StoreError) -> UInt64 {
    guard let value = json[name]?.integer, value >= 0 else { throw fault(name, "a count") }
    return UInt64(value)
  }

  func count(_ name: String, default value: UInt64) throws(StoreError) -> UInt64 {
    json[name] == nil ? value : try count(name)
  }

  func digest(_ name: String) throws(StoreError) -> Digest {
    guard let digest = Digest(hex: try string(name)) else {
      throw fault(name, "a hash of 64 hexadecimal digits")
    }
    return digest
  }

  func digestIfPresent(_ name: String) throws(StoreError) -> Digest? {
    json[name] == nil ? nil : try digest(name)
  }

  /// Returns a path from its text, or from the base64 member of that name with the suffix `_b64`.
  func path(_ name: String, default value: ByteString) throws(StoreError) -> ByteString {
    json[name] == nil && json[name + "_b64"] == nil ? value : try path(name)
  }

  /// Returns a path from its text, or from the base64 member of that name with the suffix `_b64`.
  func path(_ name: String) throws(StoreError) -> ByteString {
    if let path = json.path(named: name) { return path }
    throw json[name + "_b64"]?.string == nil
      ? fault(name, "a string") : fault(name + "_b64", "base64")
  }

  func strings(_ name: String) throws(StoreError) -> [String] {
    try elements(name) { field throws(StoreError) in
      guard let text = field.json.string else { throw fault(name, "an array of strings") }
      return text
    }
  }

  /// Returns a member that is an object.
  func fields(_ name: String) throws(StoreError) -> JSONFields {
    guard let value = json[name], value.members != nil else { throw fault(name, "an object") }
    return JSONFields(json: value, object: object)
  }

  /// Returns a member that is an object, or an empty object if the member is missing.
  func fieldsOrNone(_ name: String) throws(StoreError) -> JSONFields {
    json[name] == nil ? JSONFields(json: .object([]), object: object) : try fields(name)
  }

  /// Returns the elements of an array, or none if the member is missing.
  func elements<Element>(
    _ name: String, _ read: (JSONFields) throws(StoreError) -> Element
  ) throws(StoreError) -> [Element] {
    guard let value = json[name] else { return [] }
    guard let array = value.array else { throw fault(name, "an array") }
    var elements: [Element] = []
    elements.reserveCapacity(array.count)
    for element in array { elements.append(try read(JSONFields(json: element, object: object))) }
    return elements
  }
}

extension [JSON.Member] {
  /// Adds a member unless it has its default value.
  mutating func add(_ name: String, _ value: JSON, unless isDefault: Bool = false) {
    if !isDefault { append(JSON.Member(name, value)) }
  }

  /// Adds a path as text, and also as base64 if its bytes are not UTF-8.
  mutating func add(_ name: String, path: ByteString) {
    append(contentsOf: JSON.path(path, named: name))
  }
}

extension JSON {
  /// Returns a path's members: its text, and additionally base64 with the suffix `_b64` if its
  /// bytes are not UTF-8.
  public static func path(_ path: ByteString, named name: String = "path") -> [JSON.Member] {
    if let text = path.utf8 { return [JSON.Member(name, .string(text))] }
    return [
      JSON.Member(name, .string(path.description)),
      JSON.Member(name + "_b64", .string(Base64.encode(path.bytes))),
    ]
  }

  /// Returns the path in the members that `path(_:named:)` writes, or nil if it is missing or
  /// invalid.
  public func path(named name: String) -> ByteString? {
    if let text = self[name + "_b64"]?.string {
      return Base64.decode(text.utf8).map { ByteString($0) }
    }
    return self[name]?.string.map { ByteString($0) }
  }

  /// The compact text with a line feed: the content of a small file.
  var line: [UInt8] { compactBytes + [UInt8(ascii: "\n")] }

  /// Returns an integer that represents a count.
  static func count(_ value: UInt64) -> JSON { .integer(Int64(clamping: value)) }

  /// Returns an array of the converted values.
  static func array<Value>(_ values: [Value], _ make: (Value) -> JSON) -> JSON {
    .array(values.map(make))
  }
}
