internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// A large file that is being read, with the identity of its checkpoint.
struct LargeFile {
  let path: ByteString
  let key: DirectoryKey
  let status: FileStatus
  let hints: FileHints
  /// Whether the file was unchanged long enough that the next run can rely on the pieces read.
  let isStable: Bool

  /// The minimum size in bytes. After an interruption, smaller files are read again from the
  /// beginning, which takes seconds.
  static let least: UInt64 = 16 << 20

  /// Whether the pieces of the file are recorded in a checkpoint.
  var isNoted: Bool { isStable && status.size >= Self.least }
}

extension BackupWorker {
  /// Stores a file that does not fit in memory as a whole, with its holes.
  borrowing func readLarge(
    _ file: borrowing Descriptor, at path: ByteString, of directory: DirectoryContext,
    status: FileStatus, mode: ReadMode
  ) throws -> Content {
    let start = try file.read(count: DatabaseHead.bytes.count, at: 0)
    try mode.check(start.span)
    let hints = FileHints(status, isDatabase: DatabaseHead.begins(start.span))
    let large = LargeFile(
      path: path, key: directory.facts.key.file(path.lastComponent ?? path), status: status,
      hints: hints,
      isStable: ChangeRules.isStable(
        status, readAt: run.now, in: run.clock(of: directory.tree.number)))
    let extents =
      status.allocated < status.size
      ? try file.extents(size: status.size)
      : [Extent(offset: 0, length: status.size, isHole: false)]
    return try store(large) { content in
      for extent in extents {
        if extent.isHole {
          try content.takeHole(extent.length)
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
      let count = try content.take(range) { part, window in
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
    guard file.isNoted else { return try store(file, known: nil, body: body) { _ in } }
    let known = run.source.pieces(of: file.key, file.status)
    return try run.source.recordingPieces(of: file.key, file.status) { notes in
      try store(file, known: known, body: body) { notes.add($0) }
    }
  }

  private borrowing func store(
    _ file: LargeFile, known: ResumableChunks?, body: (inout ResumedContent) throws -> Void,
    note: @escaping (ReadPiece) -> Void
  ) throws -> Content {
    try writer.storeFile(logicalPath: file.path, hints: file.hints) { content in
      content.onPiece = { note(ReadPiece(offset: $0, length: $1, digest: $2)) }
      var resumed = ResumedContent(content, pieces: known, counters: run.request.counters)
      try body(&resumed)
    }
  }
}
