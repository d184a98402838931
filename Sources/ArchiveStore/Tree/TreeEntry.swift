public import Codecs
public import SystemIO

/// A name in a directory, with everything that a restore recreates.
public struct TreeEntry: Hashable, Sendable {
  /// The name: 1 to 255 bytes without slash and NUL, neither `.` nor `..`.
  public var name: ByteString
  /// The type with its specific data.
  public var node: Node
  /// Permission bits with set-user-id, set-group-id and sticky: 0 to 0o7777.
  public var permissions: UInt16
  public var owner: UInt32
  public var group: UInt32
  public var modified: Timestamp
  /// The extended attributes, including POSIX ACLs.
  public var attributes: [Attribute]
  /// The preserved bits of `FS_IOC_GETFLAGS`.
  public var flags: UInt32
  /// The smallest path in the snapshot among the hard links of one file; all of them have it.
  public var linkGroup: ByteString?
  /// Fields written by a newer version, preserved when the entry is rewritten.
  public var extensions: [Extension]

  /// Creates an entry.
  public init(
    name: ByteString, node: Node, permissions: UInt16? = nil, owner: UInt32 = 0,
    group: UInt32 = 0, modified: Timestamp = Timestamp(seconds: 0), attributes: [Attribute] = [],
    flags: UInt32 = 0, linkGroup: ByteString? = nil, extensions: [Extension] = []
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
public enum Node: Hashable, Sendable {
  case file(Content)
  case directory(TreeReference)
  case symlink(target: ByteString)
  case fifo
  case socket
  case characterDevice(TreeEntry.DeviceNumber)
  case blockDevice(TreeEntry.DeviceNumber)

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
public struct TreeReference: Hashable, Sendable {
  public let digest: Digest

  /// Creates a reference.
  public init(_ digest: Digest) { self.digest = digest }
}

extension TreeEntry {
  /// The number of a device file.
  public struct DeviceNumber: Hashable, Sendable {
    public let major: UInt32
    public let minor: UInt32

    /// Creates a number from its parts.
    public init(major: UInt32, minor: UInt32) {
      self.major = major
      self.minor = minor
    }

    /// Creates a number from a Linux device number (`makedev(3)`).
    public init(linux number: UInt64) {
      major = UInt32(truncatingIfNeeded: (number >> 8) & 0xfff | (number >> 32) & ~0xfff)
      minor = UInt32(truncatingIfNeeded: number & 0xff | (number >> 12) & ~0xff)
    }

    /// The Linux device number.
    public var linux: UInt64 {
      let (major, minor) = (UInt64(major), UInt64(minor))
      return (major & 0xfff) << 8 | (major & ~0xfff) << 32 | minor & 0xff | (minor & ~0xff) << 12
    }
  }
}

/// An extended attribute.
public struct Attribute: Hashable, Sendable {
  public var name: ByteString
  public var value: Value

  /// The value itself if it has at most 512 bytes, otherwise the blob that holds it.
  public enum Value: Hashable, Sendable {
    case inline([UInt8])
    case blob(Digest, length: UInt64)
  }

  /// Creates an attribute.
  public init(name: ByteString, value: Value) {
    self.name = name
    self.value = value
  }

  /// The maximum length of an inline value in bytes.
  public static let inlineLimit = 512
}

extension TreeEntry {
  /// A field of an entry with a key of 128 or more.
  public struct Extension: Hashable, Sendable {
    public let key: UInt64
    /// The value as deterministic CBOR.
    public let value: [UInt8]

    /// Creates a field.
    public init(key: UInt64, value: [UInt8]) {
      self.key = key
      self.value = value
    }
  }

  /// The first violation of the format in this entry, or nil if there is none. Writers and readers
  /// apply the same checks.
  var fault: String? {
    PathRules.fault(inName: name) ?? valueFault ?? node.fault ?? attributeFault
      ?? linkFault ?? extensionFault
  }

  private var valueFault: String? {
    if permissions > 0o7777 { return "permissions beyond 07777" }
    return modified.nanoseconds > 999_999_999 ? "nanoseconds beyond 999999999" : nil
  }

  private var attributeFault: String? {
    var last: ByteString?
    for attribute in attributes {
      let name = attribute.name
      if name.isEmpty || name.hasNUL || name.count > 255 {
        return "an attribute with an invalid name"
      }
      if let last, !(last < name) { return "attributes out of order or duplicated" }
      last = name
      switch attribute.value {
      case .inline(let value):
        if value.count > Attribute.inlineLimit { return "an inline attribute that is too long" }
      case .blob(_, let length):
        if length <= Attribute.inlineLimit || length > FormatLimit.blob {
          return "an attribute's blob of \(length) bytes"
        }
      }
    }
    return nil
  }

  private var linkFault: String? {
    guard let linkGroup else { return nil }
    if case .directory = node { return "a directory with hard links" }
    return PathRules.fault(inPath: linkGroup).map { "a hard-link group with \($0)" }
  }

  private var extensionFault: String? {
    var last: UInt64 = 127
    for field in extensions {
      guard field.key > last, field.key <= Int64.max else { return "extensions out of order" }
      last = field.key
      var decoder = CBORDecoder(field.value)
      do {
        try decoder.skip()
        try decoder.finish()
      } catch { return "an extension that is not deterministic CBOR" }
    }
    return nil
  }
}

extension Node {
  fileprivate var fault: String? {
    switch self {
    case .file(let content): content.fault
    case .symlink(let target):
      if target.isEmpty || target.hasNUL || target.count > FormatLimit.path {
        "a link with an invalid target"
      } else {
        nil
      }
    case .directory, .fifo, .socket, .characterDevice, .blockDevice: nil
    }
  }
}

extension TreeEntry {
  /// Returns the encoding of the entry in a tree (docs/repository-format.md, "Entry").
  ///
  /// - Throws: `invalid` for an entry that violates the format.
  public func encoded() throws(StoreError) -> [UInt8] {
    if attributes.count > 1 {
      var sorted = self
      sorted.attributes.sort { $0.name < $1.name }
      return try sorted.encodedInOrder()
    }
    return try encodedInOrder()
  }

  private func encodedInOrder() throws(StoreError) -> [UInt8] {
    if let fault { throw .invalid("the entry \(name)", "it has \(fault)") }
    return TreeEntryCoding.encode(self)
  }

  /// Decodes an entry encoded by `encoded()`.
  ///
  /// - Throws: `damaged` for any other bytes.
  public init(encoded bytes: [UInt8]) throws(StoreError) {
    do throws(CodecError) {
      var decoder = CBORDecoder(bytes)
      self = try TreeEntryCoding.decode(&decoder)
      try decoder.finish()
    } catch { throw .codec(error, "an entry outside of a tree") }
  }
}

extension TreeEntry {
  /// Returns the entry under another name.
  public func named(_ name: ByteString) -> TreeEntry {
    var entry = self
    entry.name = name
    return entry
  }

  /// Creates an entry with the metadata of a status.
  public init(
    name: ByteString, node: Node, status: FileStatus, attributes: [Attribute],
    flags: UInt32 = 0, linkGroup: ByteString? = nil
  ) {
    self.init(
      name: name, node: node, permissions: status.permissions, owner: status.user,
      group: status.group, modified: status.modified, attributes: attributes,
      flags: flags, linkGroup: linkGroup)
  }
}

extension Attribute {
  /// The name of the attribute with the label of the host's security policy, which has no meaning
  /// on another host.
  public static let hostLabel: ByteString = "security.selinux"
}

extension TreeEntry {
  /// Whether the entry is a directory.
  public var isDirectory: Bool { if case .directory = node { true } else { false } }
}

extension Node {
  /// The file kind of the node.
  public var kind: FileKind {
    switch self {
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
