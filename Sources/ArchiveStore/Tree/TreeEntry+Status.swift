public import SystemIO

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
