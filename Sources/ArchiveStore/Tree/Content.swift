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
