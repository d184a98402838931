/// The pages of a log that replace pages of a database, and the resulting number of pages.
package struct PageOverlay: Sendable {
  /// The page size in bytes: a power of two from 512 to 65536.
  package let pageSize: Int
  /// The resulting number of pages in the database.
  package let pageCount: UInt32
  /// The pages ordered by number, each once, none beyond `pageCount`. All other pages are the
  /// database's own, or zeros after its end.
  package let pages: [Page]
  /// The number of pages in the log, including those that later ones replace.
  let records: UInt64

  /// The resulting size of the database in bytes.
  package var size: UInt64 { UInt64(pageCount) * UInt64(pageSize) }

  /// Checks that the database could have grown to its size by this log. Both files together may
  /// lack at most the page that SQLite locks and never writes; SQLite's checkpoint has the same
  /// rule (wal.c, walCheckpoint).
  ///
  /// - Parameter size: the size of the database in bytes.
  /// - Throws: `LogRefusal.tooLarge` if the resulting size is impossible.
  package func requireFit(over size: UInt64) throws(LogRefusal) {
    let (room, isHuge) = size.addingReportingOverflow(65_536 + records * UInt64(pageSize))
    guard isHuge || self.size <= room else { throw .tooLarge(self.size) }
  }
}

extension PageOverlay {
  /// A page in a log.
  package struct Page: Hashable, Sendable {
    /// The page's number in the database, from 1.
    package let number: UInt32
    /// The offset of its bytes in the log.
    package let offset: UInt64
  }

  /// Collects the pages of a log. The last page of each number is effective.
  struct Builder {
    /// The number of pages beyond the distinct ones that may accumulate before replaced pages are
    /// dropped.
    private let slack: Int
    private var pages: [Page] = []
    private var distinct = 0
    /// The number of committed pages.
    private var committed = 0
    private var appended: UInt64 = 0
    /// The number of committed pages received, including replaced ones.
    private(set) var records: UInt64 = 0

    init(slack: Int = 1 << 16) { self.slack = slack }

    /// The number of pages held.
    var count: Int { pages.count }

    /// Adds a page, which becomes effective with the next commit.
    mutating func append(_ number: UInt32, at offset: UInt64) {
      pages.append(Page(number: number, offset: offset))
      appended += 1
    }

    /// Commits all pages received so far.
    mutating func commit() {
      (committed, records) = (pages.count, appended)
      if pages.count - distinct > max(slack, distinct) { dropReplaced() }
    }

    /// Returns the committed pages for a database of `pageCount` pages.
    mutating func finish(pageSize: Int, pageCount: UInt32) -> PageOverlay {
      pages.removeLast(pages.count - committed)
      dropReplaced()
      while let last = pages.last, last.number > pageCount { pages.removeLast() }
      return PageOverlay(
        pageSize: pageSize, pageCount: pageCount, pages: pages, records: records)
    }

    private mutating func dropReplaced() {
      pages.sort { ($0.number, $0.offset) < ($1.number, $1.offset) }
      var kept = 0
      for index in pages.indices {
        if kept > 0, pages[kept - 1].number == pages[index].number { kept -= 1 }
        pages[kept] = pages[index]
        kept += 1
      }
      pages.removeLast(pages.count - kept)
      (distinct, committed) = (kept, kept)
    }
  }
}

extension PageOverlay {
  /// Merges the pages of a log into a database: receives the database's bytes in order and passes
  /// them on, with the log's pages in place of the originals.
  package struct Merge {
    /// Replaces the content of the buffer by `count` bytes of the log from an offset.
    package typealias Log = (_ offset: UInt64, _ count: Int, _ buffer: inout [UInt8]) throws -> Void

    private let overlay: PageOverlay
    /// The index of the next page of the log.
    private var index = 0
    /// The number of bytes passed on, and the number of database bytes received.
    private var given: UInt64 = 0
    private var received: UInt64 = 0
    private var page: [UInt8] = []

    /// Starts with the pages of a log.
    package init(_ overlay: PageOverlay) { self.overlay = overlay }

    /// Receives the next bytes of the database.
    ///
    /// - Throws: any error of `log` and `sink`.
    package mutating func append(
      _ bytes: Span<UInt8>, _ log: Log, to sink: (Span<UInt8>) throws -> Void
    ) throws {
      let end = received + UInt64(bytes.count)
      while given < min(end, overlay.size) {
        if given == nextLogged {
          try emitLogged(log, sink)
          continue
        }
        let stop = min(end, nextLogged)
        try sink(bytes.extracting(Int(given - received)..<Int(stop - received)))
        given = stop
      }
      received = end
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
}
