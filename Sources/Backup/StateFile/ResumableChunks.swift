internal import Codecs
internal import SystemIO

/// The pieces that interrupted runs read of a large file that is unchanged since then, in the order
/// of the file. Some pieces may be missing.
package struct ResumableChunks {
  private let run: ResumeFile
  private let file: ReadFile
  /// The batches that are not read yet, the last of the file first.
  private var batches: [RecordPointer]
  /// The pieces of the current batch.
  private var pieces: ArraySlice<ReadPiece> = []

  init(in run: ResumeFile, of key: DirectoryKey, status: FileStatus) {
    self.run = run
    file = ReadFile(status)
    batches = []
    let parts = run.batches(of: key).compactMap { place in
      read(place).first.map { (offset: $0.offset, place: place) }
    }
    batches = parts.sorted { $0.offset > $1.offset }.map(\.place)
  }

  /// Returns the pieces of a batch, or none if the file has changed since.
  private func read(_ place: RecordPointer) -> ArraySlice<ReadPiece> {
    guard let part = run.filePart(at: place), part.file == file else { return [] }
    return part.pieces[...]
  }

  /// Returns the first piece that begins at an offset or after it. Offsets must increase between
  /// calls.
  package mutating func first(from offset: UInt64) -> ReadPiece? {
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

  /// Returns the number of bytes of the pieces for which `isStored` returns true.
  func bytes(where isStored: (Digest) -> Bool) -> UInt64 {
    var (rest, bytes, end) = (self, UInt64(0), UInt64(0))
    while let piece = rest.first(from: end) {
      if isStored(piece.digest) { bytes += UInt64(piece.length) }
      end = piece.end
    }
    return bytes
  }
}
