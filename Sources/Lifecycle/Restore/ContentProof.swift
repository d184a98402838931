internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// Whether a file that looks like the stored one has its bytes, too: for a rollback, after which each
/// byte is what it was (docs/update.md, "Rollback").
///
/// A file need not be read whose time of change, and that of each directory above it in the container, lies
/// before the snapshot was begun: a program can set a file's time of modification, not that of change,
/// and what is renamed gets a new one. All others are read, and held against the hashes of the stored
/// pieces; of the repository only lists are read for that.
struct ContentProof {
  private let reader: RepositoryReader
  private let begin: Timestamp
  /// How much older than the snapshot a change must be, in seconds; nothing where times cannot be relied
  /// on.
  private let margin: Double?
  /// Whether the directories down to the one in hand stood still, by their depth. The container's own is
  /// not asked: an update renames it.
  private var areStill: [Bool] = [true]
  private var buffer: [UInt8] = []

  /// Prepares to compare.
  ///
  /// - Parameters:
  ///   - begin: when the snapshot was begun.
  ///   - now: when the operation was; a snapshot from the future proves nothing.
  init(
    _ reader: RepositoryReader, since begin: Timestamp, now: Timestamp, in root: borrowing Directory
  ) {
    self.reader = reader
    self.begin = begin
    let times = (try? root.volumeTimes()) ?? .loose
    margin = times == .exact && begin <= now ? Host.writebackDelay : nil
  }

  /// Goes into a directory of the one at a depth.
  mutating func enter(_ status: FileStatus, at depth: Int) {
    areStill.removeLast(max(0, areStill.count - depth - 1))
    areStill.append((areStill.last ?? false) && isStill(status))
  }

  /// Whether a file of the directory at a depth has the stored bytes.
  ///
  /// - Throws: `SystemError`, `StoreError` for what cannot be read.
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
