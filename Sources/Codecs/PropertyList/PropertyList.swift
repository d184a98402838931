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

/// A property list: a value as stored in Info.plist.
///
/// Keys are compared by their UTF-8: composed and decomposed é are different keys, although the
/// strings are equal in Swift. The reasons of errors quote the input without escapes.
public enum PropertyList: Hashable, Sendable {
  case string(String)
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
  public struct Member: Hashable, Sendable {
    public let key: String
    public let value: PropertyList

    /// Creates a member.
    public init(_ key: String, _ value: PropertyList) {
      self.key = key
      self.value = value
    }
  }
}

extension PropertyList {
  /// The value for `key`, or nil if this is not a dictionary or does not contain the key.
  public subscript(key: String) -> PropertyList? {
    let member = dictionaryValue?.last {
      $0.key.utf8.count == key.utf8.count && $0.key.utf8.elementsEqual(key.utf8)
    }
    return member?.value
  }

  /// The text, or nil if this is not a string.
  public var stringValue: String? {
    if case .string(let value) = self { value } else { nil }
  }

  /// The number, or nil if this is not an integer in the range of `Int64`.
  public var integerValue: Int64? {
    if case .integer(let value) = self { value } else { nil }
  }

  /// The elements, or nil if this is not an array.
  public var arrayValue: [PropertyList]? {
    if case .array(let value) = self { value } else { nil }
  }

  /// The members, or nil if this is not a dictionary.
  public var dictionaryValue: [Member]? {
    if case .dictionary(let value) = self { value } else { nil }
  }

  /// The name of the value's type, for messages.
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

extension PropertyList {
  /// The limits for reading a property list.
  public struct Limits: Hashable, Sendable {
    /// The maximum size of the file in bytes.
    public var bytes: Int
    /// The maximum nesting depth of arrays and dictionaries.
    public var depth: Int
    /// The maximum number of values and keys, counted once for each reference.
    public var objects: Int

    /// Creates limits; the defaults are sufficient for property lists in an app's container.
    public init(bytes: Int = 16 << 20, depth: Int = 64, objects: Int = 1_000_000) {
      self.bytes = bytes
      self.depth = depth
      self.objects = objects
    }
  }

  /// Reads an XML or binary property list.
  public init(reading bytes: [UInt8], limits: Limits = Limits()) throws(CodecError) {
    guard bytes.count <= limits.bytes else {
      throw CodecError(
        .limit, in: .propertyList,
        reason: "it has \(bytes.count) bytes, more than the limit of \(limits.bytes)")
    }
    if bytes.starts(with: BinaryReader.magic) {
      var reader = try BinaryReader(bytes, limits: limits)
      self = try reader.document()
    } else {
      var reader = try XMLReader(bytes, limits: limits)
      self = try reader.document()
    }
  }

  static func checkDepth(_ depth: Int) throws(CodecError) {
    let limit = Limits().depth
    if depth >= limit {
      throw CodecError(
        .limit, in: .propertyList, reason: "it is nested more than \(limit) levels deep")
    }
  }

  /// Collects members in order; a later member replaces an earlier one with the same key.
  struct MemberCollector {
    private(set) var members: [Member] = []
    /// The indexes of the members by the bytes of their keys; empty for a few members, among which
    /// a search is faster.
    private var indexes: [[UInt8]: Int] = [:]

    private static let searched = 16

    mutating func add(_ key: String, _ value: PropertyList) {
      if let index = index(of: key) {
        members[index] = Member(key, value)
        return
      }
      if members.count == Self.searched {
        for (index, member) in members.enumerated() { indexes[Array(member.key.utf8)] = index }
      }
      if members.count >= Self.searched { indexes[Array(key.utf8)] = members.count }
      members.append(Member(key, value))
    }

    private func index(of key: String) -> Int? {
      if members.count > Self.searched { return indexes[Array(key.utf8)] }
      // Equal bytes, not equal strings: composed and decomposed characters differ.
      return members.firstIndex {
        $0.key.utf8.count == key.utf8.count && $0.key.utf8.elementsEqual(key.utf8)
      }
    }
  }
}
