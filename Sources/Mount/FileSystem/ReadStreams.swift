/// Large files that are being read in order.
struct ReadStreams {
  private struct Stream {
    let number: UInt64
    /// The end of the range that was read or is being put.
    var end: UInt64
    /// The size of the next range that is put.
    var window: UInt64
  }

  /// The last ones, the most recent at the end.
  private var streams: [Stream] = []

  private static let limit = 16
  /// The size of the first range in bytes, and that of all after the fifth.
  private static let firstWindow: UInt64 = 256 << 10
  private static let lastWindow: UInt64 = 4 << 20
  private static let page: UInt64 = 4096
  /// The distance from the end at which a read continues a stream: requests of one program arrive
  /// in any order, and it may be faster than the puts.
  private static let slack: UInt64 = 512 << 10

  /// Notes a read and returns the range of whole pages to put, or up to the end of the file; nil if
  /// it does not continue an earlier read, or if enough is being put.
  mutating func next(
    _ number: UInt64, from offset: UInt64, count: UInt64, size: UInt64
  ) -> Range<UInt64>? {
    let readEnd = min(size, offset + count)
    guard let index = streams.firstIndex(where: { $0.number == number }) else {
      if streams.count >= Self.limit { streams.removeFirst() }
      streams.append(Stream(number: number, end: readEnd, window: Self.firstWindow))
      return nil
    }
    var stream = streams.remove(at: index)
    defer { streams.append(stream) }
    let isNear = offset <= stream.end + Self.slack && offset + Self.slack >= stream.end
    guard isNear else {
      (stream.end, stream.window) = (readEnd, Self.firstWindow)
      return nil
    }
    // The first request of a program may arrive after its second.
    guard offset > 0 else { return nil }
    let start = max(stream.end, readEnd)
    let end = min(size, start + stream.window)
    guard start % Self.page == 0, start < end else { return nil }
    stream.end = end
    stream.window = min(Self.lastWindow, stream.window * 2)
    return start..<end
  }
}
