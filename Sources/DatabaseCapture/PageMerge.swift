/// Gives a database with the pages of a log in it: takes the database's bytes in order and passes them
/// on, with others in their places.
public struct PageMerge {
  /// Puts so many bytes of the log, from an offset on, in the place of what the buffer holds.
  public typealias Log = (_ offset: UInt64, _ count: Int, _ buffer: inout [UInt8]) throws -> Void

  private let overlay: PageOverlay
  /// The first page of the log that was not given yet.
  private var index = 0
  /// How many bytes were given, and how many of the database have come.
  private var given: UInt64 = 0
  private var taken: UInt64 = 0
  private var page: [UInt8] = []

  /// Begins with the pages of a log.
  public init(_ overlay: PageOverlay) { self.overlay = overlay }

  /// Takes the next bytes of the database. Throws what `log` and `sink` throw.
  public mutating func take(
    _ bytes: Span<UInt8>, _ log: Log, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    let end = taken + UInt64(bytes.count)
    while given < min(end, overlay.size) {
      if given == nextLogged {
        try giveLogged(log, sink)
        continue
      }
      let stop = min(end, nextLogged)
      try sink(bytes.extracting(Int(given - taken)..<Int(stop - taken)))
      given = stop
    }
    taken = end
  }

  /// Gives what the database has behind the end of the bytes that came. Throws as `take`.
  public mutating func finish(_ log: Log, to sink: (Span<UInt8>) throws -> Void) throws {
    let zeros = [UInt8](repeating: 0, count: 65_536)
    while given < overlay.size {
      if given == nextLogged {
        try giveLogged(log, sink)
        continue
      }
      let count = min(nextLogged - given, UInt64(zeros.count))
      try sink(zeros.span.extracting(0..<Int(count)))
      given += count
    }
  }

  /// Where the next page of the log begins in the database; its end when there is none.
  private var nextLogged: UInt64 {
    guard index < overlay.pages.count else { return overlay.size }
    return UInt64(overlay.pages[index].number - 1) * UInt64(overlay.pageSize)
  }

  private mutating func giveLogged(_ log: Log, _ sink: (Span<UInt8>) throws -> Void) throws {
    try log(overlay.pages[index].offset, overlay.pageSize, &page)
    try sink(page.span)
    given += UInt64(page.count)
    index += 1
  }
}
