internal import ArchiveStore
internal import Codecs
internal import SystemIO

extension BackupWorker {
  /// Stores a file that does not fit in memory as a whole, with its holes.
  borrowing func readLarge(
    _ file: borrowing Descriptor, at path: ByteString, of directory: DirectoryContext,
    status: FileStatus, mode: ReadMode
  ) throws -> Content {
    let start = try file.read(count: DatabaseHead.bytes.count, at: 0)
    try mode.check(start.span)
    let isDatabase = DatabaseHead.begins(start.span)
    let large = LargeFile(
      path: path, key: directory.facts.key.file(path.lastComponent ?? path), status: status,
      hints: FileHints(status, isDatabase: isDatabase), isOfDatabase: isDatabase,
      isStable: ChangeRules.isStable(
        status, readAt: run.now, in: run.clock(of: directory.tree.number)))
    let extents =
      status.allocated < status.size
      ? try file.extents(size: status.size)
      : [Extent(offset: 0, length: status.size, isHole: false)]
    return try store(large) { content in
      for extent in extents {
        if extent.isHole {
          try content.appendHole(extent.length)
        } else if try !copy(extent, of: file, to: &content) {
          return
        }
      }
    }
  }

  /// Copies an extent; returns false if the file has shrunk and ended before its end.
  private borrowing func copy(
    _ extent: Extent, of file: borrowing Descriptor, to content: inout ResumedContent
  ) throws -> Bool {
    let end = extent.offset + extent.length
    for start in stride(from: extent.offset, to: end, by: ReadBuffer.size) {
      let range = start..<min(end, start + UInt64(ReadBuffer.size))
      let count = try content.append(range) { part, window in
        try file.read(count: part.count, at: part.lowerBound, appendingTo: &window)
      }
      if count < range.count { return false }
      if range.upperBound == end { break }
      try run.checkNotStopped()
      try run.checkpointIfDue()
    }
    return true
  }

  /// Stores a file piece by piece; `body` passes its bytes and holes in order. Pieces that an
  /// interrupted run read are not read again, and pieces that this run reads are recorded.
  borrowing func store(
    _ file: LargeFile, _ body: (inout ResumedContent) throws -> Void
  ) throws -> Content {
    guard file.hasCheckpoint else { return try store(file, known: nil, body: body) { _ in } }
    let known =
      file.isOfDatabase && !run.source.resumesThisBoot
      ? nil : run.source.pieces(of: file.key, file.status)
    return try run.source.recordingPieces(of: file.key, file.status) { checkpoint in
      try store(file, known: known, body: body) { checkpoint.add($0) }
    }
  }

  private borrowing func store(
    _ file: LargeFile, known: ResumableChunks?, body: (inout ResumedContent) throws -> Void,
    record: @escaping (ChunkCheckpoint.Piece) -> Void
  ) throws -> Content {
    try writer.storeFile(logicalPath: file.path, hints: file.hints) { content in
      content.onPiece = { record(ChunkCheckpoint.Piece(offset: $0, length: $1, digest: $2)) }
      var resumed = ResumedContent(content, pieces: known, counters: run.request.counters)
      try body(&resumed)
    }
  }

  /// A large file that is being read, with the identity of its checkpoint.
  struct LargeFile {
    let path: ByteString
    let key: DirectoryKey
    let status: FileStatus
    let hints: FileHints
    /// Whether it is a database, its log or its journal: then pieces that were read in an earlier
    /// boot are read again.
    let isOfDatabase: Bool
    /// Whether the file was unchanged long enough that the next run can rely on the pieces read.
    let isStable: Bool

    /// The minimum size in bytes. After an interruption, smaller files are read again from the
    /// beginning, which takes seconds.
    static let minimumSize: UInt64 = 16 << 20

    /// Whether the pieces of the file are recorded in a checkpoint.
    var hasCheckpoint: Bool { isStable && status.size >= Self.minimumSize }
  }

  /// The content of a large file during a backup. Pieces that an interrupted run stored are used in
  /// place of the bytes that it read.
  ///
  /// Ranges and holes are passed in the order of the file. A piece that is not stored is read, like
  /// all data without a record, so a record only saves or costs time.
  struct ResumedContent {
    private let content: FileWriter
    private var pieces: ResumableChunks?
    private let counters: ProgressCounters
    /// The end of the last range or hole passed.
    private var offered: UInt64 = 0
    /// The end of the content so far; greater than `offered` if a stored piece ends there.
    private var reached: UInt64 = 0

    init(_ content: FileWriter, pieces: ResumableChunks?, counters: ProgressCounters) {
      (self.content, self.pieces, self.counters) = (content, pieces, counters)
    }

    /// Appends a range of the file; `read` appends the bytes of a part of it. Returns the number of
    /// bytes in the range, which is less than its length only if the file ends in it.
    mutating func append(
      _ range: Range<UInt64>, _ read: (Range<UInt64>, inout [UInt8]) throws -> Void
    ) throws -> Int {
      offered = range.upperBound
      while reached < offered {
        let end = min(offered, try appendStored())
        if end <= reached { continue }
        let part = reached..<end
        let count = try content.append(reading: { try read(part, &$0) })
        counters.didHandle(bytes: UInt64(count))
        reached += UInt64(count)
        if count < part.count { return Int(reached - range.lowerBound) }
      }
      return range.count
    }

    /// Appends a hole.
    mutating func appendHole(_ length: UInt64) throws {
      offered += length
      guard offered > reached else { return }
      try content.appendHole(length: offered - reached)
      counters.didHandle(bytes: offered - reached)
      reached = offered
    }

    /// Appends the piece that begins here if it is stored; returns the offset up to which the file
    /// must be read.
    private mutating func appendStored() throws -> UInt64 {
      guard let piece = pieces?.first(from: reached) else { return .max }
      if piece.offset > reached { return piece.offset }
      if try content.append(stored: piece.digest, length: piece.length) {
        counters.didResume(bytes: UInt64(piece.length))
        reached = piece.end
        return reached
      }
      return pieces?.first(from: reached + 1)?.offset ?? .max
    }
  }
}
