/// A JSON value (RFC 8259) whose objects keep the order of their members.
///
/// Numbers without fraction and exponent are integers of 64 bits, all others doubles. Member names
/// are told apart by their UTF-8, so that composed and decomposed é are two names, though the
/// strings are equal to Swift.
public enum JSON: Sendable, Hashable {
  case null
  case bool(Bool)
  case integer(Int64)
  /// A number that has a fraction or an exponent. What is not finite is written as `null`.
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

    /// Makes a member.
    public init(_ name: String, _ value: JSON) {
      self.name = name
      self.value = value
    }
  }
}

extension JSON {
  /// The value of the member of that name; nothing when there is none or this is no object.
  public subscript(_ name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The element at an index; nothing when there is none or this is no array.
  public subscript(_ index: Int) -> JSON? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }

  /// The value as a truth value, when it is one.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// The value as an integer, when it is one.
  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// The value as a double, when it is a number of either kind.
  public var double: Double? {
    switch self {
    case .double(let value): value
    case .integer(let value): Double(value)
    default: nil
    }
  }

  /// The value as a string, when it is one.
  public var string: String? { if case .string(let value) = self { value } else { nil } }

  /// The elements, when it is an array.
  public var array: [JSON]? { if case .array(let elements) = self { elements } else { nil } }

  /// The members in their order, when it is an object.
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
