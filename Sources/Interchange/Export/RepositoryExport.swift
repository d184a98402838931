package import ArchiveStore
internal import Codecs
package import SystemIO

/// Writes each snapshot of a repository as a tar archive of its own into a directory.
///
/// An archive is written under a temporary name, synced and renamed, so a file with its final name is
/// complete: a second export skips it and continues where the first one was interrupted. The name
/// begins with the snapshot's time in UTC and its id, and the file has the snapshot's time.
package final class RepositoryExport {
  private let directory: Directory
  private let compression: ArchiveCompression

  /// Prepares an export into a directory, which is created if it does not exist.
  package init(
    into path: ByteString, compression: ArchiveCompression
  ) throws(InterchangeError) {
    self.compression = compression
    do throws(SystemError) {
      directory = try Directory.make(path: path, permissions: 0o700)
      // Of a process that was killed.
      for name in try directory.names() where AtomicFile.isTemporary(name) {
        try directory.remove(name)
      }
    } catch { throw InterchangeError(error, "export to", subject: path) }
  }

  /// The outcome for one snapshot.
  package enum Outcome: Hashable, Sendable {
    case written(bytes: UInt64)
    /// The archive exists.
    case present
  }

  /// Returns the name of a snapshot's archive: `2026-11-01T10.30.00Z-1a2b3c4d5e6f.tar.zst`.
  package func name(of id: SnapshotID, at time: Timestamp) -> ByteString {
    let second = time.rfc3339.prefix { $0 != "." && $0 != "Z" }
    let date = String(second.map { $0 == ":" ? "." : $0 })
    let ending =
      switch compression {
      case .none: "tar"
      case .gzip: "tar.gz"
      case .zstd: "tar.zst"
      }
    return ByteString("\(date)Z-\(id.hex.prefix(12)).\(ending)")
  }

  /// Whether the archive of a snapshot exists.
  package func hasArchive(of id: SnapshotID, at time: Timestamp) throws(InterchangeError) -> Bool {
    let name = name(of: id, at: time)
    do throws(SystemError) {
      return try directory.statusIfPresent(name) != nil
    } catch { throw InterchangeError(error, "export to", subject: directory.path) }
  }

  /// Writes the archive of a snapshot, unless it exists.
  ///
  /// - Parameter export: writes the snapshot's content to the sink.
  package func write(
    _ stored: StoredSnapshot, _ export: (inout TarSink) throws -> Void
  ) throws -> Outcome {
    let time = stored.snapshot.time
    if try hasArchive(of: stored.id, at: time) { return .present }
    let name = name(of: stored.id, at: time)
    let output = try OutputFile(in: directory, name: name)
    var sink = try TarSink(
      to: output.write, compression: compression, names: OwnerNames(of: stored.snapshot))
    try export(&sink)
    try sink.finish()
    try output.commit(at: time)
    return .written(bytes: output.size)
  }
}
