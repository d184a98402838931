internal import Codecs
internal import SystemIO

/// Cuts a file's bytes, as they come, into the pieces that become blobs.
///
/// The rule holds for each run of data between holes (docs/repository-format.md, "Cutting"): up to
/// 512 KiB it is one piece; in a SQLite database pieces end at multiples of 16 KiB of the file (of
/// 64 KiB from 8 GiB on); all else is cut where its content says so. Equal content is cut equally,
/// in whatever portions it comes. Holds at most 4 MiB and one portion.
struct ContentCutter {
  /// Takes a piece: its place in the file, and its bytes, which last for the call.
  typealias Emit = (_ offset: UInt64, _ bytes: Span<UInt8>) throws(StoreError) -> Void

  static let wholeLimit = 512 << 10
  static let databaseMagic: [UInt8] = Array("SQLite format 3\0".utf8)
  static let pageRun: UInt64 = 16 << 10
  static let largePageRun: UInt64 = 64 << 10
  static let largeDatabase: UInt64 = 8 << 30

  private let chunker = GearChunker()
  private var pending: [UInt8] = []
  private var start = 0
  private var isLongRun = false
  private var isDatabase = false
  private var page = pageRun
  /// The place in the file of the first pending byte.
  private var offset: UInt64 = 0

  /// Begins at byte 0 of a file of about `size` bytes.
  init(isDatabase: Bool, size: UInt64?) { restart(isDatabase: isDatabase, size: size) }

  /// Begins another file in the memory of the one before, of which nothing is left.
  mutating func restart(isDatabase: Bool, size: UInt64?) {
    pending.removeAll(keepingCapacity: true)
    (start, offset, isLongRun) = (0, 0, false)
    self.isDatabase = isDatabase
    page = Self.page(ofSize: size)
  }

  private static func page(ofSize size: UInt64?) -> UInt64 {
    (size ?? 0) >= largeDatabase ? largePageRun : pageRun
  }

  /// Cuts a run at a file's begin that is whole in memory: as `append` and `finish` do, without a
  /// copy. Gives where the pieces lie.
  static func cut(
    _ bytes: Span<UInt8>, isDatabase: Bool, size: UInt64?,
    emit: (Range<Int>) throws(StoreError) -> Void
  ) throws(StoreError) {
    let isLong = bytes.count > wholeLimit
    let isDatabase =
      isLong
      && (isDatabase
        || bytes.extracting(first: databaseMagic.count).hasSameBytes(as: databaseMagic.span))
    let (chunker, page) = (GearChunker(), Int(page(ofSize: size)))
    var start = 0
    while start < bytes.count {
      let rest = bytes.extracting(start..<bytes.count)
      let length = isDatabase ? page : isLong ? chunker.cut(in: rest, isLast: true) : nil
      let end = start + min(length ?? rest.count, rest.count)
      try emit(start..<end)
      start = end
    }
  }

  /// The place in the file behind the last byte that came.
  var end: UInt64 { offset + UInt64(pending.count - start) }

  /// Takes the next bytes.
  mutating func append(_ bytes: Span<UInt8>, emit: Emit) throws(StoreError) {
    pending.append(bytes)
    if pending.count - start > Self.wholeLimit && !isLongRun { beginLongRun() }
    if isLongRun { try cut(isLast: false, emit) }
    compact()
  }

  /// Takes a hole: the run ends.
  mutating func appendHole(length: UInt64, emit: Emit) throws(StoreError) {
    try finish(emit: emit)
    offset += length
  }

  /// Gives what is left of the run.
  mutating func finish(emit: Emit) throws(StoreError) {
    noteMagic()
    if isLongRun { try cut(isLast: true, emit) }
    if start < pending.count { try give(pending.count - start, emit) }
    pending.removeAll(keepingCapacity: true)
    (start, isLongRun) = (0, false)
  }

  private mutating func beginLongRun() {
    isLongRun = true
    noteMagic()
  }

  private mutating func noteMagic() {
    if offset == 0 && pending.starts(with: Self.databaseMagic) { isDatabase = true }
  }

  private mutating func cut(isLast: Bool, _ emit: Emit) throws(StoreError) {
    while start < pending.count, let length = nextCut(isLast: isLast) { try give(length, emit) }
  }

  /// The length of the next piece, nothing while its end cannot be known.
  private func nextCut(isLast: Bool) -> Int? {
    let count = pending.count - start
    guard isDatabase else {
      guard isLast || count >= GearChunker.maximum else { return nil }
      return chunker.cut(in: pending.span.extracting(start..<pending.count), isLast: isLast)
    }
    let length = Int(page - offset % page)
    return length <= count ? length : nil
  }

  private mutating func give(_ length: Int, _ emit: Emit) throws(StoreError) {
    try emit(offset, pending.span.extracting(start..<(start + length)))
    start += length
    offset += UInt64(length)
  }

  /// Moves what is left to the front once the larger part of the buffer is done with.
  private mutating func compact() {
    guard start > pending.count / 2 else { return }
    pending.removeSubrange(..<start)
    start = 0
  }
}
