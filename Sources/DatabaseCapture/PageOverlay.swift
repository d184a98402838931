/// A page in a log.
package struct LogPage: Hashable, Sendable {
  /// The page's number in the database, from 1.
  package let number: UInt32
  /// The offset of its bytes in the log.
  package let offset: UInt64
}

/// The pages of a log that replace pages of a database, and the resulting number of pages.
package struct PageOverlay: Sendable {
  /// The page size in bytes: a power of two from 512 to 65536.
  package let pageSize: Int
  /// The resulting number of pages in the database.
  package let pageCount: UInt32
  /// The pages ordered by number, each once, none beyond `pageCount`. All other pages are the
  /// database's own, or zeros after its end.
  package let pages: [LogPage]
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

/// Collects the pages of a log. The last page of each number is effective.
struct PageList {
  /// The number of pages beyond the distinct ones that may accumulate before replaced pages are
  /// dropped.
  private let slack: Int
  private var pages: [LogPage] = []
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
    pages.append(LogPage(number: number, offset: offset))
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
