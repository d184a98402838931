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
