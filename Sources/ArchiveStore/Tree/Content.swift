public import Codecs

/// What a file holds: blobs and holes in order, or lists of them.
public struct Content: Hashable, Sendable {
  /// Bytes in all, holes among them.
  public let size: UInt64
  /// 0: the pieces are the file's own. 1: each is a list blob of pieces, for an aligned 16 MiB of
  /// the file. 2: each is a list blob of such lists, for an aligned 16 GiB.
  public let level: UInt8
  /// The pieces; together they have `size` bytes.
  public let pieces: [Piece]

  /// Makes content of its parts; whether they fit is checked where an entry is written.
  public init(size: UInt64, level: UInt8, pieces: [Piece]) {
    self.size = size
    self.level = level
    self.pieces = pieces
  }

  /// The content of an empty file.
  public static let empty = Content(size: 0, level: 0, pieces: [])

  /// Up to so many pieces stand in the entry itself.
  static let inlinePieces = 256
  /// Of how many bytes of a file a list of level 1 or 2 holds the pieces that begin in them.
  static let windows: [UInt64] = [16 << 20, 16 << 30]
  static let maximumLevel: UInt8 = 2
}

/// A run of a file.
public enum Piece: Hashable, Sendable, BitwiseCopyable {
  /// A blob: of data, or in a list of lists a list, which has `length` bytes of the file.
  case blob(Digest, length: UInt64)
  /// Zeros that take no space.
  case hole(length: UInt64)

  /// Bytes of the file.
  public var length: UInt64 {
    switch self {
    case .blob(_, let length), .hole(let length): length
    }
  }
}
