internal import SystemIO

extension SFTPConnection {
  /// Fills `buffer` with `count` bytes of a file from `offset`, or fewer at its end. All pieces are
  /// requested at once; memory is used only for those that arrived.
  func read(
    _ handle: SFTPHandle, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(SFTPFailure) {
    buffer.removeAll(keepingCapacity: true)
    var transfer = ReadTransfer(
      handle: handle, offset: offset, count: count, piece: limits.readPiece)
    let exchange = exchange()
    let window = Self.window(ofPieces: limits.readPiece)
    while true {
      while exchange.pending < window, let piece = transfer.nextPiece() {
        transfer.sent[try exchange.send(piece.request(handle, offset))] = piece
      }
      if transfer.sent.isEmpty { break }
      let (id, reply) = try exchange.next()
      try transfer.receive(id, reply, into: &buffer)
    }
    if buffer.count > transfer.end { buffer.removeLast(buffer.count - transfer.end) }
  }
}

/// The pieces of a range that is being read.
private struct ReadTransfer {
  /// A part of the range, relative to its start.
  struct Piece {
    let start: Int
    let count: Int

    func request(_ handle: SFTPHandle, _ offset: UInt64) -> SFTPRequest {
      .read(handle, offset: offset &+ UInt64(start), count: UInt32(clamping: count))
    }
  }

  let handle: SFTPHandle
  let offset: UInt64
  let piece: Int
  /// The end of the range, relative to its start: smaller than requested once the file's end is
  /// known.
  var end: Int
  /// The requested pieces, by the numbers of their requests.
  var sent: [UInt32: Piece] = [:]
  private var next = 0
  /// The remainders of pieces that the server sent only in part.
  private var rests: [Piece] = []

  init(handle: SFTPHandle, offset: UInt64, count: Int, piece: Int) {
    (self.handle, self.offset, self.piece, end) = (handle, offset, piece, count)
  }

  /// Returns the next piece to request, or nil if there is none.
  mutating func nextPiece() -> Piece? {
    if let rest = rests.popLast() { return rest }
    guard next < end else { return nil }
    let piece = Piece(start: next, count: min(piece, end - next))
    next += piece.count
    return piece
  }

  mutating func receive(
    _ id: UInt32, _ reply: SFTPReply, into buffer: inout [UInt8]
  ) throws(SFTPFailure) {
    guard let piece = sent.removeValue(forKey: id) else { return }
    switch reply {
    case .data(let bytes):
      guard !bytes.isEmpty, bytes.count <= piece.count else {
        throw SFTPFailure(
          SFTPViolation(reason: "it sent a different number of bytes than requested"))
      }
      store(bytes, at: piece.start, in: &buffer)
      let rest = Piece(start: piece.start + bytes.count, count: piece.count - bytes.count)
      if rest.count > 0 { rests.append(rest) }
    case .status(let status) where status.code == .endOfFile: end = min(end, piece.start)
    default: throw SFTPConnection.failure(reply)
    }
  }

  private func store(_ bytes: [UInt8], at start: Int, in buffer: inout [UInt8]) {
    if start == buffer.count { return buffer.append(contentsOf: bytes) }
    let missing = start + bytes.count - buffer.count
    if missing > 0 { buffer.append(contentsOf: repeatElement(0, count: missing)) }
    buffer.replaceSubrange(start..<(start + bytes.count), with: bytes)
  }
}
