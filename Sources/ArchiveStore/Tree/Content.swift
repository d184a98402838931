public import Codecs

/// The content of a file: blobs and holes in order, or lists of them.
public struct Content: Hashable, Sendable {
  /// The size in bytes, including holes.
  public let size: UInt64
  /// The list level. 0: the pieces are the file's own. 1: each piece is a list blob for an aligned
  /// 16 MiB of the file. 2: each piece is a list blob of such lists for an aligned 16 GiB.
  public let level: UInt8
  /// The pieces, with a total length of `size` bytes.
  public let pieces: [Piece]

  /// Creates content from its parts, which are checked when an entry is encoded.
  public init(size: UInt64, level: UInt8, pieces: [Piece]) {
    self.size = size
    self.level = level
    self.pieces = pieces
  }

  /// The content of an empty file.
  public static let empty = Content(size: 0, level: 0, pieces: [])

  /// The maximum number of pieces in the entry itself.
  static let inlinePieces = 256
  /// The number of file bytes that a list of level 1 or 2 covers; it has the pieces that begin in
  /// them.
  static let windows: [UInt64] = [16 << 20, 16 << 30]
  static let maximumLevel: UInt8 = 2
}

/// A range of a file.
public enum Piece: Hashable, Sendable, BitwiseCopyable {
  /// A blob of data, or in lists of a level above 0 another list, that covers `length` bytes of the
  /// file.
  case blob(Digest, length: UInt64)
  /// A range of zeros that is not stored.
  case hole(length: UInt64)

  /// The length in bytes of the file.
  public var length: UInt64 {
    switch self {
    case .blob(_, let length), .hole(let length): length
    }
  }

  /// The digest of the blob, or nil for a hole.
  public var digest: Digest? { if case .blob(let digest, _) = self { digest } else { nil } }
}

extension Content {
  /// Decodes the bytes of a list of pieces, which must cover exactly `length` bytes of a file. The
  /// pieces of a level above 0 are lists themselves.
  ///
  /// - Throws: `damaged` for any other bytes.
  public static func pieces(
    ofList bytes: [UInt8], level: UInt8, length: UInt64
  ) throws(StoreError) -> [Piece] {
    try ContentCoding.decodeList(bytes, level: level, length: length, object: "a list of pieces")
  }
}

extension Content {
  /// Collects the pieces of a file into its content. More than 256 pieces are stored as lists,
  /// window by window, so that a file of any size needs little memory.
  struct Builder {
    /// Stores a list of pieces of a level and returns its digest.
    typealias StoreList = (_ level: UInt8, _ pieces: [Piece]) throws(StoreError) -> Digest

    private var size: UInt64 = 0
    /// Pieces that are in no list yet, and the offset of the first.
    private var pieces: [Piece] = []
    private var start: UInt64 = 0
    /// The lists of level 1 with their windows.
    private var lists: [(window: UInt64, piece: Piece)] = []

    /// Adds the next piece. Consecutive holes are joined.
    mutating func append(_ piece: Piece, store: StoreList) throws(StoreError) {
      if piece.length == 0 { return }
      if case .hole(let length) = piece, case .hole(let before) = pieces.last {
        pieces[pieces.count - 1] = .hole(length: before + length)
      } else {
        if pieces.count > Content.inlinePieces { try storeFullWindows(store) }
        pieces.append(piece)
      }
      size += piece.length
    }

    /// Returns the content of all pieces.
    mutating func finish(store: StoreList) throws(StoreError) -> Content {
      guard !lists.isEmpty || pieces.count > Content.inlinePieces else {
        return Content(size: size, level: 0, pieces: pieces)
      }
      try storeWindows(keepingLast: false, store)
      guard lists.count > Content.inlinePieces else {
        return Content(size: size, level: 1, pieces: lists.map(\.piece))
      }
      return Content(size: size, level: 2, pieces: try listsOfLists(store))
    }

    /// Stores the windows in which no later piece can begin.
    private mutating func storeFullWindows(_ store: StoreList) throws(StoreError) {
      let first = start / Content.windows[0]
      if size / Content.windows[0] > first { try storeWindows(keepingLast: true, store) }
    }

    /// Stores a list for each window in which pieces begin, with or without the last one.
    private mutating func storeWindows(
      keepingLast: Bool, _ store: StoreList
    ) throws(StoreError) {
      var at = start
      var group: [Piece] = []
      var groupStart = start
      for piece in pieces {
        let window = at / Content.windows[0]
        if !group.isEmpty && window != groupStart / Content.windows[0] {
          try storeList(group, window: groupStart / Content.windows[0], store)
          group = []
        }
        if group.isEmpty { groupStart = at }
        group.append(piece)
        at += piece.length
      }
      if keepingLast {
        (pieces, start) = (group, groupStart)
      } else {
        if !group.isEmpty { try storeList(group, window: groupStart / Content.windows[0], store) }
        (pieces, start) = ([], at)
      }
    }

    private mutating func storeList(
      _ group: [Piece], window: UInt64, _ store: StoreList
    ) throws(StoreError) {
      let length = group.reduce(0) { $0 + $1.length }
      lists.append((window, .blob(try store(0, group), length: length)))
    }

    private func listsOfLists(_ store: StoreList) throws(StoreError) -> [Piece] {
      let ratio = Content.windows[1] / Content.windows[0]
      var result: [Piece] = []
      var group: [Piece] = []
      for (number, list) in lists.enumerated() {
        group.append(list.piece)
        let next = number + 1 < lists.count ? lists[number + 1].window / ratio : nil
        if next != list.window / ratio {
          let length = group.reduce(0) { $0 + $1.length }
          result.append(.blob(try store(1, group), length: length))
          group = []
        }
      }
      return result
    }
  }

  var fault: String? {
    if level > Self.maximumLevel { return "lists of level \(level)" }
    if level == 0 && pieces.count > Self.inlinePieces {
      return "\(pieces.count) pieces without a list"
    }
    if level > 0 && pieces.isEmpty { return "a list level without lists" }
    if let fault = ContentCoding.fault(in: pieces, level: level) { return fault }
    guard let sum = try? ContentCoding.size(of: pieces), sum == size else {
      return "pieces that do not add up to the file's \(size) bytes"
    }
    return nil
  }
}

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

  /// Encodes an array. A hole is its length.
  static func encode(_ pieces: [Piece], to encoder: inout CBOREncoder) {
    encoder.beginArray(count: pieces.count)
    for piece in pieces {
      switch piece {
      case .hole(let length): encoder.unsigned(length)
      case .blob(let digest, let length): encoder.blob(digest, length: length)
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

extension CBOREncoder {
  /// Writes the reference to a data blob: an array of its length and its hash.
  mutating func blob(_ digest: Digest, length: UInt64) {
    beginArray(count: 2)
    unsigned(length)
    self.digest(digest)
    endArray()
  }
}
