internal import Codecs

/// The pieces of a file and lists of pieces as CBOR (docs/repository-format.md, "Content").
enum ContentCoding {
  private enum Key {
    static let level: Int64 = 0
    static let pieces: Int64 = 1
  }

  static func encodeList(level: UInt8, pieces: [Piece]) -> [UInt8] {
    var encoder = CBOREncoder(capacity: 16 + pieces.count * 40)
    encoder.beginMap()
    if level > 0 {
      encoder.key(Key.level)
      encoder.unsigned(UInt64(level))
    }
    encoder.key(Key.pieces)
    encode(pieces, to: &encoder)
    encoder.endMap()
    return encoder.finish()
  }

  /// Encodes an array. A blob is an array of its length and hash, a hole its length.
  static func encode(_ pieces: [Piece], to encoder: inout CBOREncoder) {
    encoder.beginArray(count: pieces.count)
    for piece in pieces {
      switch piece {
      case .hole(let length): encoder.unsigned(length)
      case .blob(let digest, let length):
        encoder.beginArray(count: 2)
        encoder.unsigned(length)
        encoder.digest(digest)
        encoder.endArray()
      }
    }
    encoder.endArray()
  }

  /// Decodes a list blob of a level whose pieces cover `length` bytes of the file.
  static func decodeList(
    _ bytes: [UInt8], level: UInt8, length: UInt64, object: @autoclosure () -> String
  ) throws(StoreError) -> [Piece] {
    do throws(CodecError) {
      return try decodeList(bytes, level: level, length: length)
    } catch { throw .codec(error, object()) }
  }

  private static func decodeList(
    _ bytes: [UInt8], level: UInt8, length: UInt64
  ) throws(CodecError) -> [Piece] {
    var decoder = CBORDecoder(bytes)
    var found: UInt64 = 0
    var pieces: [Piece] = []
    try decoder.beginMap()
    while let key = try decoder.nextKey() {
      switch key {
      case Key.level:
        found = try decoder.unsigned()
        if found == 0 { throw fault("the default level 0 is encoded") }
      case Key.pieces: pieces = try decode(&decoder)
      default: throw fault("a list has the unknown key \(key)")
      }
    }
    try decoder.finish()
    guard found == level else { throw fault("a list of level \(found) instead of level \(level)") }
    if let fault = fault(in: pieces, level: level) { throw self.fault(fault) }
    guard !pieces.isEmpty, try size(of: pieces) == length else {
      throw fault("the pieces of a list do not have the expected \(length) bytes")
    }
    return pieces
  }

  /// Decodes pieces of a level that is not known yet. `fault(in:level:)` checks them afterwards.
  static func decode(_ decoder: inout CBORDecoder) throws(CodecError) -> [Piece] {
    var pieces: [Piece] = []
    pieces.reserveCapacity(try decoder.beginArray())
    var followsHole = false
    while try decoder.nextElement() {
      let isHole = try decoder.kind() == .unsigned
      if isHole && followsHole { throw fault("two consecutive holes") }
      followsHole = isHole
      let piece: Piece
      if isHole {
        piece = .hole(length: try decoder.unsigned())
      } else {
        let (digest, length) = try blob(&decoder)
        piece = .blob(digest, length: length)
      }
      guard piece.length > 0 else { throw fault("an empty piece") }
      pieces.append(piece)
    }
    return pieces
  }

  /// Returns the reason pieces of a level are invalid, or nil if they are valid: lists contain no
  /// holes, and no data blob exceeds the maximum size.
  static func fault(in pieces: [Piece], level: UInt8) -> String? {
    for piece in pieces {
      switch piece {
      case .hole: if level > 0 { return "a hole among lists" }
      case .blob(_, let length):
        if level == 0 && length > FormatLimit.blob { return "a piece of \(length) bytes" }
      }
    }
    return nil
  }

  /// Decodes the length and hash of a blob.
  static func blob(
    _ decoder: inout CBORDecoder
  ) throws(CodecError) -> (digest: Digest, length: UInt64) {
    guard try decoder.beginArray() == 2, try decoder.nextElement() else {
      throw fault("a piece is not an array of a length and a hash")
    }
    let length = try decoder.unsigned()
    _ = try decoder.nextElement()
    let digest = try digest(&decoder)
    _ = try decoder.nextElement()
    return (digest, length)
  }

  static func digest(_ decoder: inout CBORDecoder) throws(CodecError) -> Digest {
    guard let digest = try decoder.wholeDigest() else {
      throw fault("a hash that does not have 32 bytes")
    }
    return digest
  }

  /// Returns the total length of all pieces, and refuses more than a signed offset can represent.
  static func size(of pieces: [Piece]) throws(CodecError) -> UInt64 {
    var size: UInt64 = 0
    for piece in pieces {
      let (sum, hasOverflown) = size.addingReportingOverflow(piece.length)
      guard !hasOverflown, sum <= Int64.max else { throw fault("pieces of more than 2^63 bytes") }
      size = sum
    }
    return size
  }

  static func fault(_ reason: String) -> CodecError {
    CodecError(.malformed, in: .cbor, reason: reason)
  }
}
