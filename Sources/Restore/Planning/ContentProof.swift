internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// Verifies that a file that looks unchanged has the stored content. A rollback needs this, because
/// it has to restore every byte (docs/update.md, "Rollback").
///
/// A file is not read if its change time, and that of each directory above it in the container, is
/// before the start of the snapshot: a program can set a file's modification time but not its
/// change time, and a rename updates the change time. All other files are read and checked against
/// the hashes of the stored pieces; this reads only piece lists from the repository.
struct ContentProof {
  private let reader: RepositoryReader
  private let begin: Timestamp
  /// The number of seconds by which a change must precede the snapshot; nil if the volume's
  /// timestamps are unreliable.
  private let margin: Double?
  /// Whether each directory down to the current one is unchanged, by depth. The container's own
  /// directory is not examined, because an update renames it.
  private var areStill: [Bool] = [true]
  private var buffer: [UInt8] = []

  /// Creates a proof for the files below a directory.
  ///
  /// - Parameters:
  ///   - begin: the start of the snapshot.
  ///   - now: the start of the operation; a snapshot with a later start proves nothing.
  init(
    _ reader: RepositoryReader, since begin: Timestamp, now: Timestamp, in root: borrowing Directory
  ) {
    self.reader = reader
    self.begin = begin
    let times = (try? root.volumeTimes()) ?? .loose
    margin = times == .exact && begin <= now ? Host.writebackDelay : nil
  }

  /// Enters a child of the directory at a depth.
  mutating func enter(_ status: FileStatus, at depth: Int) {
    areStill.removeLast(max(0, areStill.count - depth - 1))
    areStill.append((areStill.last ?? false) && isStill(status))
  }

  /// Whether a file in the directory at a depth has the stored content.
  ///
  /// - Throws: `SystemError` or `StoreError` if the file or a piece list cannot be read.
  mutating func hasBytes(
    of entry: TreeEntry, _ status: FileStatus, at depth: Int, in directory: borrowing Directory,
    _ name: ByteString
  ) throws -> Bool {
    guard case .file(let content) = entry.node else { return true }
    if areStill.indices.contains(depth), areStill[depth], isStill(status) { return true }
    let file = try directory.fileUntouched(name)
    var isSame = true
    try reader.forEachPiece(of: content) { offset, piece in
      if isSame { isSame = try holds(piece, at: offset, file) }
    }
    return isSame
  }

  private func isStill(_ status: FileStatus) -> Bool {
    margin.map { begin.since(status.changed) > $0 } ?? false
  }

  private mutating func holds(
    _ piece: Piece, at offset: UInt64, _ file: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: 1 << 18) }
    var done: UInt64 = 0
    var hash = Blake2b()
    while done < piece.length {
      let wanted = Int(min(UInt64(buffer.count), piece.length - done))
      guard try file.read(into: &buffer, from: 0, to: wanted, at: offset + done) == wanted else {
        return false
      }
      switch piece {
      case .blob: hash.update(wanted == buffer.count ? buffer : Array(buffer[..<wanted]))
      case .hole: if buffer[..<wanted].contains(where: { $0 != 0 }) { return false }
      }
      done += UInt64(wanted)
    }
    guard case .blob(let digest, _) = piece else { return true }
    return hash.finish() == digest
  }
}
