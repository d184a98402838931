internal import Codecs
internal import SystemIO

/// Cuts the bytes of a file, as they arrive, into the pieces that become blobs.
///
/// The rules apply to each run of data between holes (docs/repository-format.md, "Cutting"): a run
/// of up to 512 KiB is one piece; in a SQLite database pieces end at multiples of 16 KiB of the
/// file (64 KiB from 8 GiB on); all other content is cut by a content-defined chunker. The result
/// does not depend on the sizes of the portions that arrive.
///
/// The bytes of uncut data and of returned pieces share one window until `drop` discards them, so
/// consumers of a piece need no copy.
struct ContentCutter {
  /// A piece of the file: the file offset of its first byte, and its range in the window, which is
  /// valid until the window changes.
  struct Cut {
    let offset: UInt64
    private(set) var range: Range<Int>

    /// Adjusts the range after the window's bytes moved to the front by `distance`.
    mutating func move(by distance: Int) {
      range = (range.lowerBound - distance)..<(range.upperBound - distance)
    }
  }

  static let wholeLimit = 512 << 10
  static let pageRun: UInt64 = 16 << 10
  static let largePageRun: UInt64 = 64 << 10
  static let largeDatabase: UInt64 = 8 << 30

  private let chunker = GearChunker()
  private var progress = GearChunker.Progress()
  /// The bytes of returned pieces, followed by the uncut bytes.
  private(set) var window: [UInt8] = []
  /// The position in the window at which the next piece begins.
  private(set) var start = 0
  private var isLongRun = false
  private var isDatabase = false
  private var page = pageRun
  /// The file offset of the next piece.
  private var offset: UInt64 = 0

  /// Starts at offset 0 of a file of about `size` bytes.
  init(isDatabase: Bool, size: UInt64?) { restart(isDatabase: isDatabase, size: size) }

  /// Starts another file, reusing the memory of the finished one.
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

  /// Returns the pieces of a run that begins at offset 0 and is completely in memory. The result
  /// equals that of `append` and `next`, without a copy.
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

  /// The file offset after the last byte received.
  var end: UInt64 { offset + UInt64(window.count - start) }

  /// Receives the next bytes, which `read` appends to the window.
  mutating func append<Failure: Error>(
    _ read: (inout [UInt8]) throws(Failure) -> Void
  ) throws(Failure) {
    try read(&window)
    if window.count - start > Self.wholeLimit && !isLongRun { beginLongRun() }
  }

  /// Receives the next bytes.
  mutating func append(_ bytes: Span<UInt8>) { append { $0.append(bytes) } }

  /// Returns the next piece, or nil if its end is not known yet. With `isLast` the run ends here,
  /// and nil means that all pieces were returned.
  mutating func next(isLast: Bool = false) -> Cut? {
    if isLast { recordMagic() }
    let rest = window.count - start
    guard rest > 0, let length = isLongRun ? nextCut(rest, isLast) : isLast ? rest : nil else {
      if isLast { isLongRun = false }
      return nil
    }
    let cut = Cut(offset: offset, range: start..<(start + length))
    start += length
    offset += UInt64(length)
    progress = GearChunker.Progress()
    return cut
  }

  /// Continues after a hole, or after a piece that was cut earlier. All bytes before it must have
  /// been returned.
  mutating func skip(_ piece: Piece) {
    offset += piece.length
    switch piece {
    case .hole: isLongRun = false
    // The rest of the run is cut as if the piece had arrived as bytes.
    case .blob: isLongRun = true
    }
  }

  /// Discards the first `count` bytes of the window, which belong to returned pieces.
  mutating func drop(first count: Int) {
    window.removeSubrange(..<count)
    start -= count
  }

  /// Records that the run continues beyond the bytes received so far.
  mutating func continueRun() { if window.count > start && !isLongRun { beginLongRun() } }

  private mutating func beginLongRun() {
    isLongRun = true
    recordMagic()
  }

  private mutating func recordMagic() {
    guard offset == 0, !isDatabase else { return }
    isDatabase = DatabaseHead.begins(window.span.extracting(start..<window.count))
  }

  /// Returns the length of the next piece of a long run, or nil if more bytes are needed.
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
