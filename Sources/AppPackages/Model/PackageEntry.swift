package import SystemIO

/// A directory, file or link in an app's package.
package struct PackageEntry: Hashable, Sendable {
  /// The path relative to the directory that contains the bundle: `Example.app/Info.plist`. No
  /// component is empty, `.` or `..` or contains a NUL, and the first one is the bundle's
  /// directory.
  package let path: ByteString
  package let kind: Kind
  /// The permission bits, at most 0o777: set-user-ID, set-group-ID and sticky bits are not
  /// preserved.
  package let permissions: UInt16
  package let modified: Timestamp

  /// The kind of an entry.
  package enum Kind: Hashable, Sendable {
    case folder
    /// A file with its size in bytes.
    case file(size: UInt64)
    /// A symbolic link to a target in the bundle.
    case link(target: ByteString)
  }

  /// Creates an entry with a path that the caller has checked.
  package init(path: ByteString, kind: Kind, permissions: UInt16, modified: Timestamp) {
    self.path = path
    self.kind = kind
    self.permissions = permissions
    self.modified = modified
  }
}
