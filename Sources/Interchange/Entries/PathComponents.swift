internal import ArchiveStore
package import SystemIO

/// The paths of foreign entries, from the text that an archive has.
///
/// They may be longer than a path of a system call (`PATH_MAX`), like those of a backup: a restore
/// proceeds step by step. The limits are those of a snapshot, with room for the path above the
/// entries.
package enum PathComponents {
  /// The maximum number of bytes of a path: `folders/` and the longest name precede it.
  static let pathLimit = FormatLimit.path - 512
  /// The maximum number of components.
  static let depthLimit = FormatLimit.depth - 16

  /// Returns the components of a path of an archive: leading, trailing and repeated slashes and
  /// components `.` are dropped, as `tar` does when it extracts.
  ///
  /// - Throws: `PathFault` if a component is `..` or too long, if the path contains a NUL, or if it
  ///   is too long. Dropping `..` would give the entry another name, so it is refused.
  package static func parse(_ path: ByteString) throws(PathFault) -> [ByteString] {
    try parse(path, below: [])
  }

  /// Returns valid components followed by those of a path of an archive.
  ///
  /// - Throws: as `parse(_:)`, also if both together are too long.
  static func parse(
    _ path: ByteString, below first: [ByteString]
  ) throws(PathFault) -> [ByteString] {
    if path.hasNUL { throw PathFault(reason: "its name contains a NUL byte") }
    var components = first
    for part in path.bytes.split(separator: ByteString.slash) {
      if part.count == 1, part.first == UInt8(ascii: ".") { continue }
      components.append(ByteString(part))
    }
    if let fault = fault(in: components, from: first.count) { throw PathFault(reason: fault) }
    return components
  }

  /// Returns the reason why components are not a valid path, as a clause without its subject, or
  /// nil if they are.
  package static func fault(in components: [ByteString]) -> String? {
    fault(in: components, from: 0)
  }

  /// Returns the reason why components are not a valid path, of which those before an index are
  /// valid.
  private static func fault(in components: [ByteString], from start: Int) -> String? {
    if components.count > depthLimit { return "it is more than \(depthLimit) directories deep" }
    var length = components.count - 1
    for (index, component) in components.enumerated() {
      length += component.count
      if index < start { continue }
      if component == ".." { return "its name contains '..'" }
      if let fault = component.nameFault { return "its name has an invalid component: \(fault)" }
    }
    return length > pathLimit ? "its name has more than \(pathLimit) bytes" : nil
  }
}

/// The reason why a path of an archive cannot be taken.
package struct PathFault: Error, Hashable, Sendable {
  /// A clause without its subject: "its name contains '..'".
  package let reason: String
}
