internal import Codecs
internal import Synchronization
internal import SystemIO

/// What a run has read of one large file so far, kept for the next run in case that this one does
/// not come to the file's end.
///
/// One thread notes, any thread hands over: each checkpoint takes in what was noted before it.
public final class ChunkCheckpoint: Sendable {
  private let run: ResumeFile
  private let key: DirectoryKey
  private let head: [UInt8]
  private let pieces = Mutex<[UInt8]>([])

  /// So many bytes of pieces are handed over at once, so that a file of any size takes little memory.
  private static let batch = (512 << 10) / ReadPiece.size * ReadPiece.size

  /// Begins the notes of a file that is as `status` says.
  init(_ run: ResumeFile, _ key: DirectoryKey, _ status: FileStatus) {
    self.run = run
    self.key = key
    head = ReadFile(status).bytes
  }

  /// Notes a piece that was read and is being stored.
  public func add(_ piece: ReadPiece) {
    pieces.withLock { pieces in
      piece.append(to: &pieces)
      if pieces.count >= Self.batch { handOver(&pieces) }
    }
  }

  /// Hands over what was noted.
  func flush() { pieces.withLock { handOver(&$0) } }

  private func handOver(_ pieces: inout [UInt8]) {
    guard !pieces.isEmpty else { return }
    run.append(head + pieces, in: key)
    pieces.removeAll(keepingCapacity: true)
  }
}
