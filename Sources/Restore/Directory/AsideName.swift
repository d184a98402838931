internal import ArchiveStore
internal import SystemIO

/// The names under which a restore keeps replaced entries beside the restored ones.
enum AsideName {
  /// Returns the suffix for such a name: `.before-restore-2026-11-01T10.30.05`, in UTC.
  static func suffix(at time: Timestamp) -> ByteString {
    let text = time.rfc3339.prefix { $0 != "." && $0 != "Z" }
    return ByteString(".before-restore-" + text.map { $0 == ":" ? "." : String($0) }.joined())
  }
}
