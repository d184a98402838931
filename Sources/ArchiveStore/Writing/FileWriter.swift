public import Codecs
internal import SystemIO

/// Takes the bytes and holes of one file in order; made by `ContentWriter.storeFile`.
///
/// However large the file is, it holds at most the portion that is given and 28 MiB, as a rule half of
/// that: what is not cut yet, the pieces that have no name yet, and those that are in no member yet.
public final class FileWriter {
  private var writer: ContentWriter?
  private var path: ByteString = ""
  private var hints = FileHints()
  private var cutter = ContentCutter(isDatabase: false, size: nil)
  private var content = ContentBuilder()
  /// Pieces that have no name yet: hashed together they take a part of the time.
  private var cuts: [ContentCutter.Cut] = []
  private var pending = PendingMember()
  /// Whether the file can still become one member at its own path.
  private var isWhole = true
  /// Is told each piece that gets its name: where in the file it begins, and its bytes.
  public var onPiece: ((_ offset: UInt64, _ length: Int, _ digest: Digest) -> Void)?

  /// A file that is larger is stored in parts.
  static let wholeLimit = 8 << 20
  /// Parts hold successive new blobs of at most so many bytes.
  static let partLimit = 4 << 20
  /// Pieces get their names once there are so many, which keeps all lanes of `Blake2b.hash(_:of:)`
  /// busy, or so many bytes of them.
  private static let namedTogether = (pieces: 24, bytes: 8 << 20)
  /// Bytes beside the portion that is given.
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

  /// How many bytes it holds now.
  var heldBytes: Int { cutter.window.count }

  /// Makes sure that no other file is in hand.
  func requireFree(_ path: ByteString) throws(StoreError) {
    guard writer == nil else {
      throw .invalid(path.description, "another file of the writer is not finished")
    }
  }

  /// Takes the next bytes.
  public func append(_ bytes: Span<UInt8>) throws(StoreError) {
    try beginPortion()
    cutter.append(bytes)
    try takePieces()
  }

  /// Takes the next bytes.
  public func append(_ bytes: [UInt8]) throws(StoreError) { try append(bytes.span) }

  /// Takes the next bytes, which `read` appends to the array that it is given, as a rule at most
  /// 1 MiB; gives how many came. What `read` throws is thrown on, and ends the file.
  public func append(reading read: (inout [UInt8]) throws -> Void) throws -> Int {
    try beginPortion()
    let end = cutter.end
    try cutter.append(read)
    let count = Int(cutter.end - end)
    try takePieces()
    return count
  }

  /// Takes a hole: zeros that need not be read.
  public func appendHole(length: UInt64) throws(StoreError) {
    let writer = try open()
    if length == 0 { return }
    try skip(.hole(length: length), writer)
  }

  /// Takes the next piece by its name, which an earlier run gave to the same bytes at the same place,
  /// without them; false, and nothing taken, where it is not stored.
  public func append(stored digest: Digest, length: Int) throws(StoreError) -> Bool {
    let writer = try open()
    guard writer.session.contains(BlobID(kind: .data, digest: digest)) else { return false }
    writer.session.known.countKnown(length: length)
    // What lies before it unnamed is of a run that is longer than that.
    cutter.goOnWithRun()
    try skip(.blob(digest, length: UInt64(length)), writer)
    return true
  }

  /// Takes a piece of which no bytes come, behind all that have come.
  private func skip(_ piece: Piece, _ writer: ContentWriter) throws(StoreError) {
    // A file may be all pieces that are stored, of which none comes to a portion.
    try writer.session.lease.keepAlive()
    try takePieces(isLast: true)
    cutter.skip(piece)
    isWhole = false
    try flush(writer)
    try add(piece, writer)
  }

  /// Gives the content when all bytes have come.
  func finish() throws(StoreError) -> Content {
    let writer = try open()
    try takePieces(isLast: true)
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

  /// Moves what is still needed to the window's front once that is the smaller part of it.
  private func beginPortion() throws(StoreError) {
    try open().session.lease.keepAlive()
    let done = pending.start ?? cuts.first?.place.lowerBound ?? cutter.start
    guard done > 0, done >= cutter.window.count - done else { return }
    cutter.drop(first: done)
    for index in cuts.indices { cuts[index].move(by: done) }
    pending.move(by: done)
  }

  /// Cuts what has come, and names the pieces once there are enough of them.
  private func takePieces(isLast: Bool = false) throws(StoreError) {
    let writer = try open()
    while let cut = cutter.next(isLast: isLast) { cuts.append(cut) }
    guard let first = cuts.first else { return }
    let isEnough =
      cuts.count >= Self.namedTogether.pieces
      || cutter.start - first.place.lowerBound >= Self.namedTogether.bytes
    guard isLast || isEnough else { return }
    let digests = Blake2b.hash(cuts.map(\.place), of: cutter.window.span)
    for (cut, digest) in zip(cuts, digests) { try take(cut, digest, writer) }
    cuts.removeAll(keepingCapacity: true)
  }

  /// Adds a piece to the content, and keeps its place if it is new.
  private func take(
    _ cut: ContentCutter.Cut, _ digest: Digest, _ writer: ContentWriter
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

  /// Hands over what is pending: as the whole file, or as parts.
  private func flush(_ writer: ContentWriter) throws(StoreError) {
    let window = cutter.window
    try writer.append(pending, of: window.span, isWhole: isWhole, path: path, hints: hints)
    pending.removeAll()
  }
}
