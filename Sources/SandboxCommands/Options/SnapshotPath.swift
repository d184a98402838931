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
    path = Self.trimmed(parts.count > 1 ? ByteString(String(parts[1])) : "")
  }

  private static func trimmed(_ path: ByteString) -> ByteString {
    ByteString(path.components.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }
}
