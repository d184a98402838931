internal import ArchiveStore
internal import SystemIO

/// The content of a large file during a backup. Pieces that an interrupted run stored are used in
/// place of the bytes that it read.
///
/// Ranges and holes are passed in the order of the file. A piece that is not stored is read, like
/// all data without a record, so a record only saves or costs time.
struct ResumedContent {
  private let content: FileWriter
  private var pieces: ResumableChunks?
  private let counters: ProgressCounters
  /// The end of the last range or hole passed.
  private var offered: UInt64 = 0
  /// The end of the content so far; greater than `offered` if a stored piece ends there.
  private var reached: UInt64 = 0

  init(_ content: FileWriter, pieces: ResumableChunks?, counters: ProgressCounters) {
    (self.content, self.pieces, self.counters) = (content, pieces, counters)
  }

  /// Appends a range of the file; `read` appends the bytes of a part of it. Returns the number of
  /// bytes in the range, which is less than its length only if the file ends in it.
  mutating func take(
    _ range: Range<UInt64>, _ read: (Range<UInt64>, inout [UInt8]) throws -> Void
  ) throws -> Int {
    offered = range.upperBound
    while reached < offered {
      let end = min(offered, try takeStored())
      if end <= reached { continue }
      let part = reached..<end
      let count = try content.append(reading: { try read(part, &$0) })
      counters.didHandle(bytes: UInt64(count))
      reached += UInt64(count)
      if count < part.count { return Int(reached - range.lowerBound) }
    }
    return range.count
  }

  /// Appends a hole.
  mutating func takeHole(_ length: UInt64) throws {
    offered += length
    guard offered > reached else { return }
    try content.appendHole(length: offered - reached)
    counters.didHandle(bytes: offered - reached)
    reached = offered
  }

  /// Appends the piece that begins here if it is stored; returns the offset up to which the file
  /// must be read.
  private mutating func takeStored() throws -> UInt64 {
    guard let piece = pieces?.first(from: reached) else { return .max }
    if piece.offset > reached { return piece.offset }
    if try content.append(stored: piece.digest, length: piece.length) {
      counters.didResume(bytes: UInt64(piece.length))
      reached = piece.end
      return reached
    }
    return pieces?.first(from: reached + 1)?.offset ?? .max
  }
}
