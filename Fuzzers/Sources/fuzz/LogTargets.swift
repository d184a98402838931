@testable import DatabaseCapture

extension Target {
  /// The companion files of databases.
  static let logTargets = [Target(name: "log", run: log)]

  /// A write-ahead log or a journal, unchanged and with corrected checksums, merged into a
  /// database. Each page must be reported once, in order and within the log, and the size must
  /// match the log.
  @Sendable private static func log(_ bytes: [UInt8]) {
    let size = UInt64(bytes.count)
    for log in [bytes, LogSums.corrected(bytes)] {
      check(log, WriteAheadLog(size: size))
      check(log, RollbackJournal(size: size))
      check(log, RollbackJournal(size: size, databasePageSize: 512))
    }
  }

  private static func check(_ log: [UInt8], _ parser: some LogParser) {
    var parser = parser
    var rounds = 0
    while let range = parser.next {
      require(range.count < 66 << 10, "a parser requests more than 66 KiB at once")
      require(
        range.upperBound <= UInt64(log.count), "a parser requests bytes beyond the end of the log")
      rounds += 1
      require(rounds < 10_000, "a log is read endlessly")
      let wanted = Int(range.lowerBound)..<Int(range.upperBound)
      guard (try? parser.parse(log.span.extracting(wanted))) != nil else { return }
    }
    guard let overlay = parser.overlay() else { return }
    var last: UInt32 = 0
    for page in overlay.pages {
      require(page.number > last && page.number <= overlay.pageCount, "pages are out of order")
      let end = page.offset + UInt64(overlay.pageSize)
      require(end <= UInt64(log.count), "a page lies outside the log")
      last = page.number
    }
    let database = [UInt8](repeating: 7, count: 1500)
    guard (try? overlay.requireFit(over: UInt64(database.count))) != nil else { return }
    require(merge(database, log, overlay) == overlay.size, "a merged database has the wrong size")
  }

  /// Returns the size of the database after merging the log.
  private static func merge(
    _ database: [UInt8], _ log: [UInt8], _ overlay: PageOverlay
  ) -> UInt64 {
    var size: UInt64 = 0
    var merge = PageOverlay.Merge(overlay)
    let pages: PageOverlay.Merge.Log = { $2 = Array(log[Int($0)..<(Int($0) + $1)]) }
    for part in [0..<700, 700..<1500] {
      try? merge.append(database.span.extracting(part), pages) { size += UInt64($0.count) }
    }
    try? merge.finish(pages) { size += UInt64($0.count) }
    return size
  }
}
