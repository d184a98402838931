package import ArchiveStore
package import SystemIO

/// A difference between two snapshots at one path.
package struct SnapshotDifference: Sendable, Hashable {
  /// The logical path.
  package let path: ByteString
  /// The entry in the first snapshot.
  package let before: TreeEntry?
  /// The entry in the second snapshot.
  package let after: TreeEntry?
  /// The result of comparing the bytes of two files that are stored in different pieces.
  let bytes: ContentComparison.Outcome

  init(
    path: ByteString, before: TreeEntry?, after: TreeEntry?,
    bytes: ContentComparison.Outcome = .different
  ) {
    (self.path, self.before, self.after, self.bytes) = (path, before, after, bytes)
  }

  /// The kind of a difference.
  package enum Kind: String, Sendable, CaseIterable {
    case added
    case removed
    /// The file's bytes or the link's target differ; the metadata may differ too.
    case content
    /// The content is equal; the mode, owner, time, flags, attributes or holes differ.
    case metadata
    /// The types of the entries differ.
    case type
  }

  /// A part of an entry that may differ.
  package enum Aspect: String, Sendable, CaseIterable {
    case content, mode, owner, group, modified, attributes, flags, links
    /// Zeros that are a hole in one of the files are stored in the other.
    case holes
  }

  /// The kind of the difference.
  package var kind: Kind {
    guard let before else { return .added }
    guard let after else { return .removed }
    if !before.isOfSameType(as: after) { return .type }
    return aspects.contains(.content) ? .content : .metadata
  }

  /// The differing aspects, if both snapshots have an entry of the same type. `content` is never
  /// among those of a directory because its entries are compared separately. Files with the same
  /// bytes in different pieces have the same content.
  package var aspects: [Aspect] {
    guard let before, let after, before.isOfSameType(as: after) else { return [] }
    return Aspect.allCases.filter { aspect in
      switch (aspect, bytes) {
      case (.content, .same), (.content, .otherHoles): false
      case (.holes, _): bytes == .otherHoles
      default: before.differs(from: after, in: aspect)
      }
    }
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
    case .holes: return false
    }
  }
}
