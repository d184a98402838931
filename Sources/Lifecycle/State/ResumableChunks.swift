internal import Codecs
internal import SystemIO

/// What interrupted runs read of a large file that is still as it was then: its pieces in the order of
/// the file, some of which may be lacking.
public struct ResumableChunks {
  private let run: ResumeFile
  private let file: ReadFile
  /// The batches that are not read yet, the last of the file first.
  private var batches: [RecordPointer]
  /// The pieces of the batch in hand.
  private var pieces: ArraySlice<ReadPiece> = []

  init(_ run: ResumeFile, _ key: DirectoryKey, _ status: FileStatus) {
    self.run = run
    file = ReadFile(status)
    batches = []
    let parts = run.batches(of: key).compactMap { place in
      read(place).first.map { (offset: $0.offset, place: place) }
    }
    batches = parts.sorted { $0.offset > $1.offset }.map(\.place)
  }

  /// The pieces of a batch, none where the file was another then.
  private func read(_ place: RecordPointer) -> ArraySlice<ReadPiece> {
    guard let part = run.filePart(at: place), part.file == file else { return [] }
    return part.pieces[...]
  }

  /// The first piece that begins at a place of the file or behind it. Asked for ever greater places.
  public mutating func first(from offset: UInt64) -> ReadPiece? {
    while true {
      if let index = pieces.firstIndex(where: { $0.offset >= offset }) {
        pieces = pieces[index...]
        return pieces.first
      }
      guard let next = batches.popLast() else {
        pieces = []
        return nil
      }
      pieces = read(next)
    }
  }

  /// Bytes of the pieces that `isStored`.
  func bytes(where isStored: (Digest) -> Bool) -> UInt64 {
    var (rest, bytes, end) = (self, UInt64(0), UInt64(0))
    while let piece = rest.first(from: end) {
      if isStored(piece.digest) { bytes += UInt64(piece.length) }
      end = piece.end
    }
    return bytes
  }
}
