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
      case .blob(let digest, let length):
        encoder.beginArray(count: 2)
        encoder.unsigned(length)
        encoder.digest(digest)
        encoder.endArray()
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
