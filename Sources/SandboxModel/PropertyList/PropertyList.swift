// Property lists, XML and binary, read and written without Foundation.
//
// Reading is for files that nobody vouches for: the size, the depth (64) and the number of objects
// are bounded before memory is taken, every offset is checked, an object that holds itself is
// refused, no entity but XML's own five is known and nothing outside the file is ever looked at.
// Writing gives the same bytes for the same value: members in their order, nothing shared.
//
// Not kept: which of two members with one key came first (the last holds, as in Apple's readers),
// comments and white space, and in XML the fraction of a date's second. Old-style lists
// ("{ a = b; }") are not read. Strings are UTF-8; one with half a surrogate pair is refused.
public import SystemIO

/// A property list: the value that Info.plist and its like hold.
public enum PropertyList: Hashable, Sendable {
  /// Text, as UTF-8.
  case string(ByteString)
  case integer(Int64)
  /// A whole number above `Int64.max`; smaller ones are always `integer`.
  case unsigned(UInt64)
  case real(Double)
  case bool(Bool)
  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  case data([UInt8])
  case array([PropertyList])
  /// Members in the order in which they are stored; no key comes twice in what was read.
  case dictionary([Member])
  /// A reference in a keyed archive.
  case uid(UInt64)

  /// A key of a dictionary and its value.
  public struct Member: Hashable, Sendable {
    public let key: ByteString
    public let value: PropertyList

    /// Makes a member.
    public init(_ key: ByteString, _ value: PropertyList) {
      self.key = key
      self.value = value
    }
  }
}

extension PropertyList {
  /// The member's value under `key`, when this is a dictionary that has it.
  public subscript(key: ByteString) -> PropertyList? {
    dictionaryValue?.last { $0.key == key }?.value
  }

  /// The text, when this is a string.
  public var stringValue: ByteString? {
    if case .string(let value) = self { value } else { nil }
  }

  /// The number, when this is an integer that `Int64` holds.
  public var integerValue: Int64? {
    if case .integer(let value) = self { value } else { nil }
  }

  /// The elements, when this is an array.
  public var arrayValue: [PropertyList]? {
    if case .array(let value) = self { value } else { nil }
  }

  /// The members, when this is a dictionary.
  public var dictionaryValue: [Member]? {
    if case .dictionary(let value) = self { value } else { nil }
  }

  /// The kind of value in a word, for messages.
  public var kind: String {
    switch self {
    case .string: "string"
    case .integer, .unsigned: "integer"
    case .real: "real number"
    case .bool: "boolean"
    case .date: "date"
    case .data: "data"
    case .array: "array"
    case .dictionary: "dictionary"
    case .uid: "archive reference"
    }
  }
}
