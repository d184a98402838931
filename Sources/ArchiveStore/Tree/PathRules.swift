public import SystemIO

/// The rules for names and paths in a snapshot, for writers and readers.
public enum PathRules {
  /// Returns the reason a name is invalid, or nil if it is valid.
  public static func fault(inName name: ByteString) -> String? {
    name.withSpan { fault(inName: $0) }
  }

  /// Returns the reason a path in a snapshot is invalid, or nil if it is valid.
  public static func fault(inPath path: ByteString) -> String? {
    if path.count > FormatLimit.path { return "a path of \(path.count) bytes" }
    if path.isAbsolute { return "an absolute path" }
    return path.withSpan { fault(inParts: $0) }
  }

  // These functions run for each file of a backup and allocate nothing for valid paths.

  private static func fault(inName name: Span<UInt8>) -> String? {
    if name.isEmpty { return "an empty name" }
    if name.contains(0) { return "a name with a NUL" }
    if name.contains(slash) { return "a name with a slash" }
    if name.count > 255 { return "a name of \(name.count) bytes" }
    if name.count > 2 || name[0] != dot || name[name.count - 1] != dot { return nil }
    return "the name \(name.count == 1 ? "." : ".."), which refers to another directory"
  }

  private static func fault(inParts path: Span<UInt8>) -> String? {
    var (start, count) = (0, 0)
    var first: String?
    for index in 0...path.count where index == path.count || path[index] == slash {
      count += 1
      first = first ?? fault(inName: path.extracting(start..<index))
      start = index + 1
    }
    if count > FormatLimit.depth { return "a path of \(count) components" }
    return first.map { "a path with \($0)" }
  }

  private static let slash = UInt8(ascii: "/")
  private static let dot = UInt8(ascii: ".")
}

extension ByteString {
  /// The app, group or directory that a logical path begins with: `apps/org.example.notebook`,
  /// `folders/notes`.
  public var subject: ByteString { ByteString(joining: components.prefix(2)) }
}
