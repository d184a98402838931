internal import Codecs
internal import SystemIO

/// Takes the bytes and holes of one file in order; made by `ContentWriter.storeFile`.
///
/// Holds at most 12 MiB and the portion that is given, however large the file is.
public final class FileWriter {
  private var writer: ContentWriter?
  private var path: ByteString = ""
  private var hints = FileHints()
  private var cutter = ContentCutter(isDatabase: false, size: nil)
  private var content = ContentBuilder()
  private var pending = PendingMember()
  private var pendingBytes: [UInt8] = []
  /// Whether the file can still become one member at its own path.
  private var isWhole = true

  /// A file that is larger is stored in parts.
  static let wholeLimit = 8 << 20
  /// Parts hold successive new blobs of at most so many bytes.
  static let partLimit = 4 << 20

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
    isWhole = (hints.size ?? 0) <= UInt64(Self.wholeLimit)
  }

  func end() { writer = nil }

  /// Makes sure that no other file is in hand.
  func requireFree(_ path: ByteString) throws(StoreError) {
    guard writer == nil else {
      throw .invalid(path.description, "another file of the writer is not finished")
    }
  }

  /// Takes the next bytes.
  public func append(_ bytes: Span<UInt8>) throws(StoreError) {
    let writer = try open()
    try writer.session.lease.keepAlive()
    try cutter.append(bytes) { offset, piece throws(StoreError) in
      try take(piece, at: offset, writer)
    }
  }

  /// Takes the next bytes.
  public func append(_ bytes: [UInt8]) throws(StoreError) { try append(bytes.span) }

  /// Takes a hole: zeros that need not be read.
  public func appendHole(length: UInt64) throws(StoreError) {
    let writer = try open()
    if length == 0 { return }
    try cutter.appendHole(length: length) { offset, piece throws(StoreError) in
      try take(piece, at: offset, writer)
    }
    isWhole = false
    try flush(writer)
    try add(.hole(length: length), writer)
  }

  /// Gives the content when all bytes have come.
  func finish() throws(StoreError) -> Content {
    let writer = try open()
    try cutter.finish { offset, piece throws(StoreError) in try take(piece, at: offset, writer) }
    try flush(writer)
    return try content.finish { level, pieces throws(StoreError) in
      try writer.session.storeList(level: level, pieces: pieces)
    }
  }

  /// Stores what other threads rely on already of a file that is not read to its end.
  func giveUp() throws(StoreError) {
    isWhole = false
    try flush(try open())
  }

  private func open() throws(StoreError) -> ContentWriter {
    guard let writer else { throw .invalid("a file", "its writer is used after its end") }
    try writer.session.status.check()
    return writer
  }

  private func add(_ piece: Piece, _ writer: ContentWriter) throws(StoreError) {
    try content.append(piece) { level, pieces throws(StoreError) in
      try writer.session.storeList(level: level, pieces: pieces)
    }
  }

  /// Names a piece, and keeps its bytes if it is new.
  private func take(
    _ bytes: Span<UInt8>, at offset: UInt64, _ writer: ContentWriter
  ) throws(StoreError) {
    let id = BlobID(kind: .data, digest: Blake2b.hash(bytes))
    try add(.blob(id.digest, length: UInt64(bytes.count)), writer)
    let isRepeat = pending.contains(id)
    if isRepeat {
      writer.session.known.countKnown(length: bytes.count)
    } else if !writer.session.known.claim(id, length: bytes.count) {
      isWhole = false
      return try flush(writer)
    }
    if pendingBytes.count + bytes.count > (isWhole ? Self.wholeLimit : Self.partLimit) {
      isWhole = false
      try flush(writer)
    }
    if isRepeat && !isWhole { return try flush(writer) }
    let start = pendingBytes.count
    pending.append(id, start..<(start + bytes.count), at: offset)
    pendingBytes.append(bytes)
  }

  /// Hands over what is pending: as the whole file, or as parts.
  private func flush(_ writer: ContentWriter) throws(StoreError) {
    var bytes: [UInt8] = []
    swap(&bytes, &pendingBytes)
    try writer.append(pending, of: bytes.span, isWhole: isWhole, path: path, hints: hints)
    pending.removeAll()
    bytes.removeAll(keepingCapacity: true)
    swap(&bytes, &pendingBytes)
  }
}
