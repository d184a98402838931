internal import Codecs
package import SystemIO

/// Properties of a file that are known before it is read.
package struct FileHints: Hashable, Sendable {
  /// The size in bytes reported by the file system; a hint for cutting.
  package var size: UInt64?
  /// Whether the file is cut as a SQLite database even if it does not begin like one.
  package var isDatabase: Bool
  /// The metadata of the members in packs, for manual extraction.
  package var permissions: UInt16
  package var modified: Timestamp

  /// Creates hints.
  package init(
    size: UInt64? = nil, isDatabase: Bool = false, permissions: UInt16 = 0o644,
    modified: Timestamp = Timestamp(seconds: 0)
  ) {
    self.size = size
    self.isDatabase = isDatabase
    self.permissions = permissions
    self.modified = modified
  }
  /// Returns the member at a path in a pack.
  func member(_ path: ByteString, size: Int) -> TarMember {
    TarMember(
      path: Array(path.bytes), size: size, mode: permissions & 0o7777, modified: modified.seconds)
  }
}
