package import Codecs

/// The content of a file: blobs and holes in order, or lists of them.
package struct Content: Hashable, Sendable {
  /// The size in bytes, including holes.
  package let size: UInt64
  /// The list level. 0: the pieces are the file's own. 1: each piece is a list blob for an aligned
  /// 16 MiB of the file. 2: each piece is a list blob of such lists for an aligned 16 GiB.
  package let level: UInt8
  /// The pieces, with a total length of `size` bytes.
  package let pieces: [Piece]

  /// Creates content from its parts, which are checked when an entry is encoded.
  package init(size: UInt64, level: UInt8, pieces: [Piece]) {
    self.size = size
    self.level = level
    self.pieces = pieces
  }

  /// The content of an empty file.
  package static let empty = Content(size: 0, level: 0, pieces: [])

  /// The maximum number of pieces in the entry itself.
  static let inlinePieces = 256
  /// The number of file bytes that a list of level 1 or 2 covers; it has the pieces that begin in
  /// them.
  static let windows: [UInt64] = [16 << 20, 16 << 30]
  static let maximumLevel: UInt8 = 2
}

/// A range of a file.
package enum Piece: Hashable, Sendable, BitwiseCopyable {
  /// A blob of data, or in lists of a level above 0 another list, that covers `length` bytes of the
  /// file.
  case blob(Digest, length: UInt64)
  /// A range of zeros that is not stored.
  case hole(length: UInt64)

  /// The length in bytes of the file.
  package var length: UInt64 {
    switch self {
    case .blob(_, let length), .hole(let length): length
    }
  }
}
