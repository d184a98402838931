public import SystemIO

/// A directory, file or link in an app's package.
public struct PackageEntry: Hashable, Sendable {
  /// The path relative to the directory that contains the bundle: `Example.app/Info.plist`. No
  /// component is empty, `.` or `..` or contains a NUL, and the first one is the bundle's
  /// directory.
  public let path: ByteString
  public let kind: Kind
  /// The permission bits, at most 0o777: set-user-ID, set-group-ID and sticky bits are not
  /// preserved.
  public let permissions: UInt16
  public let modified: Timestamp

  /// The kind of an entry.
  public enum Kind: Hashable, Sendable {
    case folder
    /// A file with its size in bytes.
    case file(size: UInt64)
    /// A symbolic link to a target in the bundle.
    case link(target: ByteString)
  }

  /// Creates an entry with a path that the caller has checked.
  public init(path: ByteString, kind: Kind, permissions: UInt16, modified: Timestamp) {
    self.path = path
    self.kind = kind
    self.permissions = permissions
    self.modified = modified
  }
}
