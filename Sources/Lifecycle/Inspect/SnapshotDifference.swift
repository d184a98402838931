public import ArchiveStore
public import SystemIO

/// What one path has in two snapshots that is not the same in both.
public struct SnapshotDifference: Sendable, Hashable {
  /// The logical path.
  public let path: ByteString
  /// What is there in the first snapshot.
  public let before: TreeEntry?
  /// What is there in the second.
  public let after: TreeEntry?

  /// What has become of the path.
  public enum Kind: String, Sendable, CaseIterable {
    case added
    case removed
    /// The bytes of a file, or a link's target, are others; the metadata may be, too.
    case content
    /// The same content under another mode, owner, time, flag or attribute.
    case metadata
    /// Something of another type stands there.
    case type
  }

  /// A part of an entry that may differ.
  public enum Aspect: String, Sendable, CaseIterable {
    case content, mode, owner, group, modified, attributes, flags, links
  }

  /// What has become of the path.
  public var kind: Kind {
    guard let before else { return .added }
    guard let after else { return .removed }
    if !before.isOfSameType(as: after) { return .type }
    return aspects.contains(.content) ? .content : .metadata
  }

  /// What differs, where something of the same type is in both snapshots. A directory's content is
  /// told by what is in it, so it is never among these.
  public var aspects: [Aspect] {
    guard let before, let after, before.isOfSameType(as: after) else { return [] }
    return Aspect.allCases.filter { before.differs(from: after, in: $0) }
  }
}

extension TreeEntry {
  fileprivate func isOfSameType(as other: TreeEntry) -> Bool {
    switch (node, other.node) {
    case (.file, .file), (.directory, .directory), (.symlink, .symlink), (.fifo, .fifo),
      (.socket, .socket), (.characterDevice, .characterDevice), (.blockDevice, .blockDevice):
      true
    default: false
    }
  }

  fileprivate func differs(
    from other: TreeEntry, in aspect: SnapshotDifference.Aspect
  ) -> Bool {
    switch aspect {
    case .content:
      if case .directory = node { return false }
      return node != other.node
    case .mode: return permissions != other.permissions
    case .owner: return owner != other.owner
    case .group: return group != other.group
    case .modified: return modified != other.modified
    case .attributes: return attributes != other.attributes || extensions != other.extensions
    case .flags: return flags != other.flags
    case .links: return linkGroup != other.linkGroup
    }
  }
}
