internal import Codecs
internal import SystemIO

/// The values of extended headers, which apply to the next member.
struct TarExtension {
  private var path: ByteString?
  private var link: ByteString?
  private var size: UInt64?
  private var owner: UInt32?
  private var group: UInt32?
  private var modified: Timestamp?
  private var isSparse = false
  private var attributes: [ByteString: [UInt8]] = [:]
  /// The records of attributes and lists that are not taken.
  private var hasOtherAttributes = false
  private var hasLists = false
  private var unread: UInt64?

  /// The types of extended headers: of pax for one member and for all, and GNU's long names.
  static let types = Array("xgLK".utf8)

  /// Records a header that is too large to be read. Records for all members contain nothing that
  /// this reader uses.
  mutating func skip(_ header: TarHeader) {
    if header.type != UInt8(ascii: "g") { unread = header.size }
  }

  /// Reads the content of an extended header. Returns the reason why it is invalid, or nil.
  mutating func read(_ bytes: [UInt8], of type: UInt8) -> String? {
    // A NUL within the name stays, so that the name is refused.
    let name = ByteString(bytes[..<((bytes.lastIndex { $0 != 0 } ?? -1) + 1)])
    switch type {
    case UInt8(ascii: "L"): path = name
    case UInt8(ascii: "K"): link = name
    case UInt8(ascii: "x"): return readRecords(bytes)
    // Records for all members contain nothing that this reader uses.
    default: break
    }
    return nil
  }

  /// Reads records `<length> <key>=<value>\n`.
  private mutating func readRecords(_ bytes: [UInt8]) -> String? {
    var rest = bytes[...]
    while let first = rest.first, first != 0 {
      let digits = rest.prefix(8).prefix { $0 != 0x20 }
      guard let length = Int(String(decoding: digits, as: UTF8.self)), length <= rest.count,
        length > digits.count + 2, rest[rest.startIndex + length - 1] == UInt8(ascii: "\n")
      else { return "a record of an extended header is damaged" }
      let record = rest[(rest.startIndex + digits.count + 1)..<(rest.startIndex + length - 1)]
      guard let equals = record.firstIndex(of: UInt8(ascii: "=")) else {
        return "a record of an extended header has no value"
      }
      let key = record[..<equals]
      if !set(key, to: record[(equals + 1)...]) {
        return "the record '\(ByteString(key))' of an extended header is invalid"
      }
      rest = rest.dropFirst(length)
    }
    return nil
  }

  /// Sets a value. Returns false if it is invalid. Unknown keys are ignored, as pax requires.
  private mutating func set(_ key: ArraySlice<UInt8>, to value: ArraySlice<UInt8>) -> Bool {
    let text = String(decoding: value, as: UTF8.self)
    switch String(decoding: key, as: UTF8.self) {
    case "path": path = ByteString(value)
    case "linkpath": link = ByteString(value)
    case "size":
      size = UInt64(text)
      return size.map { $0 <= UInt64(Int64.max) - 1024 } ?? false
    case "uid":
      owner = UInt32(text)
      return owner != nil
    case "gid":
      group = UInt32(text)
      return group != nil
    case "mtime":
      modified = Self.time(text)
      return modified != nil
    default: setOther(key, to: value)
    }
    return true
  }

  private mutating func setOther(_ key: ArraySlice<UInt8>, to value: ArraySlice<UInt8>) {
    if key.starts(with: Self.attributePrefix.utf8) {
      let name = Array(key.dropFirst(Self.attributePrefix.utf8.count))
      attributes[ByteString(PaxAttributeName.decode(name))] = Array(value)
    } else if key.starts(with: "GNU.sparse.".utf8) {
      isSparse = true
    } else if key.starts(with: "SCHILY.acl.".utf8) {
      hasLists = true
    } else if key.starts(with: "LIBARCHIVE.xattr.".utf8) {
      hasOtherAttributes = true
    }
  }

  /// The beginning of the keys of attributes as star and GNU tar write them. bsdtar writes them in
  /// a form of its own as well.
  private static let attributePrefix = "SCHILY.xattr."

  /// Returns the time of decimal seconds with a fraction, rounded down to nanoseconds.
  private static func time(_ text: String) -> Timestamp? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = parts.first, let seconds = Int64(whole) else { return nil }
    let fraction = parts.count > 1 ? parts[1].prefix(9) : ""
    guard fraction.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    let padded = fraction + String(repeating: "0", count: 9 - fraction.utf8.count)
    guard let nanoseconds = UInt32(padded) else { return nil }
    if nanoseconds == 0 || !whole.hasPrefix("-") {
      return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
    }
    guard seconds > Int64.min else { return nil }
    return Timestamp(seconds: seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds)
  }

  /// Returns the member of a header with the values of the extended headers before it.
  func applied(to header: TarHeader) -> AndroidTarMember {
    var member = AndroidTarMember(
      path: path ?? header.path, type: header.type,
      size: header.hasContent ? size ?? header.size : 0,
      permissions: header.permissions, owner: owner ?? header.owner, group: group ?? header.group,
      modified: modified ?? Timestamp(seconds: header.modified), link: link ?? header.link,
      isSparse: isSparse, unreadExtension: unread)
    for (name, value) in attributes.sorted(by: { $0.key < $1.key }) {
      if name.isEmpty || name.count > 255 || name.hasNUL {
        member.omissions.append("an attribute with an invalid name was dropped")
      } else {
        member.attributes.append(.init(name: name, value: value))
      }
    }
    if hasOtherAttributes, attributes.isEmpty {
      member.omissions.append("its extended attributes were dropped: only bsdtar knows their form")
    }
    if hasLists { member.omissions.append("its access control list was dropped") }
    return member
  }
}
