internal import ArchiveStore
internal import Codecs
internal import Synchronization
internal import SystemIO

/// The pieces of one large file that a run has read so far, recorded for the next run in case this
/// one does not reach the end of the file.
///
/// One thread adds pieces, any thread writes them: each checkpoint includes the pieces added
/// before.
final class ChunkCheckpoint: Sendable {
  private let run: ResumeFile
  private let key: DirectoryKey
  private let head: [UInt8]
  private let pieces = Mutex<[UInt8]>([])

  /// The number of bytes of pieces that are written at once, so that a file of any size takes
  /// little memory.
  private static let batch = (512 << 10) / Piece.size * Piece.size

  /// Begins the record of a file with the given status.
  init(in run: ResumeFile, of key: DirectoryKey, status: FileStatus) {
    self.run = run
    self.key = key
    head = FileVersion(status).bytes
  }

  /// Adds a piece that was read and is being stored.
  func add(_ piece: Piece) {
    pieces.withLock { pieces in
      piece.append(to: &pieces)
      if pieces.count >= Self.batch { flush(&pieces) }
    }
  }

  /// Writes the added pieces.
  func flush() { pieces.withLock { flush(&$0) } }

  private func flush(_ pieces: inout [UInt8]) {
    guard !pieces.isEmpty else { return }
    run.append(head + pieces, in: key)
    pieces.removeAll(keepingCapacity: true)
  }
}

/// The pieces that interrupted runs read of a large file that is unchanged since then, in the order
/// of the file. Some pieces may be missing.
struct ResumableChunks {
  private let run: ResumeFile
  private let file: ChunkCheckpoint.FileVersion
  /// The batches that are not read yet, the last of the file first.
  private var batches: [RecordPointer]
  /// The pieces of the current batch.
  private var pieces: ArraySlice<ChunkCheckpoint.Piece> = []

  init(in run: ResumeFile, of key: DirectoryKey, status: FileStatus) {
    self.run = run
    file = ChunkCheckpoint.FileVersion(status)
    batches = []
    let parts = run.batches(of: key).compactMap { pointer in
      read(pointer).first.map { (offset: $0.offset, pointer: pointer) }
    }
    batches = parts.sorted { $0.offset > $1.offset }.map(\.pointer)
  }

  /// Returns the pieces of a batch, or none if the file has changed since.
  private func read(_ pointer: RecordPointer) -> ArraySlice<ChunkCheckpoint.Piece> {
    guard let part = run.filePart(at: pointer), part.file == file else { return [] }
    return part.pieces[...]
  }

  /// Returns the first piece that begins at an offset or after it. Offsets must increase between
  /// calls.
  mutating func first(from offset: UInt64) -> ChunkCheckpoint.Piece? {
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

extension ChunkCheckpoint {
  /// A piece of a large file that a run read (docs/state-file.md, "Interrupted runs").
  struct Piece: Hashable, Sendable {
    /// The offset in the file.
    let offset: UInt64
    /// The length in bytes, at least 1.
    let length: Int
    /// The BLAKE2b-256 hash of the bytes.
    let digest: Digest

    init(offset: UInt64, length: Int, digest: Digest) {
      (self.offset, self.length, self.digest) = (offset, length, digest)
    }

    /// The offset of the end in the file.
    var end: UInt64 { offset + UInt64(length) }

    /// The size of a piece in a batch, in bytes.
    static let size = 12 + Digest.byteCount

    func append(to bytes: inout [UInt8]) {
      LittleEndian.append(offset, to: &bytes)
      LittleEndian.append(UInt32(length), to: &bytes)
      bytes += digest.bytes
    }

    /// Returns the pieces of a batch, or nil unless they are in order and within a file of `size`
    /// bytes.
    static func read(_ bytes: Span<UInt8>, ofSize size: UInt64) -> [Piece]? {
      guard bytes.count % Self.size == 0 else { return nil }
      var pieces: [Piece] = []
      pieces.reserveCapacity(bytes.count / Self.size)
      var end: UInt64 = 0
      for start in stride(from: 0, to: bytes.count, by: Self.size) {
        let offset = LittleEndian.integer(bytes, at: start, as: UInt64.self)
        let length = LittleEndian.integer(bytes, at: start + 8, as: UInt32.self)
        // A piece is a blob, so it cannot be longer than one.
        guard 1...UInt32(FormatLimit.blob) ~= length, offset >= end, offset <= size,
          UInt64(length) <= size - offset,
          let digest = Digest(bytes.extracting((start + 12)..<(start + Self.size)))
        else { return nil }
        pieces.append(Piece(offset: offset, length: Int(length), digest: digest))
        end = offset + UInt64(length)
      }
      return pieces
    }
  }

  /// The version of a file whose pieces were read, stored before them in a batch: its inode, its
  /// size, and its modification and change times.
  struct FileVersion: Equatable {
    static let size = 40
    let bytes: [UInt8]

    init(_ status: FileStatus) {
      var bytes: [UInt8] = []
      Self.append(status, to: &bytes)
      self.bytes = bytes
    }

    /// Appends the fields that identify a version of a file, as in an entry of the state.
    static func append(_ status: FileStatus, to bytes: inout [UInt8]) {
      LittleEndian.append(status.identity.inode, to: &bytes)
      LittleEndian.append(status.size, to: &bytes)
      LittleEndian.append(status.modified.seconds, to: &bytes)
      LittleEndian.append(status.changed.seconds, to: &bytes)
      LittleEndian.append(status.modified.nanoseconds, to: &bytes)
      LittleEndian.append(status.changed.nanoseconds, to: &bytes)
    }

    /// Reads the bytes that follow the key of a batch.
    init(_ batch: Span<UInt8>) {
      var bytes: [UInt8] = []
      bytes.append(batch)
      self.bytes = bytes
    }

    /// The size of the file in bytes.
    var fileSize: UInt64 { LittleEndian.integer(bytes.span, at: 8) }
  }
}
