internal import Codecs
internal import Synchronization
internal import SystemIO

/// The pieces of one large file that a run has read so far, recorded for the next run in case this
/// one does not reach the end of the file.
///
/// One thread adds pieces, any thread writes them: each checkpoint includes the pieces added
/// before.
package final class ChunkCheckpoint: Sendable {
  private let run: ResumeFile
  private let key: DirectoryKey
  private let head: [UInt8]
  private let pieces = Mutex<[UInt8]>([])

  /// The number of bytes of pieces that are written at once, so that a file of any size takes
  /// little memory.
  private static let batch = (512 << 10) / ReadPiece.size * ReadPiece.size

  /// Begins the record of a file with the given status.
  init(in run: ResumeFile, of key: DirectoryKey, status: FileStatus) {
    self.run = run
    self.key = key
    head = ReadFile(status).bytes
  }

  /// Adds a piece that was read and is being stored.
  package func add(_ piece: ReadPiece) {
    pieces.withLock { pieces in
      piece.append(to: &pieces)
      if pieces.count >= Self.batch { handOver(&pieces) }
    }
  }

  /// Writes the added pieces.
  func flush() { pieces.withLock { handOver(&$0) } }

  private func handOver(_ pieces: inout [UInt8]) {
    guard !pieces.isEmpty else { return }
    run.append(head + pieces, in: key)
    pieces.removeAll(keepingCapacity: true)
  }
}
