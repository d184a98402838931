package import ArchiveStore
internal import Codecs
package import SystemIO

/// Writes each snapshot of a repository as a separate tar archive into a directory.
///
/// An archive is written under a temporary name, synced and renamed, so a file with its final name
/// is complete: a second export skips it and continues where the first one was interrupted. The
/// name begins with the snapshot's time in UTC and its id, and the file has the snapshot's time. An
/// archive without the entries that cannot be read has another name, so it is not taken for a whole
/// one, and the next export replaces it.
package final class RepositoryExport {
  private let directory: Directory
  private let compression: ArchiveCompression
  /// Keeps other exports out of the directory; nil if its file system has no locks.
  private let lock: FileLock?

  /// Prepares an export into a directory, which is created if it does not exist.
  ///
  /// - Throws: `system` also if another export into the directory is running.
  package init(
    into path: ByteString, compression: ArchiveCompression
  ) throws(InterchangeError) {
    self.compression = compression
    let opened: Directory
    do throws(SystemError) {
      opened = try Directory.make(path: path, permissions: 0o700)
    } catch { throw InterchangeError(error, "export to", subject: path) }
    let held = try RepositoryExport.lock(opened, at: path)
    // Without the lock they may be those of a running export.
    if held != nil { try RepositoryExport.removeParts(in: opened, at: path) }
    directory = opened
    lock = held
  }

  private static func lock(
    _ directory: borrowing Directory, at path: ByteString
  ) throws(InterchangeError) -> FileLock? {
    do throws(SystemError) {
      return try FileLock(directory)
    } catch {
      guard error.isBusy else { return nil }
      throw InterchangeError(
        .system, "export to", subject: path, reason: "another export to it is running",
        hint: "wait until it has ended, or export to another directory", cause: error)
    }
  }

  /// Removes the temporary files of exports that were killed. An export of a single snapshot into
  /// the directory locks its own file, which stays.
  private static func removeParts(
    in directory: borrowing Directory, at path: ByteString
  ) throws(InterchangeError) {
    do throws(SystemError) {
      for name in try directory.names() where AtomicFile.isTemporary(name) {
        try AtomicFile.removeIfAbandoned(name, in: directory)
      }
    } catch { throw InterchangeError(error, "export to", subject: path) }
  }

  /// The outcome for one snapshot.
  package enum Outcome: Hashable, Sendable {
    case written(bytes: UInt64)
    /// The archive exists.
    case present
  }

  /// Returns the name of a snapshot's archive: `2026-11-01T10.30.00Z-1a2b3c4d5e6f.tar.zst`, or
  /// `….incomplete.tar.zst` for one without the entries that cannot be read.
  package func name(
    of id: SnapshotID, at time: Timestamp, isComplete: Bool = true
  ) -> ByteString {
    let second = time.rfc3339.prefix { $0 != "." && $0 != "Z" }
    let date = String(second.map { $0 == ":" ? "." : $0 })
    let ending =
      switch compression {
      case .none: "tar"
      case .gzip: "tar.gz"
      case .zstd: "tar.zst"
      }
    let mark = isComplete ? "" : ".incomplete"
    return ByteString("\(date)Z-\(id.hex.prefix(12))\(mark).\(ending)")
  }

  /// Whether the complete archive of a snapshot exists.
  package func hasArchive(of id: SnapshotID, at time: Timestamp) throws(InterchangeError) -> Bool {
    let name = name(of: id, at: time)
    do throws(SystemError) {
      return try directory.statusIfPresent(name) != nil
    } catch { throw InterchangeError(error, "export to", subject: directory.path) }
  }

  /// Writes the archive of a snapshot, unless it exists.
  ///
  /// - Parameter export: writes the snapshot's content to the sink, and returns whether all of it
  ///   could be read.
  package func write(
    _ stored: StoredSnapshot, _ export: (inout TarSink) throws -> Bool
  ) throws -> Outcome {
    let time = stored.snapshot.time
    if try hasArchive(of: stored.id, at: time) { return .present }
    let name = name(of: stored.id, at: time)
    let output = try OutputFile(in: directory, name: name)
    var sink = try TarSink(
      to: output.write, compression: compression, names: OwnerNames(of: stored.snapshot))
    let isComplete = try export(&sink)
    try sink.finish()
    let part = self.name(of: stored.id, at: time, isComplete: false)
    if isComplete {
      try output.commit(at: time)
      // That of an earlier export.
      try? directory.remove(part)
    } else {
      try output.commit(replacing: part, at: time)
    }
    return .written(bytes: output.size)
  }
}
