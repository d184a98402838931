internal import Codecs
internal import SystemIO

/// Takes the bytes and holes of one file in order; made by `WritingSession.storeFile`.
///
/// Holds at most 12 MiB and the portion that is given, however large the file is.
public final class FileWriter {
  private var session: WritingSession?
  private var path: ByteString = ""
  private var hints = FileHints()
  private var cutter = ContentCutter(isDatabase: false, size: nil)
  private var content = ContentBuilder()
  private var pending = PendingMember()
  /// Whether the file can still become one member at its own path.
  private var isWhole = true

  /// A file that is larger is stored in parts.
  static let wholeLimit = 8 << 20
  /// Parts hold successive new blobs of at most so many bytes.
  static let partLimit = 4 << 20

  init() {}

  func begin(
    _ session: WritingSession, path: ByteString, hints: FileHints
  ) throws(StoreError) {
    guard self.session == nil else {
      throw .invalid(path.description, "another file of the session is not finished")
    }
    self.session = session
    self.path = path
    self.hints = hints
    cutter = ContentCutter(isDatabase: hints.isDatabase, size: hints.size)
    content = ContentBuilder()
    isWhole = true
    pending.removeAll()
  }

  func end() { session = nil }

  /// Takes the next bytes.
  public func append(_ bytes: Span<UInt8>) throws(StoreError) {
    guard let session else { throw Self.isOver }
    try session.work { () throws(StoreError) in
      try session.lease.keepAlive()
      try cutter.append(bytes) { offset, piece throws(StoreError) in
        try take(piece, at: offset, session)
      }
    }
  }

  /// Takes the next bytes.
  public func append(_ bytes: [UInt8]) throws(StoreError) { try append(bytes.span) }

  /// Takes a hole: zeros that need not be read.
  public func appendHole(length: UInt64) throws(StoreError) {
    guard let session else { throw Self.isOver }
    if length == 0 { return }
    try session.work { () throws(StoreError) in
      try cutter.appendHole(length: length) { offset, piece throws(StoreError) in
        try take(piece, at: offset, session)
      }
      isWhole = false
      try flush(session)
      try add(.hole(length: length), session)
    }
  }

  /// Gives the content when all bytes have come.
  func finish() throws(StoreError) -> Content {
    guard let session else { throw Self.isOver }
    try cutter.finish { offset, piece throws(StoreError) in try take(piece, at: offset, session) }
    try flush(session)
    return try content.finish { level, pieces throws(StoreError) in
      try session.storeList(level: level, pieces: pieces)
    }
  }

  private func add(_ piece: Piece, _ session: WritingSession) throws(StoreError) {
    try content.append(piece) { level, pieces throws(StoreError) in
      try session.storeList(level: level, pieces: pieces)
    }
  }

  /// Names a piece, and keeps its bytes if it is new.
  private func take(
    _ bytes: Span<UInt8>, at offset: UInt64, _ session: WritingSession
  ) throws(StoreError) {
    let id = BlobID(kind: .data, digest: Blake2b.hash(bytes))
    try add(.blob(id.digest, length: UInt64(bytes.count)), session)
    if session.isKnown(id, length: bytes.count) {
      isWhole = false
      return try flush(session)
    }
    if pending.bytes.count + bytes.count > (isWhole ? Self.wholeLimit : Self.partLimit) {
      isWhole = false
      try flush(session)
    }
    if !isWhole && pending.contains(id) { return try flush(session) }
    pending.append(id, bytes, at: offset)
  }

  /// Hands over what is pending: as the whole file, or as parts.
  private func flush(_ session: WritingSession) throws(StoreError) {
    if isWhole {
      try pending.giveWhole { bytes, blobs throws(StoreError) in
        try session.appendData(member(path, bytes.count), bytes: bytes, blobs: blobs)
      }
    } else {
      try pending.giveParts(limit: Self.partLimit) { offset, bytes, blobs throws(StoreError) in
        let digits = String(offset, radix: 16)
        let name = String(repeating: "0", count: 16 - digits.utf8.count) + digits
        let part = WritingSession.parts.appending(path).appending(ByteString(name))
        try session.appendData(member(part, bytes.count), bytes: bytes, blobs: blobs)
      }
    }
    pending.removeAll()
  }

  private func member(_ path: ByteString, _ size: Int) -> TarMember {
    TarMember(
      path: Array(path.bytes), size: size, mode: hints.permissions & 0o7777,
      modified: hints.modified.seconds)
  }

  private static let isOver = StoreError.invalid("a file", "its writer is used after its end")
}
