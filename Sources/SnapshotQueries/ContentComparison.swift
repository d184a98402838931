internal import ArchiveStore
internal import Codecs

/// A comparison of the bytes of two files by their pieces, in which holes are zeros.
///
/// The same bytes can be divided into different pieces: each run of data between holes is cut
/// separately, and a file next to a database's log is cut differently. Pieces at the same offset
/// with the same length are compared by their hashes, and data with a hole by the hash of zeros.
/// Bytes are read, up to the first difference, only where pieces overlap in other ways.
struct ContentComparison {
  /// The result of a comparison.
  enum Outcome {
    case different
    /// The bytes are the same, and so are the holes.
    case same
    /// The bytes are the same, and zeros that are a hole in one file are stored in the other.
    case otherHoles
  }

  private let reader: RepositoryReader
  private var first: Side
  private var second: Side
  private var hasOtherHoles = false
  /// The last computed hash of a run of zeros.
  private var zeros: (count: UInt64, hash: Digest)?

  private init(_ first: Content, _ second: Content, from reader: RepositoryReader) {
    self.reader = reader
    self.first = Side(PieceCursor(first))
    self.second = Side(PieceCursor(second))
  }

  /// Compares two contents. They count as different if a part cannot be read, even if only this
  /// user may not read it: the data may be in an archive of the store although the trees are not.
  ///
  /// - Throws: other `StoreError`; the error of the watch if it was stopped.
  static func compare(
    _ first: Content, _ second: Content, from reader: RepositoryReader
  ) throws -> Outcome {
    if first == second { return .same }
    if first.size != second.size { return .different }
    var comparison = ContentComparison(first, second, from: reader)
    do {
      return try comparison.run()
    } catch let error as StoreError where error.kind == .damaged || error.isRefused {
      return .different
    }
  }

  private mutating func run() throws -> Outcome {
    while true {
      try reader.watch?.checkCancellation()
      if first.isBetweenPieces, second.isBetweenPieces {
        PieceCursor.skipEqual(&first.cursor, &second.cursor)
      }
      guard try first.advance(reader), try second.advance(reader) else {
        return hasOtherHoles ? .otherHoles : .same
      }
      let count = min(first.left, second.left)
      if try !isSame(count) { return .different }
      first.skip(count)
      second.skip(count)
    }
  }

  /// Whether the next `count` bytes, which both current pieces have, are the same.
  private mutating func isSame(_ count: UInt64) throws -> Bool {
    switch (first.digest, second.digest) {
    case (nil, nil): return true
    case (let digest?, nil):
      hasOtherHoles = true
      if first.isWhole(count) { return digest == hash(ofZeros: count) }
      return try first.bytes(count, reader).allSatisfy { $0 == 0 }
    case (nil, let digest?):
      hasOtherHoles = true
      if second.isWhole(count) { return digest == hash(ofZeros: count) }
      return try second.bytes(count, reader).allSatisfy { $0 == 0 }
    case (let one?, let other?):
      if first.isWhole(count), second.isWhole(count) { return one == other }
      return try first.bytes(count, reader) == second.bytes(count, reader)
    }
  }

  /// Returns the hash of at most 8 MiB of zeros, the limit of a blob.
  private mutating func hash(ofZeros count: UInt64) -> Digest {
    if let zeros, zeros.count == count { return zeros.hash }
    let hash = Blake2b.hash([UInt8](repeating: 0, count: Int(count)))
    zeros = (count, hash)
    return hash
  }
}

extension ContentComparison {
  /// The position in one of the files.
  private struct Side {
    var cursor: PieceCursor
    private var piece: Piece?
    /// The number of bytes of the piece before the position.
    private var offset: UInt64 = 0
    /// The content of the piece, once it was needed.
    private var read: [UInt8]?

    init(_ cursor: PieceCursor) { self.cursor = cursor }

    var isBetweenPieces: Bool { piece == nil }
    /// The number of bytes of the piece after the position.
    var left: UInt64 { (piece?.length ?? 0) - offset }
    /// The hash of the current piece; nil for a hole.
    var digest: Digest? { piece?.digest }

    /// Whether the next bytes are the complete piece.
    func isWhole(_ count: UInt64) -> Bool { offset == 0 && count == left }

    /// Goes to the next piece unless the current one has more bytes. Returns false at the end.
    mutating func advance(_ reader: RepositoryReader) throws(StoreError) -> Bool {
      if piece == nil { piece = try cursor.next(reader) }
      return piece != nil
    }

    /// Returns the next bytes of a piece of data.
    mutating func bytes(
      _ count: UInt64, _ reader: RepositoryReader
    ) throws(StoreError) -> ArraySlice<UInt8> {
      guard case .blob(let digest, let length) = piece else { return [] }
      let bytes: [UInt8]
      if let read { bytes = read } else { bytes = try reader.readData(digest, length: length) }
      read = bytes
      return bytes[Int(offset)..<Int(offset + count)]
    }

    mutating func skip(_ count: UInt64) {
      offset += count
      if left == 0 { (piece, offset, read) = (nil, 0, nil) }
    }
  }

  /// The pieces of a file in order. A list of pieces is read when its first piece is needed.
  private struct PieceCursor {
    /// The remaining pieces of the entry, and of each list that was entered.
    private var levels: [(pieces: ArraySlice<Piece>, level: UInt8)]

    init(_ content: Content) { levels = [(content.pieces[...], content.level)] }

    mutating func next(_ reader: RepositoryReader) throws(StoreError) -> Piece? {
      while true {
        leaveEmpty()
        guard let last = levels.indices.last, let piece = levels[last].pieces.popFirst() else {
          return nil
        }
        let level = levels[last].level
        guard level > 0, case .blob(let digest, let length) = piece else { return piece }
        let list = try reader.pieces(ofList: digest, level: level - 1, length: length)
        levels.append((list[...], level - 1))
      }
    }

    /// Skips pieces and lists that are next in both files. Identical lists are not read.
    static func skipEqual(_ one: inout PieceCursor, _ other: inout PieceCursor) {
      while true {
        one.leaveEmpty()
        other.leaveEmpty()
        guard let first = one.levels.last, let second = other.levels.last,
          first.level == second.level, let piece = first.pieces.first,
          piece == second.pieces.first
        else { return }
        one.levels[one.levels.count - 1].pieces.removeFirst()
        other.levels[other.levels.count - 1].pieces.removeFirst()
      }
    }

    /// Leaves lists that have no remaining pieces.
    private mutating func leaveEmpty() {
      while levels.last?.pieces.isEmpty == true { levels.removeLast() }
    }
  }
}
