/// A page in a log.
public struct LogPage: Hashable, Sendable {
  /// The page's number in the database, from 1 on.
  public let number: UInt32
  /// Where its bytes begin in the log.
  public let offset: UInt64
}

/// The pages of a log that stand in the place of a database's, and how many the database then has.
public struct PageOverlay: Sendable {
  /// Bytes of a page: a power of two from 512 to 65536.
  public let pageSize: Int
  /// How many pages the database has then.
  public let pageCount: UInt32
  /// The pages by their numbers, each once, none beyond `pageCount`. All others are the database's
  /// own, or zeros where it ends before.
  public let pages: [LogPage]
  /// How many the log has with those that later ones replace.
  let records: UInt64

  /// Bytes of the database then.
  public var size: UInt64 { UInt64(pageCount) * UInt64(pageSize) }

  /// Checks that the database could have grown to its size by this log. What is missing of it in both
  /// files is at most the page that SQLite locks and never writes; its checkpoint has the same rule
  /// (wal.c, walCheckpoint).
  ///
  /// - Throws: `LogRefusal.tooLarge` for a database of so many bytes that cannot have.
  public func requireFit(over size: UInt64) throws(LogRefusal) {
    let (room, isHuge) = size.addingReportingOverflow(65_536 + records * UInt64(pageSize))
    guard isHuge || self.size <= room else { throw .tooLarge(self.size) }
  }
}

/// Gathers the pages of a log: the last one of a number holds.
struct PageList {
  /// As many more than are distinct may gather before those that were replaced are dropped.
  private let slack: Int
  private var pages: [LogPage] = []
  private var distinct = 0
  /// How many of them count.
  private var committed = 0
  private var appended: UInt64 = 0
  /// How many have come that count.
  private(set) var records: UInt64 = 0

  init(slack: Int = 1 << 16) { self.slack = slack }

  /// How many pages are held.
  var count: Int { pages.count }

  /// Adds a page, which counts from the next commit on.
  mutating func append(_ number: UInt32, at offset: UInt64) {
    pages.append(LogPage(number: number, offset: offset))
    appended += 1
  }

  /// Has all that came until now count.
  mutating func commit() {
    (committed, records) = (pages.count, appended)
    if pages.count - distinct > max(slack, distinct) { dropReplaced() }
  }

  /// The pages that count, for a database of so many.
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
