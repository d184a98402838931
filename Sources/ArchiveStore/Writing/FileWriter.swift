public import Codecs
public import SystemIO

/// Receives the bytes and holes of one file in order; passed to the body of
/// `ContentWriter.storeFile`.
///
/// For a file of any size it holds the current portion and at most 28 MiB, usually half of that:
/// bytes not yet cut, pieces not yet hashed, and pieces not yet in a member.
public final class FileWriter {
  private var writer: ContentWriter?
  private var path: ByteString = ""
  private var hints = FileHints()
  private(set) var cutter = ContentCutter(isDatabase: false, size: nil)
  private var content = Content.Builder()
  /// Pieces not yet hashed. Hashing them together takes a fraction of the time.
  private var cuts: [ContentCutter.Cut] = []
  private var pending = PendingMember()
  /// Whether the file can still become one member at its own path.
  private var isWhole = true
  /// Called for each hashed piece with its offset in the file, its length and its digest.
  public var onPiece: ((_ offset: UInt64, _ length: Int, _ digest: Digest) -> Void)?

  /// The maximum size in bytes of a file that is stored as one member.
  static let wholeLimit = FrameBuilder.memberLimit
  /// The maximum size in bytes of a part, which holds successive new blobs.
  static let partLimit = 4 << 20
  /// The number of pieces, or of their bytes, at which pieces are hashed. The number keeps all
  /// lanes of `Blake2b.hash(_:of:)` busy.
  private static let namedTogether = (pieces: 24, bytes: 8 << 20)
  /// The maximum number of bytes held in addition to the current portion.
  static let maximumPending = 28 << 20

  init() {}

  func begin(
    _ writer: ContentWriter, path: ByteString, hints: FileHints
  ) throws(StoreError) {
    try requireFree(path)
    self.writer = writer
    self.path = path
    self.hints = hints
    cutter.restart(isDatabase: hints.isDatabase, size: hints.size)
    content = Content.Builder()
    cuts.removeAll(keepingCapacity: true)
    isWhole = (hints.size ?? 0) <= UInt64(Self.wholeLimit)
  }

  func end() { (writer, onPiece) = (nil, nil) }

  /// Checks that no other file is open.
  func requireFree(_ path: ByteString) throws(StoreError) {
    guard writer == nil else {
      throw .invalid(path.description, "another file of the writer is not finished")
    }
  }

  /// Appends the next bytes.
  public func append(_ bytes: Span<UInt8>) throws(StoreError) {
    try beginPortion()
    cutter.append(bytes)
    try cutPieces()
  }

  /// Appends the bytes that `read` appends to its array, usually at most 1 MiB, and returns their
  /// number. An error of `read` is rethrown and ends the file.
  public func append(reading read: (inout [UInt8]) throws -> Void) throws -> Int {
    try beginPortion()
    let end = cutter.end
    try cutter.append(read)
    let count = Int(cutter.end - end)
    try cutPieces()
    return count
  }

  /// Appends a hole: zeros that are not read.
  public func appendHole(length: UInt64) throws(StoreError) {
    let writer = try open()
    if length == 0 { return }
    try skip(.hole(length: length), writer)
  }

  /// Appends the next piece by the digest that an earlier run computed for the same bytes at the
  /// same offset, without the bytes. Returns false, and appends nothing, if the blob is not stored.
  public func append(stored digest: Digest, length: Int) throws(StoreError) -> Bool {
    let writer = try open()
    guard writer.session.contains(BlobID(kind: .data, digest: digest)) else { return false }
    writer.session.known.countKnown(length: length)
    // The uncut bytes before it belong to a run that continues with this piece.
    cutter.continueRun()
    try skip(.blob(digest, length: UInt64(length)), writer)
    return true
  }

  /// Appends a piece without bytes, after all bytes received so far.
  private func skip(_ piece: Piece, _ writer: ContentWriter) throws(StoreError) {
    // A file may consist of stored pieces only, and then never begins a portion.
    try writer.session.lease.keepAlive()
    try cutPieces(isLast: true)
    cutter.skip(piece)
    isWhole = false
    try flush(writer)
    try add(piece, writer)
  }

  /// Returns the content after all bytes were appended.
  func finish() throws(StoreError) -> Content {
    let writer = try open()
    try cutPieces(isLast: true)
    try flush(writer)
    return try content.finish { level, pieces throws(StoreError) in
      try writer.session.storeList(level: level, pieces: pieces)
    }
  }

  /// Stores the pieces of an unfinished file on which other threads may already rely.
  func abandon() throws(StoreError) {
    isWhole = false
    try flush(try open())
  }

  private func open() throws(StoreError) -> ContentWriter {
    guard let writer else {
      throw .invalid("a file", "its writer was used after the end of the file")
    }
    try writer.session.status.check()
    return writer
  }

  private func add(_ piece: Piece, _ writer: ContentWriter) throws(StoreError) {
    try content.append(piece) { level, pieces throws(StoreError) in
      try writer.session.storeList(level: level, pieces: pieces)
    }
  }

  /// Moves the bytes still needed to the front of the window once they are its smaller part.
  private func beginPortion() throws(StoreError) {
    try open().session.lease.keepAlive()
    let done = pending.start ?? cuts.first?.range.lowerBound ?? cutter.start
    guard done > 0, done >= cutter.window.count - done else { return }
    cutter.drop(first: done)
    for index in cuts.indices { cuts[index].move(by: done) }
    pending.move(by: done)
  }

  /// Cuts the received bytes, and hashes the pieces once there are enough.
  private func cutPieces(isLast: Bool = false) throws(StoreError) {
    let writer = try open()
    while let cut = cutter.next(isLast: isLast) { cuts.append(cut) }
    guard let first = cuts.first else { return }
    let isEnough =
      cuts.count >= Self.namedTogether.pieces
      || cutter.start - first.range.lowerBound >= Self.namedTogether.bytes
    guard isLast || isEnough else { return }
    let digests = Blake2b.hash(cuts.map(\.range), of: cutter.window.span)
    for (cut, digest) in zip(cuts, digests) { try add(cut, digest: digest, to: writer) }
    cuts.removeAll(keepingCapacity: true)
  }

  /// Adds a piece to the content, and keeps its range if it is new.
  private func add(
    _ cut: ContentCutter.Cut, digest: Digest, to writer: ContentWriter
  ) throws(StoreError) {
    let length = cut.range.count
    let id = BlobID(kind: .data, digest: digest)
    try add(.blob(digest, length: UInt64(length)), writer)
    onPiece?(cut.offset, length, digest)
    let isRepeat = pending.contains(id)
    guard writer.claim(id, length: length, besides: pending) else {
      isWhole = false
      return try flush(writer)
    }
    if pending.length + length > (isWhole ? Self.wholeLimit : Self.partLimit) {
      isWhole = false
      try flush(writer)
    }
    if isRepeat && !isWhole { return try flush(writer) }
    pending.append(id, cut.range, at: cut.offset)
  }

  /// Stores the pending pieces, as the whole file or as parts.
  private func flush(_ writer: ContentWriter) throws(StoreError) {
    let window = cutter.window
    try writer.append(pending, of: window.span, isWhole: isWhole, path: path, hints: hints)
    pending.removeAll()
  }
}

/// Properties of a file that are known before it is read.
public struct FileHints: Hashable, Sendable {
  /// The size in bytes reported by the file system; a hint for cutting.
  public var size: UInt64?
  /// Whether the file is cut as a SQLite database even if it does not begin like one.
  public var isDatabase: Bool
  /// The metadata of the members in packs, for manual extraction.
  public var permissions: UInt16
  public var modified: Timestamp

  /// Creates hints.
  public init(
    size: UInt64? = nil, isDatabase: Bool = false, permissions: UInt16 = 0o644,
    modified: Timestamp = Timestamp(seconds: 0)
  ) {
    self.size = size
    self.isDatabase = isDatabase
    self.permissions = permissions
    self.modified = modified
  }
  /// Returns the member at a path in a pack.
  func member(_ path: ByteString, size: Int) -> TarMember {
    TarMember(
      path: Array(path.bytes), size: size, mode: permissions & 0o7777, modified: modified.seconds)
  }
}

extension FileWriter {
  /// The successive new blobs of a file that are in no member yet, as ranges of the caller's bytes.
  struct PendingMember {
    private struct Run {
      let id: BlobID
      var start: Int
      let length: Int
      /// The offset of the first byte in the file.
      let offset: UInt64
      /// Whether the same bytes are already stored or occur earlier in the file, which may still
      /// become one member.
      let isRepeat: Bool

      var end: Int { start + length }
    }

    private var runs: [Run] = []
    private var ids: Set<BlobID> = []

    func contains(_ id: BlobID) -> Bool { runs.count > 1 ? ids.contains(id) : runs.first?.id == id }

    /// Adds the blob at `range` in the bytes. With `isKnown` the blob is already stored, and
    /// separates parts.
    mutating func append(
      _ id: BlobID, _ range: Range<Int>, at offset: UInt64, isKnown: Bool = false
    ) {
      let isRepeat = isKnown || contains(id)
      if runs.count == 1 { ids.insert(runs[0].id) }
      if !runs.isEmpty { ids.insert(id) }
      runs.append(
        Run(
          id: id, start: range.lowerBound, length: range.count, offset: offset, isRepeat: isRepeat))
    }

    /// The position of the first blob in the caller's bytes, or nil if there is none.
    var start: Int? { runs.first?.start }

    /// The number of bytes from the start of the first blob to the end of the last.
    var length: Int { (runs.last?.end ?? 0) - (runs.first?.start ?? 0) }

    /// Adjusts the ranges after the caller's bytes moved to the front by `distance`.
    mutating func move(by distance: Int) {
      for index in runs.indices { runs[index].start -= distance }
    }

    mutating func removeAll() {
      runs.removeAll(keepingCapacity: true)
      if !ids.isEmpty { ids.removeAll(keepingCapacity: true) }
    }

    /// Passes all blobs as one member. Without pending blobs it does nothing.
    func emitWhole(
      of bytes: Span<UInt8>, _ emit: (Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
    ) throws(StoreError) {
      guard let first = runs.first, let last = runs.last else { return }
      let blobs = runs.lazy.filter { !$0.isRepeat }.map {
        PackFrame.Blob(id: $0.id, offset: $0.start - first.start, length: $0.length)
      }
      try emit(bytes.extracting(first.start..<last.end), Array(blobs))
    }

    /// Passes parts of consecutive blobs, each of at most `limit` bytes.
    func emitParts(
      of bytes: Span<UInt8>, limit: Int,
      _ emit: (UInt64, Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
    ) throws(StoreError) {
      var part: [Run] = []
      for run in runs {
        let size = part.reduce(0) { $0 + $1.length }
        if run.isRepeat || size + run.length > limit {
          try self.emit(part, of: bytes, emit)
          part = []
        }
        if !run.isRepeat { part.append(run) }
      }
      try self.emit(part, of: bytes, emit)
    }

    private func emit(
      _ part: [Run], of bytes: Span<UInt8>,
      _ emit: (UInt64, Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
    ) throws(StoreError) {
      guard let first = part.first, let last = part.last else { return }
      let blobs = part.map {
        PackFrame.Blob(id: $0.id, offset: $0.start - first.start, length: $0.length)
      }
      try emit(
        first.offset, bytes.extracting(first.start..<last.end), blobs)
    }
  }
}
