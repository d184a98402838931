internal import Codecs
internal import SystemIO

/// Cuts a file's bytes, as they come, into the pieces that become blobs.
///
/// The rule holds for each run of data between holes (docs/repository-format.md, "Cutting"): up to
/// 512 KiB it is one piece; in a SQLite database pieces end at multiples of 16 KiB of the file (of
/// 64 KiB from 8 GiB on); all else is cut where its content says so. Equal content is cut equally,
/// in whatever portions it comes.
///
/// The bytes lie in one window, those of pieces that were given, too, until they are let go of: what
/// becomes of a piece needs no copy of it.
struct ContentCutter {
  /// A piece of the file: its first byte's place in the file, and where its bytes lie in the window,
  /// until more bytes come.
  struct Cut {
    let offset: UInt64
    private(set) var place: Range<Int>

    /// Says that the window's bytes have moved to the front by `distance`.
    mutating func move(by distance: Int) {
      place = (place.lowerBound - distance)..<(place.upperBound - distance)
    }
  }

  static let wholeLimit = 512 << 10
  static let pageRun: UInt64 = 16 << 10
  static let largePageRun: UInt64 = 64 << 10
  static let largeDatabase: UInt64 = 8 << 30

  private let chunker = GearChunker()
  private var progress = GearChunker.Progress()
  /// Pieces that were given, and behind them what is not cut yet.
  private(set) var window: [UInt8] = []
  /// Where in the window the next piece begins.
  private(set) var start = 0
  private var isLongRun = false
  private var isDatabase = false
  private var page = pageRun
  /// The place in the file of the next piece's first byte.
  private var offset: UInt64 = 0

  /// Begins at byte 0 of a file of about `size` bytes.
  init(isDatabase: Bool, size: UInt64?) { restart(isDatabase: isDatabase, size: size) }

  /// Begins another file in the memory of the one before, of which nothing is left.
  mutating func restart(isDatabase: Bool, size: UInt64?) {
    window.removeAll(keepingCapacity: true)
    (start, offset, isLongRun) = (0, 0, false)
    progress = GearChunker.Progress()
    self.isDatabase = isDatabase
    page = Self.page(ofSize: size)
  }

  private static func page(ofSize size: UInt64?) -> UInt64 {
    (size ?? 0) >= largeDatabase ? largePageRun : pageRun
  }

  /// Where the pieces lie of a run at a file's begin that is whole in memory: what `append` and
  /// `next` give, without a copy.
  static func pieces(of bytes: Span<UInt8>, isDatabase: Bool, size: UInt64?) -> [Range<Int>] {
    let isLong = bytes.count > wholeLimit
    let isDatabase = isLong && (isDatabase || DatabaseHead.begins(bytes))
    let (chunker, page) = (GearChunker(), Int(page(ofSize: size)))
    var pieces: [Range<Int>] = []
    var start = 0
    while start < bytes.count {
      let rest = bytes.extracting(start..<bytes.count)
      let length = isDatabase ? page : isLong ? chunker.cut(in: rest, isLast: true) : nil
      let end = start + min(length ?? rest.count, rest.count)
      pieces.append(start..<end)
      start = end
    }
    return pieces
  }

  /// The place in the file behind the last byte that came.
  var end: UInt64 { offset + UInt64(window.count - start) }

  /// Takes the next bytes, which `read` appends to the window.
  mutating func append<Failure: Error>(
    _ read: (inout [UInt8]) throws(Failure) -> Void
  ) throws(Failure) {
    try read(&window)
    if window.count - start > Self.wholeLimit && !isLongRun { beginLongRun() }
  }

  /// Takes the next bytes.
  mutating func append(_ bytes: Span<UInt8>) { append { $0.append(bytes) } }

  /// The next piece, nothing while its end cannot be known; with `isLast` the run ends here, and
  /// nothing means that all is given.
  mutating func next(isLast: Bool = false) -> Cut? {
    if isLast { noteMagic() }
    let rest = window.count - start
    guard rest > 0, let length = isLongRun ? nextCut(rest, isLast) : isLast ? rest : nil else {
      if isLast { isLongRun = false }
      return nil
    }
    let cut = Cut(offset: offset, place: start..<(start + length))
    start += length
    offset += UInt64(length)
    progress = GearChunker.Progress()
    return cut
  }

  /// Goes on behind a hole, or behind a piece that was cut earlier; all before it is given.
  mutating func skip(_ piece: Piece) {
    offset += piece.length
    switch piece {
    case .hole: isLongRun = false
    // What follows in the run is cut as if the piece had come.
    case .blob: isLongRun = true
    }
  }

  /// Lets go of the window's first bytes, which are of pieces that were given.
  mutating func drop(first count: Int) {
    window.removeSubrange(..<count)
    start -= count
  }

  /// Says that the run does not end with what has come.
  mutating func goOnWithRun() { if window.count > start && !isLongRun { beginLongRun() } }

  private mutating func beginLongRun() {
    isLongRun = true
    noteMagic()
  }

  private mutating func noteMagic() {
    guard offset == 0, !isDatabase else { return }
    isDatabase = DatabaseHead.begins(window.span.extracting(start..<window.count))
  }

  /// The length of a long run's next piece.
  private mutating func nextCut(_ count: Int, _ isLast: Bool) -> Int? {
    guard isDatabase else {
      var progress = progress
      defer { self.progress = progress }
      let rest = window.span.extracting(start..<window.count)
      return chunker.cut(in: rest, isLast: isLast, after: &progress)
    }
    let length = Int(page - offset % page)
    return length <= count ? length : isLast ? count : nil
  }
}
