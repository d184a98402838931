internal import SystemIO

/// A request of version 3 of the SSH File Transfer Protocol (draft-ietf-secsh-filexfer-02, "SFTP"
/// in the comments here) or of an OpenSSH extension (OpenSSH's file PROTOCOL, section 4).
///
/// Numbers are big-endian. A packet consists of its length in 4 bytes, a type, the request's number
/// in 4 bytes (only the first packet has none), and the fields.
enum SFTPRequest: Hashable, Sendable {
  case open(path: ByteString, flags: SFTPOpenFlags, permissions: UInt32?)
  case close(SFTPHandle)
  case read(SFTPHandle, offset: UInt64, count: UInt32)
  case write(SFTPHandle, offset: UInt64, bytes: ArraySlice<UInt8>)
  /// The status of a path, whose last component is not followed if it is a link.
  case status(ByteString)
  /// The status of a path, with every link followed.
  case followedStatus(ByteString)
  case setSize(SFTPHandle, UInt64)
  case setPermissions(path: ByteString, UInt32)
  case openDirectory(ByteString)
  case readDirectory(SFTPHandle)
  case remove(ByteString)
  case makeDirectory(ByteString, permissions: UInt32)
  case removeDirectory(ByteString)
  /// Fails if the target exists.
  case rename(ByteString, to: ByteString)
  /// Replaces the target if it exists, as rename(2) does.
  case renameReplacing(ByteString, to: ByteString)
  case sync(SFTPHandle)
  case space(ByteString)
  case limits
}

/// The flags of an open request (SFTP 6.3).
struct SFTPOpenFlags: OptionSet, Hashable, Sendable {
  let rawValue: UInt32
  static let read = SFTPOpenFlags(rawValue: 0x01)
  static let write = SFTPOpenFlags(rawValue: 0x02)
  static let create = SFTPOpenFlags(rawValue: 0x08)
  static let truncate = SFTPOpenFlags(rawValue: 0x10)
  static let exclusive = SFTPOpenFlags(rawValue: 0x20)
}

/// The server's name of an open file or directory: 1 to 256 bytes that only it understands (SFTP
/// 6.3).
struct SFTPHandle: Hashable, Sendable {
  let bytes: [UInt8]
}

// MARK: - Encoding

extension SFTPRequest {
  /// The packet that starts a connection and asks for version 3 (SFTP 4).
  static let hello: [UInt8] = [0, 0, 0, 5, 1, 0, 0, 0, 3]

  /// The maximum length of a path that is sent, in bytes: PATH_MAX of Linux.
  static let pathLimit = 4096

  /// Returns the packet with a number.
  func packet(_ id: UInt32) -> [UInt8] {
    var packet = SFTPPacketBuilder(type: type, id: id, capacity: payload)
    switch self {
    case .open(let path, let flags, let permissions):
      packet.add(path)
      packet.add(flags.rawValue)
      packet.add(permissions: permissions)
    case .close(let handle), .readDirectory(let handle): packet.add(handle.bytes)
    case .read(let handle, let offset, let count):
      packet.add(handle.bytes)
      packet.add(offset)
      packet.add(count)
    case .write(let handle, let offset, let bytes):
      packet.add(handle.bytes)
      packet.add(offset)
      packet.add(bytes)
    case .setSize(let handle, let size):
      packet.add(handle.bytes)
      packet.add(size: size)
    case .setPermissions(let path, let permissions), .makeDirectory(let path, let permissions):
      packet.add(path)
      packet.add(permissions: permissions)
    case .rename(let path, let target):
      packet.add(path)
      packet.add(target)
    case .status(let path), .followedStatus(let path), .openDirectory(let path), .remove(let path),
      .removeDirectory(let path):
      packet.add(path)
    case .renameReplacing, .sync, .space, .limits: add(extensionTo: &packet)
    }
    return packet.finished()
  }

  private func add(extensionTo packet: inout SFTPPacketBuilder) {
    switch self {
    case .renameReplacing(let path, let target):
      packet.add(SFTPExtension.rename.name)
      packet.add(path)
      packet.add(target)
    case .sync(let handle):
      packet.add(SFTPExtension.sync.name)
      packet.add(handle.bytes)
    case .space(let path):
      packet.add(SFTPExtension.space.name)
      packet.add(path)
    default: packet.add(SFTPExtension.limits.name)
    }
  }

  /// The number of bytes of a large field.
  private var payload: Int { if case .write(_, _, let bytes) = self { bytes.count } else { 0 } }

  /// The number of the packet's type (SFTP 3).
  private var type: UInt8 {
    switch self {
    case .open: 3
    case .close: 4
    case .read: 5
    case .write: 6
    case .status: 7
    case .setPermissions: 9
    case .setSize: 10
    case .openDirectory: 11
    case .readDirectory: 12
    case .remove: 13
    case .makeDirectory: 14
    case .removeDirectory: 15
    case .followedStatus: 17
    case .rename: 18
    case .renameReplacing, .sync, .space, .limits: 200
    }
  }
}

/// Builds a packet. Its length is set at the end.
private struct SFTPPacketBuilder {
  private var bytes: [UInt8] = [0, 0, 0, 0]

  init(type: UInt8, id: UInt32, capacity: Int) {
    bytes.reserveCapacity(capacity + 512)
    bytes.append(type)
    add(id)
  }

  mutating func add(_ number: UInt32) {
    for shift in [24, 16, 8, 0] as [UInt32] {
      bytes.append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }

  mutating func add(_ number: UInt64) {
    add(UInt32(truncatingIfNeeded: number >> 32))
    add(UInt32(truncatingIfNeeded: number))
  }

  mutating func add(_ string: some Collection<UInt8>) {
    add(UInt32(clamping: string.count))
    bytes.append(contentsOf: string)
  }

  mutating func add(_ path: ByteString) { add(path.bytes) }

  /// Adds attributes (SFTP 5) with permissions only, or with none.
  mutating func add(permissions: UInt32?) {
    add(permissions == nil ? 0 : SFTPAttributes.hasPermissions)
    if let permissions { add(permissions) }
  }

  /// Adds attributes with a size only.
  mutating func add(size: UInt64) {
    add(SFTPAttributes.hasSize)
    add(size)
  }

  consuming func finished() -> [UInt8] {
    let length = UInt32(clamping: bytes.count - 4)
    for (index, shift) in ([24, 16, 8, 0] as [UInt32]).enumerated() {
      bytes[index] = UInt8(truncatingIfNeeded: length >> shift)
    }
    return bytes
  }
}
