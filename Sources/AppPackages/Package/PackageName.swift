internal import SystemIO

/// The rules for names of package entries.
package enum PackageName {
  /// Returns the reason why a path is not safe to extract, or nil if it is safe.
  ///
  /// - Parameter foreign: Whether the path comes from an archive, where a backslash can be intended
  ///   as a separator.
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
    name.count > 4 && name.bytes.suffix(4).elementsEqual(".app".utf8)
  }

  /// Returns the name as compared by volumes that ignore case and Unicode normalization.
  static func folded(_ path: ByteString) -> String? { path.utf8?.lowercased() }
}
