package import Codecs

extension RepositoryReader {
  /// Passes the blobs of a file in order, each with its offset in the file. Ranges not passed, up
  /// to the content's size, are holes. The span is valid only during the call.
  ///
  /// - Throws: `StoreError` if content cannot be read, and any error of `body`.
  package func readContent(
    _ content: Content, _ body: (UInt64, Span<UInt8>) throws -> Void
  ) throws {
    try forEachPiece(of: content) { offset, piece in
      guard case .blob(let digest, let length) = piece else { return }
      let (frame, range) = try find(BlobID(kind: .data, digest: digest))
      guard range.count == length else {
        throw StoreError.damaged(
          "data blob \(digest.hex)",
          "it has \(range.count) bytes instead of the \(length) that a file needs")
      }
      try body(offset, frame.span.extracting(range))
    }
  }

  /// Passes the pieces of a file in order, each with its offset in the file, and resolves lists.
  package func forEachPiece(
    of content: Content, _ body: (UInt64, Piece) throws -> Void
  ) throws {
    try forEachPiece(content.pieces[...], level: content.level, body)
  }

  /// Passes the pieces in lists of a level (`Content.level`) in order, each with its offset.
  package func forEachPiece(
    _ pieces: ArraySlice<Piece>, level: UInt8, _ body: (UInt64, Piece) throws -> Void
  ) throws {
    try forEachPiece(pieces, level: level, from: 0, body)
  }

  private func forEachPiece(
    _ pieces: ArraySlice<Piece>, level: UInt8, from start: UInt64,
    _ body: (UInt64, Piece) throws -> Void
  ) throws {
    var offset = start
    for piece in pieces {
      if level > 0, case .blob(let digest, let length) = piece {
        let list = try self.pieces(ofList: digest, level: level - 1, length: length)
        try forEachPiece(list[...], level: level - 1, from: offset, body)
      } else {
        try body(offset, piece)
      }
      offset += piece.length
    }
  }

  /// Reads a list of pieces, which must cover exactly `length` bytes of the file. The pieces of a
  /// level above 0 are lists themselves.
  package func pieces(
    ofList digest: Digest, level: UInt8, length: UInt64
  ) throws(StoreError) -> [Piece] {
    let blob = BlobID(kind: .list, digest: digest)
    let bytes = try readBlob(blob)
    return try ContentCoding.decodeList(bytes, level: level, length: length, object: "\(blob)")
  }

  /// Returns the value of an extended attribute.
  package func value(of attribute: Attribute) throws(StoreError) -> [UInt8] {
    switch attribute.value {
    case .inline(let value): return value
    case .blob(let digest, let length):
      let value = try readBlob(BlobID(kind: .data, digest: digest))
      guard value.count == length else {
        throw .damaged(
          "data blob \(digest.hex)",
          "it has \(value.count) bytes instead of the \(length) that an attribute needs")
      }
      return value
    }
  }
}
