/// Directories whose small files are being read in order.
struct DirectoryStreams {
  private struct Stream {
    let directory: UInt64
    /// The ordinal of the last file that was read.
    var last: UInt64
    /// Whether two files were read in order.
    var isInOrder = false
    /// The last part for which the one after it was put.
    var reached: DirectoryPart?
  }

  /// The work to do ahead: a part of a directory unless it was put before, and the part after it.
  struct Work: Equatable {
    let part: DirectoryPart
    let includesPart: Bool
  }

  /// The last ones, the most recent at the end.
  private var streams: [Stream] = []

  private static let limit = 16
  /// The number of parts that a read may be ahead of the last one to count as in order.
  private static let reach: UInt32 = 2

  /// Records a request for the content of a small file. Returns the work that is due.
  mutating func didRead(_ ordinal: UInt64, in part: DirectoryPart) -> Work? {
    guard let index = streams.firstIndex(where: { $0.directory == part.directory }) else {
      if streams.count >= Self.limit { streams.removeFirst() }
      streams.append(Stream(directory: part.directory, last: ordinal))
      return nil
    }
    var stream = streams.remove(at: index)
    let before = DirectoryPart(part.directory, of: stream.last)
    stream.isInOrder = stream.last < ordinal && before.isNear(part, reach: Self.reach)
    stream.last = ordinal
    let work = Self.work(&stream, part)
    streams.append(stream)
    return work
  }

  /// Records a request for the names of an entry's attributes, which programs make after they have
  /// copied a file. Returns the work that is due.
  mutating func didList(_ part: DirectoryPart) -> Work? {
    guard let index = streams.lastIndex(where: { $0.directory == part.directory }) else {
      return nil
    }
    return Self.work(&streams[index], part)
  }

  private static func work(_ stream: inout Stream, _ part: DirectoryPart) -> Work? {
    guard stream.isInOrder else { return nil }
    guard let reached = stream.reached else {
      stream.reached = part
      return Work(part: part, includesPart: true)
    }
    guard reached.isBefore(part) else { return nil }
    stream.reached = part
    return Work(part: part, includesPart: !reached.isNear(part, reach: 1))
  }
}

extension DirectoryPart {
  /// The part that contains the entry with an ordinal.
  init(_ directory: UInt64, of ordinal: UInt64) {
    let position = ordinal & ((1 << EntryPointer.positionBits) - 1)
    self.init(
      directory: directory, page: UInt32(truncatingIfNeeded: ordinal >> EntryPointer.positionBits),
      number: UInt32(position) / UInt32(Self.length))
  }

  fileprivate func isBefore(_ other: DirectoryPart) -> Bool {
    (page, number) < (other.page, other.number)
  }

  /// Whether another part is this one or one of the next `reach` parts. The number of parts of a
  /// page is not known here, so the first ones of the next page count as well.
  fileprivate func isNear(_ other: DirectoryPart, reach: UInt32) -> Bool {
    if page == other.page { return number <= other.number && other.number - number <= reach }
    return other.page == page + 1 && other.number < reach
  }
}
