// XML and binary property lists, read and written without Foundation.
//
// The reader is designed for untrusted files: size, depth (64) and number of objects are checked
// before memory is allocated, every offset is checked, an object that contains itself is refused,
// no entities other than the five of XML are supported, and nothing outside the file is accessed.
// Equal values are written as equal bytes: members in order, nothing shared.
//
// Not preserved: all but the last of several members with the same key (as in Apple's readers),
// comments and white space, and in XML the fractional seconds of dates. Old-style lists ("{ a = b;
// }") are not supported. Strings are UTF-8; an unpaired surrogate is refused.
package import SystemIO

/// A property list: a value as stored in Info.plist.
package enum PropertyList: Hashable, Sendable {
  /// Text in UTF-8.
  case string(ByteString)
  case integer(Int64)
  /// An integer greater than `Int64.max`; smaller ones are always `integer`.
  case unsigned(UInt64)
  case real(Double)
  case bool(Bool)
  /// The time in seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  case data([UInt8])
  case array([PropertyList])
  /// The members in stored order; keys are unique in a value that was read.
  case dictionary([Member])
  /// A reference in a keyed archive.
  case uid(UInt64)

  /// A dictionary's key with its value.
  package struct Member: Hashable, Sendable {
    package let key: ByteString
    package let value: PropertyList

    /// Creates a member.
    package init(_ key: ByteString, _ value: PropertyList) {
      self.key = key
      self.value = value
    }
  }
}

extension PropertyList {
  /// The value for `key`, or nil if this is not a dictionary or does not contain the key.
  package subscript(key: ByteString) -> PropertyList? {
    dictionaryValue?.last { $0.key == key }?.value
  }

  /// The text, or nil if this is not a string.
  package var stringValue: ByteString? {
    if case .string(let value) = self { value } else { nil }
  }

  /// The number, or nil if this is not an integer in the range of `Int64`.
  package var integerValue: Int64? {
    if case .integer(let value) = self { value } else { nil }
  }

  /// The elements, or nil if this is not an array.
  package var arrayValue: [PropertyList]? {
    if case .array(let value) = self { value } else { nil }
  }

  /// The members, or nil if this is not a dictionary.
  package var dictionaryValue: [Member]? {
    if case .dictionary(let value) = self { value } else { nil }
  }

  /// The name of the value's type, for messages.
  package var kind: String {
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
