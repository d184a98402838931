public import Codecs

extension RepositoryReader {
  /// Gives a file's content in order: each blob with its place in the file. What is passed over, up
  /// to the content's size, is holes. The span lasts for the call.
  ///
  /// - Throws: `StoreError` for what cannot be read, and what `body` throws.
  public func readContent(
    _ content: Content, _ body: (UInt64, Span<UInt8>) throws -> Void
  ) throws {
    try forEachPiece(of: content) { offset, piece in
      guard case .blob(let digest, let length) = piece else { return }
      let (frame, range) = try find(BlobID(kind: .data, digest: digest))
      guard range.count == length else {
        throw StoreError.damaged(
          "data blob \(digest.hex)", "it has \(range.count) bytes, and a file asks for \(length)")
      }
      try body(offset, frame.span.extracting(range))
    }
  }

  /// Gives the pieces of a file in order, each with its place in the file, out of all lists.
  public func forEachPiece(
    of content: Content, _ body: (UInt64, Piece) throws -> Void
  ) throws {
    try forEachPiece(content.pieces[...], level: content.level, body)
  }

  /// Gives the pieces that lists of a level (`Content.level`) hold, in order, each with its place.
  public func forEachPiece(
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

  /// Reads a list of pieces, which must have `length` bytes of the file together; those of a level
  /// above 0 are lists themselves.
  public func pieces(
    ofList digest: Digest, level: UInt8, length: UInt64
  ) throws(StoreError) -> [Piece] {
    let blob = BlobID(kind: .list, digest: digest)
    let bytes = try readBlob(blob)
    return try ContentCoding.decodeList(bytes, level: level, length: length, object: "\(blob)")
  }

  /// Gives an extended attribute's value.
  public func value(of attribute: Attribute) throws(StoreError) -> [UInt8] {
    switch attribute.value {
    case .inline(let value): return value
    case .blob(let digest, let length):
      let value = try readBlob(BlobID(kind: .data, digest: digest))
      guard value.count == length else {
        throw .damaged("data blob \(digest.hex)", "an attribute asks for \(length) bytes of it")
      }
      return value
    }
  }
}
