internal import Codecs
internal import SystemIO

/// The keys and the encoding of an entry (docs/repository-format.md, "Entry").
///
/// A reader must know all keys up to 127. Unknown keys from 128 on are preserved.
enum TreeEntryCoding {
  enum Key {
    static let name: Int64 = 0
    static let type: Int64 = 1
    static let permissions: Int64 = 2
    static let owner: Int64 = 3
    static let group: Int64 = 4
    static let seconds: Int64 = 5
    static let nanoseconds: Int64 = 6
    static let size: Int64 = 7
    static let pieces: Int64 = 8
    static let level: Int64 = 9
    static let subtree: Int64 = 10
    static let target: Int64 = 11
    static let major: Int64 = 12
    static let minor: Int64 = 13
    static let attributes: Int64 = 14
    static let flags: Int64 = 15
    static let linkGroup: Int64 = 16
    static let firstExtension: Int64 = 128
  }

  enum NodeType: UInt64 {
    case file = 0
    case directory, symlink, fifo, socket, characterDevice, blockDevice
  }

  /// Returns the encoding of an entry without faults.
  static func encode(_ entry: TreeEntry) -> [UInt8] {
    var encoder = CBOREncoder(capacity: 160)
    encoder.beginMap()
    encoder.key(Key.name)
    encoder.bytes(entry.name.bytes)
    add(Key.type, type(of: entry.node).rawValue, to: &encoder)
    let permissions = UInt64(entry.permissions)
    add(
      Key.permissions, permissions, default: UInt64(entry.node.defaultPermissions), to: &encoder)
    add(Key.owner, UInt64(entry.owner), to: &encoder)
    add(Key.group, UInt64(entry.group), to: &encoder)
    if entry.modified.seconds != 0 {
      encoder.key(Key.seconds)
      encoder.integer(entry.modified.seconds)
    }
    add(Key.nanoseconds, UInt64(entry.modified.nanoseconds), to: &encoder)
    encode(entry.node, to: &encoder)
    encode(entry.attributes, to: &encoder)
    add(Key.flags, UInt64(entry.flags), to: &encoder)
    if let group = entry.linkGroup { add(Key.linkGroup, group, to: &encoder) }
    for field in entry.extensions {
      encoder.key(Int64(clamping: field.key))
      encoder.encoded(field.value)
    }
    encoder.endMap()
    return encoder.finish()
  }

  private static func add(
    _ key: Int64, _ value: UInt64, default: UInt64 = 0, to encoder: inout CBOREncoder
  ) {
    guard value != `default` else { return }
    encoder.key(key)
    encoder.unsigned(value)
  }

  private static func add(_ key: Int64, _ value: ByteString, to encoder: inout CBOREncoder) {
    encoder.key(key)
    encoder.bytes(value.bytes)
  }

  private static func encode(_ node: Node, to encoder: inout CBOREncoder) {
    switch node {
    case .file(let content):
      add(Key.size, content.size, to: &encoder)
      if !content.pieces.isEmpty {
        encoder.key(Key.pieces)
        ContentCoding.encode(content.pieces, to: &encoder)
      }
      add(Key.level, UInt64(content.level), to: &encoder)
    case .directory(let tree):
      encoder.key(Key.subtree)
      encoder.digest(tree.digest)
    case .symlink(let target): add(Key.target, target, to: &encoder)
    case .fifo, .socket: break
    case .characterDevice(let number), .blockDevice(let number):
      add(Key.major, UInt64(number.major), to: &encoder)
      add(Key.minor, UInt64(number.minor), to: &encoder)
    }
  }

  private static func encode(_ attributes: [Attribute], to encoder: inout CBOREncoder) {
    guard !attributes.isEmpty else { return }
    encoder.key(Key.attributes)
    encoder.beginArray(count: attributes.count)
    for attribute in attributes {
      encoder.beginArray(count: 2)
      encoder.bytes(attribute.name.bytes)
      switch attribute.value {
      case .inline(let value): encoder.bytes(value)
      case .blob(let digest, let length): encoder.blob(digest, length: length)
      }
      encoder.endArray()
    }
    encoder.endArray()
  }

  static func type(of node: Node) -> NodeType {
    switch node {
    case .file: .file
    case .directory: .directory
    case .symlink: .symlink
    case .fifo: .fifo
    case .socket: .socket
    case .characterDevice: .characterDevice
    case .blockDevice: .blockDevice
    }
  }
}

extension TreeEntryCoding {
  /// Decodes an entry. Refuses any `TreeEntry.fault`, an encoded default, an unknown key below 128,
  /// and a key that does not belong to the entry's type.
  static func decode(_ decoder: inout CBORDecoder) throws(CodecError) -> TreeEntry {
    var fields = Fields()
    try decoder.beginMap()
    while let key = try decoder.nextKey() { try fields.read(key, &decoder) }
    let entry = try fields.entry()
    if let fault = entry.fault {
      throw ContentCoding.fault("the entry '\(entry.name)' has \(fault)")
    }
    return entry
  }

  /// Returns the range of the name in an encoded entry, which is its first field.
  static func name(of bytes: [UInt8], _ entry: Range<Int>) throws(CodecError) -> Range<Int> {
    var decoder = CBORDecoder(bytes, range: entry)
    try decoder.beginMap()
    guard try decoder.nextKey() == Key.name else {
      throw ContentCoding.fault("an entry without a name")
    }
    return try decoder.byteRange(limit: 255)
  }

  /// The decoded fields of an entry; nil for fields with their default.
  private struct Fields {
    typealias Key = TreeEntryCoding.Key

    private var name: ByteString?
    private var type: UInt64?
    private var permissions: UInt64?
    private var owner: UInt64?
    private var group: UInt64?
    private var seconds: Int64?
    private var nanoseconds: UInt64?
    private var size: UInt64?
    private var pieces: [Piece]?
    private var level: UInt64?
    private var subtree: Digest?
    private var target: ByteString?
    private var major: UInt64?
    private var minor: UInt64?
    private var attributes: [Attribute] = []
    private var flags: UInt64?
    private var linkGroup: ByteString?
    private var extensions: [TreeEntry.Extension] = []

    mutating func read(_ key: Int64, _ decoder: inout CBORDecoder) throws(CodecError) {
      switch key {
      case Key.name: name = ByteString(try decoder.slice(limit: 255))
      case Key.type: type = try number(&decoder)
      case Key.permissions: permissions = try decoder.unsigned()
      case Key.owner: owner = try number(&decoder)
      case Key.group: group = try number(&decoder)
      case Key.seconds: seconds = try decoder.integer()
      case Key.nanoseconds: nanoseconds = try number(&decoder)
      case Key.size: size = try number(&decoder)
      case Key.pieces: pieces = try readPieces(&decoder)
      case Key.level: level = try number(&decoder)
      case Key.subtree: subtree = try ContentCoding.digest(&decoder)
      case Key.target: target = ByteString(try decoder.slice(limit: FormatLimit.path))
      case Key.major: major = try number(&decoder)
      case Key.minor: minor = try number(&decoder)
      case Key.attributes: attributes = try readAttributes(&decoder)
      case Key.flags: flags = try number(&decoder)
      case Key.linkGroup: linkGroup = ByteString(try decoder.slice(limit: FormatLimit.path))
      case Key.firstExtension...:
        extensions.append(TreeEntry.Extension(key: UInt64(key), value: try decoder.item()))
      default: throw ContentCoding.fault("an entry has the unknown key \(key)")
      }
    }

    /// Decodes a number that is omitted if it is 0.
    private func number(_ decoder: inout CBORDecoder) throws(CodecError) -> UInt64 {
      let value = try decoder.unsigned()
      if value == 0 { throw isDefault }
      return value
    }

    private var isDefault: CodecError { ContentCoding.fault("a default value is encoded") }

    private func readPieces(_ decoder: inout CBORDecoder) throws(CodecError) -> [Piece] {
      let pieces = try ContentCoding.decode(&decoder)
      if pieces.isEmpty { throw isDefault }
      return pieces
    }

    private func readAttributes(_ decoder: inout CBORDecoder) throws(CodecError) -> [Attribute] {
      var attributes: [Attribute] = []
      guard try decoder.beginArray() > 0 else { throw isDefault }
      while try decoder.nextElement() {
        guard try decoder.beginArray() == 2, try decoder.nextElement() else {
          throw ContentCoding.fault("an attribute is not an array of a name and a value")
        }
        let name = ByteString(try decoder.slice(limit: 255))
        _ = try decoder.nextElement()
        let value: Attribute.Value
        if try decoder.kind() == .bytes {
          value = .inline(try decoder.bytes(limit: Attribute.inlineLimit))
        } else {
          let (digest, length) = try ContentCoding.blob(&decoder)
          value = .blob(digest, length: length)
        }
        _ = try decoder.nextElement()
        attributes.append(Attribute(name: name, value: value))
      }
      return attributes
    }

    // MARK: - Putting together

    func entry() throws(CodecError) -> TreeEntry {
      guard let name else { throw ContentCoding.fault("an entry without a name") }
      let node = try node(name)
      if permissions == UInt64(node.defaultPermissions) || seconds == 0 { throw isDefault }
      let permissions: UInt16 = try narrow(permissions ?? UInt64(node.defaultPermissions))
      return TreeEntry(
        name: name, node: node, permissions: permissions,
        owner: try narrow(owner ?? 0), group: try narrow(group ?? 0),
        modified: Timestamp(seconds: seconds ?? 0, nanoseconds: try narrow(nanoseconds ?? 0)),
        attributes: attributes, flags: try narrow(flags ?? 0), linkGroup: linkGroup,
        extensions: extensions)
    }

    private func narrow<Value: FixedWidthInteger>(_ value: UInt64) throws(CodecError) -> Value {
      guard let narrow = Value(exactly: value) else {
        throw ContentCoding.fault("the number \(value) is out of range")
      }
      return narrow
    }

    private func node(_ name: ByteString) throws(CodecError) -> Node {
      guard let type = TreeEntryCoding.NodeType(rawValue: type ?? 0) else {
        throw ContentCoding.fault("the entry '\(name)' has the unknown type \(type ?? 0)")
      }
      let hasContent = size != nil || pieces != nil || level != nil
      let hasDevice = major != nil || minor != nil
      let isDevice = type == .characterDevice || type == .blockDevice
      guard !hasContent || type == .file, (subtree != nil) == (type == .directory),
        (target != nil) == (type == .symlink), !hasDevice || isDevice
      else {
        throw ContentCoding.fault("the keys of the entry '\(name)' do not match its type")
      }
      switch type {
      case .file: return .file(try content())
      case .fifo: return .fifo
      case .socket: return .socket
      case .characterDevice: return .characterDevice(try device())
      case .blockDevice: return .blockDevice(try device())
      case .directory, .symlink: break
      }
      if let subtree { return .directory(TreeReference(subtree)) }
      return .symlink(target: target ?? "")
    }

    private func device() throws(CodecError) -> TreeEntry.DeviceNumber {
      TreeEntry.DeviceNumber(major: try narrow(major ?? 0), minor: try narrow(minor ?? 0))
    }

    private func content() throws(CodecError) -> Content {
      let level: UInt8 = try narrow(level ?? 0)
      return Content(size: size ?? 0, level: level, pieces: pieces ?? [])
    }
  }
}
