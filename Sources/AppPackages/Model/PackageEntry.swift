package import SandboxModel
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
    case directory
    /// A file with its size in bytes.
    case file(size: UInt64)
    /// A symbolic link to a target in the bundle.
    case link(target: ByteString)
  }
}

extension PackageEntry {
  /// The rules for names of package entries.
  enum Name {
    /// Returns the reason why a path is not safe to extract, or nil if it is safe.
    ///
    /// - Parameter foreign: Whether the path comes from an archive, where a backslash can be
    ///   intended as a separator.
    static func fault(of path: ByteString, depth: Int, foreign: Bool) -> String? {
      if path.isEmpty { return "the name is empty" }
      if path.isAbsolute { return "the name is absolute" }
      if path.hasNUL { return "the name contains a NUL byte" }
      if path.count > 4095 { return "the name has more than 4,095 bytes" }
      let parts = path.bytes.split(separator: ByteString.slash, omittingEmptySubsequences: false)
      if parts.count > depth { return "it is more than \(depth) directories deep" }
      for part in parts {
        if part.isEmpty { return "the name has an empty component" }
        if part.elementsEqual(".".utf8) { return "the name has '.' as a component" }
        if part.elementsEqual("..".utf8) { return "the name has '..' as a component" }
        if part.count > 255 { return "a component of the name has more than 255 bytes" }
        if foreign, part.contains(UInt8(ascii: "\\")) {
          return "the name has a backslash, which some programs treat as a slash"
        }
      }
      return nil
    }

    /// Whether a name is that of an app bundle, `Example.app`.
    static func isBundle(_ name: ByteString) -> Bool {
      name.count > 4 && name.hasSuffix(".app")
    }

    /// Returns the name as compared by volumes that ignore case and Unicode normalization.
    static func folded(_ path: ByteString) -> String? { path.utf8?.lowercased() }
  }
}

/// The entries of a package of any form, read once and in sequence.
///
/// A directory precedes its content, and each path occurs once. No path leads through a link of the
/// package, and no link leads out of the bundle.
package protocol PackageEntrySource: ~Copyable {
  /// Returns the next entry, or nil after the last one. Skips the unread part of the previous file.
  ///
  /// - Throws: `package` if the package is damaged or has changed since it was opened, `system` for
  ///   a failed system call.
  mutating func next() throws(ModelError) -> PackageEntry?

  /// Reads from the file that `next` returned last into `buffer`, and returns the number of bytes
  /// read: less than the buffer's size only at the end of the file, and 0 after it.
  ///
  /// Throws if the file's content does not have the size given in its entry.
  mutating func read(into buffer: inout [UInt8]) throws(ModelError) -> Int
}
