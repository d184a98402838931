public import SystemIO

/// A directory, file or link of an app's package.
public struct PackageEntry: Hashable, Sendable {
  /// Where it belongs, relative to the directory that holds the bundle: `Example.app/Info.plist`. No
  /// component is empty, `.` or `..` or holds a NUL, and the first one is the bundle's directory.
  public let path: ByteString
  public let kind: Kind
  /// The permission bits, at most 0o777: set-user-id and its like are never taken over.
  public let permissions: UInt16
  public let modified: Timestamp

  /// What it is.
  public enum Kind: Hashable, Sendable {
    case folder
    /// A file with so many bytes.
    case file(size: UInt64)
    /// A symbolic link, which leads to somewhere in the bundle.
    case link(target: ByteString)
  }

  /// Makes an entry; who makes it has checked the path.
  public init(path: ByteString, kind: Kind, permissions: UInt16, modified: Timestamp) {
    self.path = path
    self.kind = kind
    self.permissions = permissions
    self.modified = modified
  }
}
