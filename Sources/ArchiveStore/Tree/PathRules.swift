public import SystemIO

/// What a name and a path in a snapshot may be, for who writes them and for who reads them.
public enum PathRules {
  /// Says why a name cannot stand in a folder; nothing when it can.
  public static func fault(inName name: ByteString) -> String? {
    if name.isEmpty { return "an empty name" }
    if name == "." || name == ".." { return "the name \(name), which means another folder" }
    if name.hasNUL { return "a name with a NUL" }
    if name.bytes.contains(UInt8(ascii: "/")) { return "a name with a slash" }
    if name.count > 255 { return "a name of \(name.count) bytes" }
    return nil
  }

  /// Says why a path cannot be one within a snapshot; nothing when it can.
  public static func fault(inPath path: ByteString) -> String? {
    if path.count > FormatLimit.path { return "a path of \(path.count) bytes" }
    if path.isAbsolute { return "an absolute path" }
    let parts = path.bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    if parts.count > FormatLimit.depth { return "a path of \(parts.count) components" }
    for part in parts {
      if let fault = fault(inName: ByteString(part)) { return "a path with \(fault)" }
    }
    return nil
  }
}
