/// Merges the pages of a log into a database: receives the database's bytes in order and passes
/// them on, with the log's pages in place of the originals.
package struct PageMerge {
  /// Replaces the content of the buffer by `count` bytes of the log from an offset.
  package typealias Log = (_ offset: UInt64, _ count: Int, _ buffer: inout [UInt8]) throws -> Void

  private let overlay: PageOverlay
  /// The index of the next page of the log.
  private var index = 0
  /// The number of bytes passed on, and the number of database bytes received.
  private var given: UInt64 = 0
  private var taken: UInt64 = 0
  private var page: [UInt8] = []

  /// Starts with the pages of a log.
  package init(_ overlay: PageOverlay) { self.overlay = overlay }

  /// Receives the next bytes of the database.
  ///
  /// - Throws: any error of `log` and `sink`.
  package mutating func take(
    _ bytes: Span<UInt8>, _ log: Log, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    let end = taken + UInt64(bytes.count)
    while given < min(end, overlay.size) {
      if given == nextLogged {
        try emitLogged(log, sink)
        continue
      }
      let stop = min(end, nextLogged)
      try sink(bytes.extracting(Int(given - taken)..<Int(stop - taken)))
      given = stop
    }
    taken = end
  }

  /// Passes on the database's content after the end of the received bytes.
  ///
  /// - Throws: any error of `log` and `sink`.
  package mutating func finish(_ log: Log, to sink: (Span<UInt8>) throws -> Void) throws {
    let zeros = [UInt8](repeating: 0, count: 65_536)
    while given < overlay.size {
      if given == nextLogged {
        try emitLogged(log, sink)
        continue
      }
      let count = min(nextLogged - given, UInt64(zeros.count))
      try sink(zeros.span.extracting(0..<Int(count)))
      given += count
    }
  }

  /// The offset of the log's next page in the database; the database's end if there is none.
  private var nextLogged: UInt64 {
    guard index < overlay.pages.count else { return overlay.size }
    return UInt64(overlay.pages[index].number - 1) * UInt64(overlay.pageSize)
  }

  private mutating func emitLogged(_ log: Log, _ sink: (Span<UInt8>) throws -> Void) throws {
    try log(overlay.pages[index].offset, overlay.pageSize, &page)
    try sink(page.span)
    given += UInt64(page.count)
    index += 1
  }
}
