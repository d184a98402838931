package import SystemIO

/// A path that is independent of container UUIDs and devices:
/// `apps/com.example.app/data/Documents/x`.
///
/// It is relative, and no component is empty, `.` or `..` or contains a NUL, so it is unambiguous
/// and cannot leave the tree in which it is resolved. It need not name an existing entry.
package struct LogicalPath: Hashable, Comparable, Sendable {
  /// The components joined with `/`; empty for the root.
  package let bytes: ByteString

  /// The path above all apps, groups and directories.
  package static let root = LogicalPath(checked: "")

  private init(checked bytes: ByteString) { self.bytes = bytes }

  /// Creates a path; the empty one is the root.
  ///
  /// - Throws: `logicalPath` for a path that is absolute, ends with a slash, or has an empty
  ///   component, `.`, `..` or a NUL.
  package init(_ bytes: ByteString) throws(ModelError) {
    if let reason = Self.fault(of: bytes) {
      throw ModelError(
        .logicalPath, "use the logical path", on: bytes, reason: reason,
        hint: "write it as 'apps/com.example.app/data/Documents'")
    }
    self.bytes = bytes
  }

  /// Joins a container's root and a path in it, which is empty for the root itself.
  package init(_ container: LogicalContainer, _ inner: ByteString = "") throws(ModelError) {
    if inner.isAbsolute {
      throw ModelError(
        .logicalPath, "use the path in a container", on: inner, reason: "it is absolute")
    }
    try self.init(container.prefix.appending(inner))
  }

  private static func fault(of path: ByteString) -> String? {
    if path.isEmpty { return nil }
    if path.isAbsolute { return "it is absolute, and logical paths are relative" }
    if path.hasNUL { return "it contains a NUL byte" }
    for part in path.bytes.split(separator: ByteString.slash, omittingEmptySubsequences: false) {
      if part.isEmpty { return "it has an empty component" }
      if part.elementsEqual(".".utf8) { return "it has '.' as a component" }
      if part.elementsEqual("..".utf8) { return "it has '..' as a component" }
    }
    return nil
  }

  /// The container and the path in it (empty for its root), or nil for paths above a container
  /// (`apps/com.example.app`) and unknown forms.
  package var place: (container: LogicalContainer, inner: ByteString)? {
    let parts = bytes.components
    var length = 0
    guard let container = LogicalContainer(parts, length: &length) else { return nil }
    return (container, ByteString(joining: parts.dropFirst(length)))
  }

  /// The parent path; the root is its own parent.
  package var parent: LogicalPath { LogicalPath(checked: bytes.parent) }

  /// Whether the path is `other` or lies below it.
  package func isWithin(_ other: LogicalPath) -> Bool { bytes.isWithin(other.bytes) }

  package static func < (left: Self, right: Self) -> Bool { left.bytes < right.bytes }
}

extension LogicalPath: CustomStringConvertible {
  /// The path for output, with escapes for unprintable characters.
  package var description: String { bytes.description }
}
