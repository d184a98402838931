package import SystemIO

/// An entry of an app's data, as a migration plan compares it.
package struct MigrationEntry: Sendable, Hashable {
  /// The path relative to the home directory.
  package let path: ByteString
  /// The type of the entry.
  package let kind: FileKind
  /// The size of a file in bytes; 0 for other entries.
  package let size: UInt64
  /// The time of the last change of the content.
  package let modified: Timestamp
  /// The target of a symbolic link; nil for other entries.
  package let target: ByteString?
  /// The bytes that a copy of a file allocates, without holes; 0 for other entries.
  package let allocated: UInt64
  /// The inode of a file with several names, which is copied once; nil for other entries.
  package let inode: FileIdentity?

  /// Creates an entry.
  ///
  /// - Parameter allocated: The bytes that a copy allocates; the size unless they are given.
  package init(
    _ path: ByteString, kind: FileKind, size: UInt64 = 0,
    modified: Timestamp = Timestamp(seconds: 0), target: ByteString? = nil,
    allocated: UInt64? = nil, inode: FileIdentity? = nil
  ) {
    self.path = path
    self.kind = kind
    self.size = size
    self.modified = modified
    self.target = target
    self.allocated = allocated ?? size
    self.inode = inode
  }

  /// Whether two entries have the same type, size, time and link target. Their contents are not
  /// compared.
  package func isSame(as other: MigrationEntry) -> Bool {
    guard kind == other.kind else { return false }
    switch kind {
    case .file: return size == other.size && modified == other.modified
    case .symlink: return target == other.target
    default: return kind == .directory
    }
  }
}
