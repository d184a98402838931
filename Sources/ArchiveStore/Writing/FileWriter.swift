package import Codecs
internal import SystemIO

/// Receives the bytes and holes of one file in order; passed to the body of
/// `ContentWriter.storeFile`.
///
/// For a file of any size it holds the current portion and at most 28 MiB, usually half of that:
/// bytes not yet cut, pieces not yet hashed, and pieces not yet in a member.
package final class FileWriter {
  private var writer: ContentWriter?
  private var path: ByteString = ""
  private var hints = FileHints()
  private var cutter = ContentCutter(isDatabase: false, size: nil)
  private var content = ContentBuilder()
  /// Pieces not yet hashed. Hashing them together takes a fraction of the time.
  private var cuts: [ContentCutter.Cut] = []
  private var pending = PendingMember()
  /// Whether the file can still become one member at its own path.
  private var isWhole = true
  /// Called for each hashed piece with its offset in the file, its length and its digest.
  package var onPiece: ((_ offset: UInt64, _ length: Int, _ digest: Digest) -> Void)?

  /// The maximum size in bytes of a file that is stored as one member.
  static let wholeLimit = 8 << 20
  /// The maximum size in bytes of a part, which holds successive new blobs.
  static let partLimit = 4 << 20
  /// The number of pieces, or of their bytes, at which pieces are hashed. The number keeps all
  /// lanes of `Blake2b.hash(_:of:)` busy.
  private static let namedTogether = (pieces: 24, bytes: 8 << 20)
  /// The maximum number of bytes held in addition to the current portion.
  static let mostHeld = 28 << 20

  init() {}

  func begin(
    _ writer: ContentWriter, path: ByteString, hints: FileHints
  ) throws(StoreError) {
    try requireFree(path)
    self.writer = writer
    self.path = path
    self.hints = hints
    cutter.restart(isDatabase: hints.isDatabase, size: hints.size)
    content = ContentBuilder()
    cuts.removeAll(keepingCapacity: true)
    isWhole = (hints.size ?? 0) <= UInt64(Self.wholeLimit)
  }

  func end() { (writer, onPiece) = (nil, nil) }

  /// The number of bytes held now.
  var heldBytes: Int { cutter.window.count }

  /// Checks that no other file is open.
  func requireFree(_ path: ByteString) throws(StoreError) {
    guard writer == nil else {
      throw .invalid(path.description, "another file of the writer is not finished")
    }
  }

  /// Appends the next bytes.
  package func append(_ bytes: Span<UInt8>) throws(StoreError) {
    try beginPortion()
    cutter.append(bytes)
    try takePieces()
  }

  /// Appends the next bytes.
  package func append(_ bytes: [UInt8]) throws(StoreError) { try append(bytes.span) }

  /// Appends the bytes that `read` appends to its array, usually at most 1 MiB, and returns their
  /// number. An error of `read` is rethrown and ends the file.
  package func append(reading read: (inout [UInt8]) throws -> Void) throws -> Int {
    try beginPortion()
    let end = cutter.end
    try cutter.append(read)
    let count = Int(cutter.end - end)
    try takePieces()
    return count
  }

  /// Appends a hole: zeros that are not read.
  package func appendHole(length: UInt64) throws(StoreError) {
    let writer = try open()
    if length == 0 { return }
    try skip(.hole(length: length), writer)
  }

  /// Appends the next piece by the digest that an earlier run computed for the same bytes at the
  /// same offset, without the bytes. Returns false, and appends nothing, if the blob is not stored.
  package func append(stored digest: Digest, length: Int) throws(StoreError) -> Bool {
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
    try takePieces(isLast: true)
    cutter.skip(piece)
    isWhole = false
    try flush(writer)
    try add(piece, writer)
  }

  /// Returns the content after all bytes were appended.
  func finish() throws(StoreError) -> Content {
    let writer = try open()
    try takePieces(isLast: true)
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
    let done = pending.start ?? cuts.first?.place.lowerBound ?? cutter.start
    guard done > 0, done >= cutter.window.count - done else { return }
    cutter.drop(first: done)
    for index in cuts.indices { cuts[index].move(by: done) }
    pending.move(by: done)
  }

  /// Cuts the received bytes, and hashes the pieces once there are enough.
  private func takePieces(isLast: Bool = false) throws(StoreError) {
    let writer = try open()
    while let cut = cutter.next(isLast: isLast) { cuts.append(cut) }
    guard let first = cuts.first else { return }
    let isEnough =
      cuts.count >= Self.namedTogether.pieces
      || cutter.start - first.place.lowerBound >= Self.namedTogether.bytes
    guard isLast || isEnough else { return }
    let digests = Blake2b.hash(cuts.map(\.place), of: cutter.window.span)
    for (cut, digest) in zip(cuts, digests) { try take(cut, digest: digest, to: writer) }
    cuts.removeAll(keepingCapacity: true)
  }

  /// Adds a piece to the content, and keeps its range if it is new.
  private func take(
    _ cut: ContentCutter.Cut, digest: Digest, to writer: ContentWriter
  ) throws(StoreError) {
    let length = cut.place.count
    let id = BlobID(kind: .data, digest: digest)
    try add(.blob(digest, length: UInt64(length)), writer)
    onPiece?(cut.offset, length, digest)
    let isRepeat = pending.contains(id)
    if isRepeat {
      writer.session.known.countKnown(length: length)
    } else if !writer.session.known.claim(id, length: length) {
      isWhole = false
      return try flush(writer)
    }
    if pending.length + length > (isWhole ? Self.wholeLimit : Self.partLimit) {
      isWhole = false
      try flush(writer)
    }
    if isRepeat && !isWhole { return try flush(writer) }
    pending.append(id, cut.place, at: cut.offset)
  }

  /// Stores the pending pieces, as the whole file or as parts.
  private func flush(_ writer: ContentWriter) throws(StoreError) {
    let window = cutter.window
    try writer.append(pending, of: window.span, isWhole: isWhole, path: path, hints: hints)
    pending.removeAll()
  }
}
