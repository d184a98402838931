/// Encrypts a file from its beginning to its end, in portions of any size ("Payload").
///
/// A pack is written with a buffer that is emptied after each call and keeps its memory. Complete
/// pieces are encrypted from the given bytes directly; up to one piece is kept until more bytes
/// follow, because the last piece is marked. To encrypt with several threads, use
/// `AgePayload.seal(_:from:endsPayload:appendingTo:)`.
public struct AgeEncryptor: ~Copyable {
  /// The head and the key of the file.
  public let file: AgeFile
  private var pieces = AgePieces(size: AgePayload.plainCount)
  private var isBegun = false

  /// Begins to encrypt a new file. A file must not be encrypted twice.
  public init(_ file: AgeFile) { self.file = file }

  /// Encrypts the next plain bytes and appends the complete stored bytes to a buffer; the first
  /// call also appends the head.
  public mutating func encrypt(_ plain: Span<UInt8>, appendingTo buffer: inout [UInt8]) {
    begin(&buffer)
    let payload = file.payload
    pieces.add(plain) { run, first in
      payload.seal(run, from: first, endsPayload: false, appendingTo: &buffer)
    }
  }

  /// Appends the last stored bytes to a buffer.
  public consuming func finish(appendingTo buffer: inout [UInt8]) {
    begin(&buffer)
    file.payload.seal(
      pieces.pending.span, from: pieces.number, endsPayload: true, appendingTo: &buffer)
  }

  private mutating func begin(_ buffer: inout [UInt8]) {
    if !isBegun { buffer += file.head }
    isBegun = true
  }
}

/// Decrypts a file from its beginning to its end, in portions of any size ("Payload").
///
/// Plain bytes are authentic when they are appended, but only `finish(appendingTo:)` verifies that
/// the file is complete.
public struct AgeDecryptor: ~Copyable {
  private let payload: AgePayload
  private var pieces = AgePieces(size: AgePayload.storedCount)

  /// Begins to decrypt a file. The bytes after its head are then passed to
  /// `decrypt(_:appendingTo:)`.
  public init(_ file: AgeFile) { payload = file.payload }

  /// Decrypts the next stored bytes and appends the plain bytes of complete pieces to a buffer,
  /// including those before a failure. Do not use the value after an error.
  ///
  /// - Throws: `payload` if a piece is damaged, or not the one with its number, or if data follows
  ///   the last one.
  public mutating func decrypt(
    _ stored: Span<UInt8>, appendingTo buffer: inout [UInt8]
  ) throws(AgeError) {
    let payload = payload
    try pieces.add(stored) { (run, first) throws(AgeError) in
      try payload.open(run, from: first, endsPayload: false, appendingTo: &buffer)
    }
  }

  /// Appends the plain bytes of the last piece to a buffer.
  ///
  /// - Throws: `payload` if the file is truncated or its last piece is damaged.
  public consuming func finish(appendingTo buffer: inout [UInt8]) throws(AgeError) {
    try payload.open(
      pieces.pending.span, from: pieces.number, endsPayload: true, appendingTo: &buffer)
  }
}

/// Splits a stream into pieces. At least one byte is kept, because the last piece is processed
/// differently.
private struct AgePieces {
  private let size: Int
  /// The number of the pending piece.
  private(set) var number: UInt64 = 0
  /// The bytes of a piece that is incomplete, or after which no byte has arrived yet.
  private(set) var pending: [UInt8] = []

  init(size: Int) { self.size = size }

  /// Adds bytes, and calls `process` with each run of pieces that are followed by more bytes and
  /// with the number of its first piece.
  mutating func add<Failure: Error>(
    _ bytes: Span<UInt8>, _ process: (Span<UInt8>, UInt64) throws(Failure) -> Void
  ) throws(Failure) {
    var offset = 0
    if !pending.isEmpty {
      offset = min(bytes.count, size - pending.count)
      buffer(bytes.extracting(first: offset))
      guard offset < bytes.count else { return }
      try process(pending.span, number)
      number += 1
      pending.removeAll(keepingCapacity: true)
    }
    let whole = max(0, (bytes.count - offset - 1) / size)
    if whole > 0 {
      try process(bytes.extracting(offset..<(offset + whole * size)), number)
      number += UInt64(whole)
    }
    buffer(bytes.extracting((offset + whole * size)..<bytes.count))
  }

  private mutating func buffer(_ bytes: Span<UInt8>) {
    if pending.isEmpty { pending.reserveCapacity(size) }
    unsafe bytes.withUnsafeBufferPointer { unsafe pending.append(contentsOf: $0) }
  }
}

// MARK: - Small files

extension AgeFile {
  /// Returns a whole file with this head, for a file that fits into memory. A file must not be
  /// encrypted twice.
  public func encrypt(_ plain: Span<UInt8>) -> [UInt8] {
    var stored: [UInt8] = []
    stored.reserveCapacity(storedCount(ofPlain: plain.count))
    stored += head
    payload.seal(plain, from: 0, endsPayload: true, appendingTo: &stored)
    return stored
  }

  /// Returns the plain bytes of a whole file with this head.
  ///
  /// - Throws: `payload` if it is truncated or damaged.
  public func decrypt(_ stored: Span<UInt8>) throws(AgeError) -> [UInt8] {
    precondition(stored.count >= head.count, "the file was opened with other bytes")
    var plain: [UInt8] = []
    plain.reserveCapacity(stored.count)
    var decryptor = AgeDecryptor(self)
    try decryptor.decrypt(stored.extracting(head.count..<stored.count), appendingTo: &plain)
    try decryptor.finish(appendingTo: &plain)
    return plain
  }
}
