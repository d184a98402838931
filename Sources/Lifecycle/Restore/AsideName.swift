internal import ArchiveStore
internal import SystemIO

/// The names of what gives way to something restored and has to stay beside it.
enum AsideName {
  /// What is put behind a name: `.before-restore-2026-11-01T10.30.05`, by universal time.
  static func suffix(at time: Timestamp) -> ByteString {
    let text = time.rfc3339.prefix { $0 != "." && $0 != "Z" }
    return ByteString(".before-restore-" + text.map { $0 == ":" ? "." : String($0) }.joined())
  }
}
