package import Codecs
package import SystemIO

/// A name in a directory, with everything that a restore recreates.
package struct TreeEntry: Hashable, Sendable {
  /// The name: 1 to 255 bytes without slash and NUL, neither `.` nor `..`.
  package var name: ByteString
  /// The type with its specific data.
  package var node: Node
  /// Permission bits with set-user-id, set-group-id and sticky: 0 to 0o7777.
  package var permissions: UInt16
  package var owner: UInt32
  package var group: UInt32
  package var modified: Timestamp
  /// The extended attributes, including POSIX ACLs.
  package var attributes: [Attribute]
  /// The preserved bits of `FS_IOC_GETFLAGS`.
  package var flags: UInt32
  /// The smallest path in the snapshot among the hard links of one file; all of them have it.
  package var linkGroup: ByteString?
  /// Fields written by a newer version, preserved when the entry is rewritten.
  package var extensions: [TreeExtension]

  /// Creates an entry.
  package init(
    name: ByteString, node: Node, permissions: UInt16? = nil, owner: UInt32 = 0,
    group: UInt32 = 0, modified: Timestamp = Timestamp(seconds: 0), attributes: [Attribute] = [],
    flags: UInt32 = 0, linkGroup: ByteString? = nil, extensions: [TreeExtension] = []
  ) {
    self.name = name
    self.node = node
    self.permissions = permissions ?? node.defaultPermissions
    self.owner = owner
    self.group = group
    self.modified = modified
    self.attributes = attributes
    self.flags = flags
    self.linkGroup = linkGroup
    self.extensions = extensions
  }
}

/// The type of an entry.
package enum Node: Hashable, Sendable {
  case file(Content)
  case directory(TreeReference)
  case symlink(target: ByteString)
  case fifo
  case socket
  case characterDevice(DeviceNumber)
  case blockDevice(DeviceNumber)

  /// The permissions that are omitted from the encoding.
  var defaultPermissions: UInt16 {
    switch self {
    case .directory: 0o755
    case .symlink: 0o777
    default: 0o644
    }
  }
}

/// A reference to a stored directory: the digest of its only page or of its page table.
package struct TreeReference: Hashable, Sendable {
  package let digest: Digest

  /// Creates a reference.
  package init(_ digest: Digest) { self.digest = digest }
}

/// The number of a device file.
package struct DeviceNumber: Hashable, Sendable {
  package let major: UInt32
  package let minor: UInt32

  /// Creates a number from its parts.
  package init(major: UInt32, minor: UInt32) {
    self.major = major
    self.minor = minor
  }

  /// Creates a number from a Linux device number (`makedev(3)`).
  package init(linux number: UInt64) {
    major = UInt32(truncatingIfNeeded: (number >> 8) & 0xfff | (number >> 32) & ~0xfff)
    minor = UInt32(truncatingIfNeeded: number & 0xff | (number >> 12) & ~0xff)
  }

  /// The Linux device number.
  package var linux: UInt64 {
    let (major, minor) = (UInt64(major), UInt64(minor))
    return (major & 0xfff) << 8 | (major & ~0xfff) << 32 | minor & 0xff | (minor & ~0xff) << 12
  }
}

/// An extended attribute.
package struct Attribute: Hashable, Sendable {
  package var name: ByteString
  package var value: Value

  /// The value itself if it has at most 512 bytes, otherwise the blob that holds it.
  package enum Value: Hashable, Sendable {
    case inline([UInt8])
    case blob(Digest, length: UInt64)
  }

  /// Creates an attribute.
  package init(name: ByteString, value: Value) {
    self.name = name
    self.value = value
  }

  /// The maximum length of an inline value in bytes.
  package static let inlineLimit = 512
}

/// A field of an entry with a key of 128 or more.
package struct TreeExtension: Hashable, Sendable {
  package let key: UInt64
  /// The value as deterministic CBOR.
  package let value: [UInt8]

  /// Creates a field.
  package init(key: UInt64, value: [UInt8]) {
    self.key = key
    self.value = value
  }
}
