internal import SystemIO

/// What the name of a package's entry may be.
enum PackageName {
  /// Why a path cannot be unpacked safely; nil when it can.
  ///
  /// - Parameter foreign: whether it comes from an archive, where a backslash may be meant as a
  ///   separator of directories.
  static func fault(of path: ByteString, depth: Int, foreign: Bool) -> String? {
    if path.isEmpty { return "the name is empty" }
    if path.isAbsolute { return "the name is absolute" }
    if path.hasNUL { return "the name holds a NUL byte" }
    if path.count > 4095 { return "the name has more than 4,095 bytes" }
    let parts = path.bytes.split(separator: slash, omittingEmptySubsequences: false)
    if parts.count > depth { return "it lies more than \(depth) directories deep" }
    for part in parts {
      if part.isEmpty { return "the name has an empty component" }
      if part.elementsEqual(".".utf8) { return "the name has '.' as a component" }
      if part.elementsEqual("..".utf8) { return "the name has '..' as a component" }
      if part.count > 255 { return "a component of the name has more than 255 bytes" }
      if foreign, part.contains(UInt8(ascii: "\\")) {
        return "the name has a backslash, which some programs take for a slash"
      }
    }
    return nil
  }

  static let slash = UInt8(ascii: "/")

  /// The path without its last component; empty for a single one.
  static func parent(of path: ByteString) -> ByteString {
    guard let last = path.bytes.lastIndex(of: slash) else { return "" }
    return ByteString(path.bytes[..<last])
  }

  /// Whether a name is that of an app's bundle: `Example.app`.
  static func isBundle(_ name: ByteString) -> Bool {
    name.count > 4 && name.bytes.suffix(4).elementsEqual(".app".utf8)
  }

  /// The name as a volume that folds case and forms of characters compares it.
  static func folded(_ path: ByteString) -> String? { path.utf8?.lowercased() }
}
