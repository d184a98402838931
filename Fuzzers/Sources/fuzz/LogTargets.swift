@testable import DatabaseCapture

extension Target {
  /// What lies beside databases.
  static let logTargets = [Target(name: "log", run: log)]

  /// A write-ahead log or a journal, also one whose checksums were put right, and a database with what
  /// it holds: pages are told once, in order and from within the log, and the size is what it says.
  @Sendable private static func log(_ bytes: [UInt8]) {
    let size = UInt64(bytes.count)
    for log in [bytes, LogSums.mended(bytes)] {
      check(log, WriteAheadLog(size: size))
      check(log, RollbackJournal(size: size))
      check(log, RollbackJournal(size: size, databasePageSize: 512))
    }
  }

  private static func check(_ log: [UInt8], _ parser: some LogParser) {
    var parser = parser
    var rounds = 0
    while let range = parser.next {
      require(range.count < 66 << 10, "more is wanted at once than a parser may want")
      require(range.upperBound <= UInt64(log.count), "more is wanted than there is")
      rounds += 1
      require(rounds < 10_000, "a log is read for ever")
      let wanted = Int(range.lowerBound)..<Int(range.upperBound)
      guard (try? parser.take(log.span.extracting(wanted))) != nil else { return }
    }
    guard let overlay = parser.overlay() else { return }
    var last: UInt32 = 0
    for page in overlay.pages {
      require(page.number > last && page.number <= overlay.pageCount, "pages are not in order")
      let end = page.offset + UInt64(overlay.pageSize)
      require(end <= UInt64(log.count), "a page is not in the log")
      last = page.number
    }
    let database = [UInt8](repeating: 7, count: 1500)
    guard (try? overlay.requireFit(over: UInt64(database.count))) != nil else { return }
    require(merge(database, log, overlay) == overlay.size, "a database has not the size it should")
  }

  /// How many bytes the database has with the log in it.
  private static func merge(
    _ database: [UInt8], _ log: [UInt8], _ overlay: PageOverlay
  ) -> UInt64 {
    var size: UInt64 = 0
    var merge = PageMerge(overlay)
    let pages: PageMerge.Log = { $2 = Array(log[Int($0)..<(Int($0) + $1)]) }
    for part in [0..<700, 700..<1500] {
      try? merge.take(database.span.extracting(part), pages) { size += UInt64($0.count) }
    }
    try? merge.finish(pages) { size += UInt64($0.count) }
    return size
  }
}
