internal import ArchiveStore
internal import SystemIO

/// A large file's content as a backup takes it: in place of the bytes that an interrupted run has read,
/// the pieces that it stored.
///
/// Ranges and holes come in the order of the file. A piece that is not stored is read, as all that was
/// not noted; so what notes say costs or saves time, whatever they say.
struct ResumedContent {
  private let content: FileWriter
  private var pieces: ResumableChunks?
  private let counters: ProgressCounters
  /// The place behind what was offered last.
  private var offered: UInt64 = 0
  /// The place behind what the content has: beyond `offered`, where a piece ends there.
  private var reached: UInt64 = 0

  init(_ content: FileWriter, _ pieces: ResumableChunks?, _ counters: ProgressCounters) {
    (self.content, self.pieces, self.counters) = (content, pieces, counters)
  }

  /// Takes a range of the file; `read` appends the bytes of a part of it. Gives how many bytes there
  /// were, fewer only where they end.
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

  /// Takes a hole.
  mutating func takeHole(_ length: UInt64) throws {
    offered += length
    guard offered > reached else { return }
    try content.appendHole(length: offered - reached)
    counters.didHandle(bytes: offered - reached)
    reached = offered
  }

  /// Takes the piece that begins here if it is stored; gives up to where is to be read.
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
