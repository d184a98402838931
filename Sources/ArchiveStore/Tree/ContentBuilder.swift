internal import Codecs

/// Collects the pieces of a file into its content. More than 256 pieces are stored as lists, window
/// by window, so that a file of any size needs little memory.
struct ContentBuilder {
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
