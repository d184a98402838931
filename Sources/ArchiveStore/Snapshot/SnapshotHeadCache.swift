internal import Codecs
public import SystemIO

/// This host's file of the heads of a repository's snapshots, which spares each command from
/// reading all snapshots (docs/decisions/0020-snapshot-heads.md).
///
/// The cache never determines which snapshots exist: the listing of the repository does. A head is
/// used only while the object's size and modification time are unchanged. If the file is damaged,
/// owned by another user or of another version, the heads are read again, which costs only time.
/// Safe to use from any thread.
public struct SnapshotHeadCache: Sendable {
  /// A head, and the status of the object it was read from.
  struct Record: Hashable {
    let head: SnapshotHead
    let status: ObjectStatus
    /// The offset of the record in the file that it was read from, or nil if it is not in the file.
    var offset: Int?
  }

  private let file: CacheFile
  private static let limit = 1 << 30

  /// Uses a directory for the heads of one repository, and creates it with its parents if it is
  /// missing. A directory that other users can write to is not used.
  public init(directory: ByteString) {
    file = CacheFile(directory: directory, name: "snapshot-heads")
  }

  /// Reads the heads. Returns none if there is no intact file.
  func load() -> Content {
    guard let bytes = file.load(limit: Self.limit) else { return Content() }
    return (try? Content(decoding: bytes)) ?? Content()
  }

  /// Replaces the file. If that fails, the heads are read again next time.
  func save(_ content: Content) { file.save(content.encode()) }
}
