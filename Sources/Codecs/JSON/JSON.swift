/// A JSON value (RFC 8259) whose objects keep the order of their members.
///
/// Numbers without fraction and exponent are 64-bit integers, all others doubles. Member names are
/// compared by their UTF-8: composed and decomposed é are different names, although the strings are
/// equal in Swift.
public enum JSON: Sendable, Hashable {
  case null
  case bool(Bool)
  case integer(Int64)
  /// A number with a fraction or an exponent. Written as `null` if it is not finite.
  case double(Double)
  case string(String)
  case array([JSON])
  case object([Member])

  /// A name and its value in an object.
  public struct Member: Sendable, Hashable {
    /// The member's name.
    public var name: String
    /// The member's value.
    public var value: JSON

    /// Creates a member.
    public init(_ name: String, _ value: JSON) {
      self.name = name
      self.value = value
    }
  }
}

extension JSON {
  /// The value of the named member, or nil if it does not exist or this is not an object.
  public subscript(_ name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The element at an index, or nil if it does not exist or this is not an array.
  public subscript(_ index: Int) -> JSON? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }

  /// The value as a Boolean, or nil.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// The value as an integer, or nil.
  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// The value as a double, or nil if it is not a number.
  public var double: Double? {
    switch self {
    case .double(let value): value
    case .integer(let value): Double(value)
    default: nil
    }
  }

  /// The value as a string, or nil.
  public var string: String? { if case .string(let value) = self { value } else { nil } }

  /// The elements, or nil if this is not an array.
  public var array: [JSON]? { if case .array(let elements) = self { elements } else { nil } }

  /// The members in order, or nil if this is not an object.
  public var members: [Member]? { if case .object(let members) = self { members } else { nil } }
}

extension JSON: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(integerLiteral value: Int64) { self = .integer(value) }
  public init(floatLiteral value: Double) { self = .double(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(nilLiteral: ()) { self = .null }
  public init(arrayLiteral elements: JSON...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }
}

extension JSON: CustomStringConvertible {
  /// The value on one line without spaces, members in order.
  public var compact: String { String(decoding: compactBytes, as: UTF8.self) }

  /// The UTF-8 of `compact`.
  public var compactBytes: [UInt8] {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return bytes
  }

  /// The value on several lines, indented by two spaces, without a final newline.
  public var pretty: String {
    var bytes: [UInt8] = []
    write(to: &bytes, indentation: 0)
    return String(decoding: bytes, as: UTF8.self)
  }

  public var description: String { compact }

  /// Appends the value on one line to a buffer.
  public func write(to buffer: inout [UInt8]) { write(to: &buffer, indentation: nil) }

  private func write(to buffer: inout [UInt8], indentation: Int?) {
    switch self {
    case .null: buffer.append(contentsOf: "null".utf8)
    case .bool(let value): buffer.append(contentsOf: (value ? "true" : "false").utf8)
    case .integer(let value): buffer.append(contentsOf: String(value).utf8)
    case .double(let value):
      buffer.append(contentsOf: (value.isFinite ? value.description : "null").utf8)
    case .string(let value): Self.write(value, to: &buffer)
    case .array(let elements):
      Self.write(elements, between: "[", and: "]", to: &buffer, indentation: indentation) {
        $0.write(to: &$1, indentation: $2)
      }
    case .object(let members):
      Self.write(members, between: "{", and: "}", to: &buffer, indentation: indentation) {
        Self.write($0.name, to: &$1)
        $1.append(contentsOf: ($2 == nil ? ":" : ": ").utf8)
        $0.value.write(to: &$1, indentation: $2)
      }
    }
  }

  private static func write<Item>(
    _ items: [Item], between open: Unicode.Scalar, and close: Unicode.Scalar,
    to buffer: inout [UInt8], indentation: Int?, item: (Item, inout [UInt8], Int?) -> Void
  ) {
    buffer.append(UInt8(ascii: open))
    let inner = indentation.map { $0 + 2 }
    for (index, element) in items.enumerated() {
      if index > 0 { buffer.append(UInt8(ascii: ",")) }
      breakLine(in: &buffer, indentation: inner)
      item(element, &buffer, inner)
    }
    if !items.isEmpty { breakLine(in: &buffer, indentation: indentation) }
    buffer.append(UInt8(ascii: close))
  }

  private static func breakLine(in buffer: inout [UInt8], indentation: Int?) {
    guard let indentation else { return }
    buffer.append(UInt8(ascii: "\n"))
    buffer.append(contentsOf: repeatElement(UInt8(ascii: " "), count: indentation))
  }

  /// Writes a quoted string. Control characters, DEL and the Unicode line separators are escaped,
  /// so that the value stays on one line wherever it is displayed.
  private static func write(_ string: String, to buffer: inout [UInt8]) {
    buffer.append(UInt8(ascii: "\""))
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": buffer.append(contentsOf: #"\""#.utf8)
      case "\\": buffer.append(contentsOf: #"\\"#.utf8)
      case "\n": buffer.append(contentsOf: #"\n"#.utf8)
      case "\r": buffer.append(contentsOf: #"\r"#.utf8)
      case "\t": buffer.append(contentsOf: #"\t"#.utf8)
      case "\0"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
        escape(scalar, to: &buffer)
      default: buffer.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
    buffer.append(UInt8(ascii: "\""))
  }

  private static func escape(_ scalar: Unicode.Scalar, to buffer: inout [UInt8]) {
    let digits = String(scalar.value, radix: 16)
    buffer.append(contentsOf: "\\u".utf8)
    buffer.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 4 - digits.utf8.count))
    buffer.append(contentsOf: digits.utf8)
  }
}
