package import SystemIO

/// The attributes of a node, as stat(2) returns them.
package struct NodeAttributes: Hashable, Sendable {
  /// The inode number.
  package var number: UInt64
  package var kind: FileKind
  package var permissions: UInt16
  package var links: UInt32
  package var user: UInt32
  package var group: UInt32
  /// The number of a device file.
  package var device: UInt64 = 0
  package var size: UInt64
  /// The allocated size in units of 512 bytes.
  package var blocks: UInt64
  package var modified: Timestamp
  /// The seconds for which the kernel may keep the name, and the attributes.
  package var nameSeconds: Double
  package var seconds: Double

  /// The time for which constant names and attributes stay valid: a year.
  static let constant = 31_536_000.0

  /// The type and the permissions in the form of the C library.
  package var mode: UInt32 { kind.mode | UInt32(permissions) }
}

extension FileKind {
  /// The type in the form of the C library.
  var mode: UInt32 {
    switch self {
    case .file: 0o100000
    case .directory: 0o040000
    case .symlink: 0o120000
    case .fifo: 0o010000
    case .socket: 0o140000
    case .characterDevice: 0o020000
    case .blockDevice: 0o060000
    }
  }
}
