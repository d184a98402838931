internal import Codecs
public import SystemIO

/// What is known of a file before it is read.
public struct FileHints: Hashable, Sendable {
  /// Bytes, as the file system says; a guide for cutting, not a promise.
  public var size: UInt64?
  /// Whether it is to be cut as a SQLite database though it may not begin as one.
  public var isDatabase: Bool
  /// What the pack's own members bear, for those who extract them by hand.
  public var permissions: UInt16
  public var modified: Timestamp

  /// Makes hints.
  public init(
    size: UInt64? = nil, isDatabase: Bool = false, permissions: UInt16 = 0o644,
    modified: Timestamp = Timestamp(seconds: 0)
  ) {
    self.size = size
    self.isDatabase = isDatabase
    self.permissions = permissions
    self.modified = modified
  }
  /// The member at a path in a pack.
  func member(_ path: ByteString, size: Int) -> TarMember {
    TarMember(
      path: Array(path.bytes), size: size, mode: permissions & 0o7777, modified: modified.seconds)
  }
}
