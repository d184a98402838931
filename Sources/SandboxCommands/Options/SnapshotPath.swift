internal import SystemIO

/// `SNAP[:PATH]` as a command line gives it.
struct SnapshotPath {
  let snapshot: String
  /// The logical path, without a slash at either end; empty for the whole snapshot.
  let path: ByteString

  init(_ text: String) throws {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, !first.isEmpty else {
      throw UsageError(
        "'\(ByteString(text))' names no snapshot",
        hint: "write it as 'latest:apps/com.example.app/data', or 'latest'")
    }
    snapshot = String(first)
    guard Self.isName(snapshot) else {
      throw UsageError(
        "'\(ByteString(snapshot))' names no snapshot",
        hint: "give 'latest', 'latest~2', or at least four characters of an id")
    }
    path = Self.trimmed(parts.count > 1 ? ByteString(String(parts[1])) : "")
  }

  /// Whether a text can name a snapshot: by its place, or by hexadecimal digits of its id.
  private static func isName(_ text: String) -> Bool {
    if text == "latest" { return true }
    if text.hasPrefix("latest~") { return Int(text.dropFirst(7)).map { $0 >= 0 } ?? false }
    return text.utf8.count >= 4 && text.allSatisfy { $0.isASCII && $0.isHexDigit }
  }

  private static func trimmed(_ path: ByteString) -> ByteString {
    ByteString(path.components.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }
}
