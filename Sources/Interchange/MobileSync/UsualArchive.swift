internal import Codecs
internal import SystemIO

/// A reader of archived files in the form that Apple's programs write. It builds no tree of
/// objects, because an import reads an archive for each entry of a backup.
///
/// It checks all objects, and returns nil for anything unusual, whether valid or not;
/// `KeyedArchive` reads such archives. Both return the same members of an archive that both accept.
struct UsualArchive {
  private let bytes: [UInt8]
  /// The sizes of an offset and of a reference in bytes: 1 or 2.
  private let offsetSize: Int
  private let referenceSize: Int
  /// The number of objects, and the number of the first one.
  private let count: Int
  private let top: Int
  /// The offset of the offset table, which is the end of the objects.
  private let tableStart: Int
  /// The position of the references in the array `$objects`, and their number.
  private var objects = (start: 0, count: 0)
  /// The number of objects that were checked.
  private var checked = 0

  /// An archive of another form.
  private struct Unusual: Error {}

  private static let magic = Array("bplist0".utf8)
  private static let headerSize = 8
  private static let trailerSize = 32
  /// The maximum number of objects and their depth. A file has about 40.
  private static let limit = 1000
  private static let depthLimit = 8

  /// Returns the members of a file, or nil if the archive has another form.
  static func members(of bytes: [UInt8]) -> ArchivedMembers? {
    do throws(Unusual) {
      var archive = try Self(bytes)
      return try archive.members()
    } catch { return nil }
  }

  private init(_ bytes: [UInt8]) throws(Unusual) {
    let start = bytes.count - Self.trailerSize
    guard start > Self.headerSize, bytes.count <= 1 << 16,
      bytes.starts(with: Self.magic),
      (1...2).contains(bytes[start + 6]), (1...2).contains(bytes[start + 7])
    else { throw Unusual() }
    (offsetSize, referenceSize) = (Int(bytes[start + 6]), Int(bytes[start + 7]))
    self.bytes = bytes
    let count = BigEndian.integer(bytes, at: start + 8, size: 8)
    let top = BigEndian.integer(bytes, at: start + 16, size: 8)
    let table = BigEndian.integer(bytes, at: start + 24, size: 8)
    guard top < count, count < bytes.count, table > Self.headerSize, table <= start,
      Int(count) <= (start - Int(table)) / offsetSize
    else { throw Unusual() }
    (self.count, self.top, tableStart) = (Int(count), Int(top), Int(table))
  }

  private mutating func members() throws(Unusual) -> ArchivedMembers {
    try check(top, depth: 0)
    let archive = try dictionary(try offset(of: top))
    guard let objects = try value("$objects", in: archive),
      bytes[objects] >> 4 == Kind.array,
      let root = try value("$top", in: archive),
      let file = try value("root", in: try dictionary(root)), bytes[file] >> 4 == Kind.reference
    else { throw Unusual() }
    let array = try length(objects)
    self.objects = (array.start, array.count)
    return try members(of: try dictionary(try resolve(file)))
  }

  // MARK: - The file

  /// A member of a file that is read.
  private enum Member: UInt16, CaseIterable {
    case mode, size, owner, group, inode, modified, changed, born, protection, target, digest, key
    case attributes

    var name: StaticString {
      switch self {
      case .mode: "Mode"
      case .size: "Size"
      case .owner: "UserID"
      case .group: "GroupID"
      case .inode: "InodeNumber"
      case .modified: "LastModified"
      case .changed: "LastStatusChange"
      case .born: "Birth"
      case .protection: "ProtectionClass"
      case .target: "Target"
      case .digest: "Digest"
      case .key: "EncryptionKey"
      case .attributes: "ExtendedAttributes"
      }
    }

    static let all = Array(allCases)
  }

  private func members(of members: Members) throws(Unusual) -> ArchivedMembers {
    var file = ArchivedMembers()
    var found: UInt16 = 0
    for position in 0..<members.count {
      let name = try key(position, of: members)
      guard let member = Member.all.first(where: { isText(name, $0.name) }) else { continue }
      // Of a repeated member, the last one counts.
      guard found & (1 << member.rawValue) == 0 else { throw Unusual() }
      found |= 1 << member.rawValue
      let value = try value(position, of: members)
      switch member {
      case .mode: file.mode = try integer(value)
      case .size: file.size = try integer(value)
      case .owner: file.owner = try integer(value)
      case .group: file.group = try integer(value)
      case .inode: file.inode = try integer(value)
      case .modified: file.modified = try integer(value)
      case .changed: file.changed = try integer(value)
      case .born: file.born = try integer(value)
      case .protection: file.protectionClass = try integer(value)
      case .target: file.target = try text(try resolve(value))
      case .digest: file.digest = try data(try resolve(value))
      case .key: file.key = try data(try resolve(value))
      case .attributes: file.attributes = try data(try resolve(value))
      }
    }
    return file
  }

  private func integer(_ offset: Int) throws(Unusual) -> Int64 {
    guard bytes[offset] >> 4 == Kind.integer else { throw Unusual() }
    let size = 1 << Int(bytes[offset] & 15)
    return Int64(bitPattern: BigEndian.integer(bytes, at: offset + 1, size: size))
  }

  private func text(_ offset: Int) throws(Unusual) -> ByteString {
    guard bytes[offset] >> 4 == Kind.ascii, !isText(offset, "$null") else { throw Unusual() }
    return ByteString(try content(offset))
  }

  /// Returns the bytes of data, or of a dictionary with them.
  private func data(_ offset: Int) throws(Unusual) -> [UInt8] {
    if bytes[offset] >> 4 == Kind.data { return Array(try content(offset)) }
    guard let found = try value("NS.data", in: try dictionary(offset)) else { throw Unusual() }
    let data = try resolve(found)
    guard bytes[data] >> 4 == Kind.data else { throw Unusual() }
    return Array(try content(data))
  }

  /// Returns the offset of an object or, if it is a reference, that of the object it refers to.
  private func resolve(_ offset: Int) throws(Unusual) -> Int {
    guard bytes[offset] >> 4 == Kind.reference else { return offset }
    let number = BigEndian.integer(bytes, at: offset + 1, size: Int(bytes[offset] & 15) + 1)
    guard number < objects.count else { throw Unusual() }
    return try self.offset(
      of: try reference(objects.start + Int(number) * referenceSize))
  }
}

// MARK: - Objects

extension UsualArchive {
  /// The types of objects: the upper half of their first byte.
  private enum Kind {
    static let constant: UInt8 = 0
    static let integer: UInt8 = 1
    static let real: UInt8 = 2
    static let date: UInt8 = 3
    static let data: UInt8 = 4
    static let ascii: UInt8 = 5
    static let utf16: UInt8 = 6
    static let reference: UInt8 = 8
    static let array: UInt8 = 10
    static let dictionary: UInt8 = 13
  }

  /// The position of the references in a dictionary, and the number of its members.
  private typealias Members = (start: Int, count: Int)

  /// Checks an object and everything that it contains. A checked object can be read.
  private mutating func check(_ index: Int, depth: Int) throws(Unusual) {
    checked += 1
    guard checked <= Self.limit, depth < Self.depthLimit else { throw Unusual() }
    let offset = try offset(of: index)
    let low = Int(bytes[offset] & 15)
    switch bytes[offset] >> 4 {
    case Kind.constant where low == 8 || low == 9: return
    case Kind.integer where low <= 3: try requireBytes(1 << low, at: offset + 1)
    case Kind.real where low == 3, Kind.date where low == 3: try requireBytes(8, at: offset + 1)
    case Kind.data: _ = try content(offset)
    case Kind.ascii:
      guard try content(offset).allSatisfy({ $0 < 0x80 }) else { throw Unusual() }
    case Kind.utf16: try checkUTF16(offset)
    case Kind.reference where low < 8: try requireBytes(low + 1, at: offset + 1)
    case Kind.array:
      let array = try length(offset)
      try requireBytes(array.count * referenceSize, at: array.start)
      for item in 0..<array.count {
        try check(try reference(array.start + item * referenceSize), depth: depth + 1)
      }
    case Kind.dictionary:
      let members = try length(offset)
      try requireBytes(2 * members.count * referenceSize, at: members.start)
      for item in 0..<members.count {
        guard bytes[try key(item, of: members)] >> 4 == Kind.ascii else { throw Unusual() }
      }
      for item in 0..<(2 * members.count) {
        try check(try reference(members.start + item * referenceSize), depth: depth + 1)
      }
    default: throw Unusual()
    }
  }

  /// Checks a text in UTF-16, which must not contain surrogates.
  private func checkUTF16(_ offset: Int) throws(Unusual) {
    let text = try length(offset)
    try requireBytes(2 * text.count, at: text.start)
    for unit in 0..<text.count where bytes[text.start + 2 * unit] & 0xf8 == 0xd8 {
      throw Unusual()
    }
  }

  private func requireBytes(_ size: Int, at offset: Int) throws(Unusual) {
    guard offset <= tableStart - size else { throw Unusual() }
  }

  private func offset(of index: Int) throws(Unusual) -> Int {
    let entry = tableStart + index * offsetSize
    let offset = Int(BigEndian.integer(bytes, at: entry, size: offsetSize))
    guard offset >= Self.headerSize, offset < tableStart else { throw Unusual() }
    return offset
  }

  private func reference(_ offset: Int) throws(Unusual) -> Int {
    let index = Int(BigEndian.integer(bytes, at: offset, size: referenceSize))
    guard index < count else { throw Unusual() }
    return index
  }

  /// Returns the start of an object's content and its length in units.
  private func length(_ offset: Int) throws(Unusual) -> (start: Int, count: Int) {
    let short = Int(bytes[offset] & 15)
    if short < 15 { return (offset + 1, short) }
    try requireBytes(2, at: offset + 1)
    let power = Int(bytes[offset + 1] & 15)
    guard bytes[offset + 1] >> 4 == Kind.integer, power <= 1 else { throw Unusual() }
    try requireBytes(1 << power, at: offset + 2)
    let length = BigEndian.integer(bytes, at: offset + 2, size: 1 << power)
    return (offset + 2 + (1 << power), Int(length))
  }

  /// Returns the bytes of data or of an ASCII text.
  private func content(_ offset: Int) throws(Unusual) -> ArraySlice<UInt8> {
    let (start, count) = try length(offset)
    try requireBytes(count, at: start)
    return bytes[start..<(start + count)]
  }

  private func dictionary(_ offset: Int) throws(Unusual) -> Members {
    guard bytes[offset] >> 4 == Kind.dictionary else { throw Unusual() }
    return try length(offset)
  }

  private func key(_ position: Int, of members: Members) throws(Unusual) -> Int {
    try offset(of: try reference(members.start + position * referenceSize))
  }

  private func value(_ position: Int, of members: Members) throws(Unusual) -> Int {
    try offset(
      of: try reference(members.start + (members.count + position) * referenceSize))
  }

  /// Returns the offset of a member's value; nil if there is none.
  private func value(
    _ name: StaticString, in members: Members
  ) throws(Unusual) -> Int? {
    var found: Int?
    for position in 0..<members.count where isText(try key(position, of: members), name) {
      guard found == nil else { throw Unusual() }
      found = try value(position, of: members)
    }
    return found
  }

  /// Whether an object is an ASCII text.
  private func isText(_ offset: Int, _ text: StaticString) -> Bool {
    let size = text.utf8CodeUnitCount
    guard bytes[offset] >> 4 == Kind.ascii, let content = try? content(offset),
      content.count == size
    else { return false }
    return text.withUTF8Buffer { content.elementsEqual($0) }
  }
}

/// Integers with the most significant byte first.
private enum BigEndian {
  static func integer(_ bytes: [UInt8], at offset: Int, size: Int) -> UInt64 {
    var number: UInt64 = 0
    for index in offset..<(offset + size) { number = number << 8 | UInt64(bytes[index]) }
    return number
  }
}
