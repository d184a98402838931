import TestSupport
import Testing

@testable import DatabaseCapture

/// Write-ahead logs, valid and hostile.
struct WriteAheadLogTests {
  private static let database = pages(1, 2, 3)

  /// Returns a log of three transactions, the last of which is incomplete, followed by frames from
  /// an earlier use of the file.
  private static func log(isBigEndian: Bool) -> [UInt8] {
    var log = LogBuilder(isBigEndian: isBigEndian)
    log.frame(2, page(20))
    log.frame(4, page(40), size: 4)
    log.frame(2, page(21))
    log.frame(5, page(50), size: 5)
    log.frame(1, page(10))
    return log.bytes
  }

  /// The database after zero, one and two of the transactions.
  private static let states = [database, pages(1, 20, 3, 40), pages(1, 21, 3, 40, 50)]

  private func merge(_ log: [UInt8], _ database: [UInt8] = Self.database) throws -> [UInt8] {
    try merged(database, log, overlay(log, WriteAheadLog(size: UInt64(log.count))))
  }

  @Test(arguments: [false, true]) func committedTransactionsAreApplied(isBigEndian: Bool) throws {
    let log = Self.log(isBigEndian: isBigEndian)
    #expect(try merge(log) == Self.states[2])
    let found = try #require(try overlay(log, WriteAheadLog(size: UInt64(log.count))))
    #expect(found.pages.map(\.number) == [2, 4, 5] && found.pageSize == 512)
    for piece in [1, 511, 512, 513, 5000] {
      #expect(try merged(Self.database, log, found, piece: piece) == Self.states[2])
    }
  }

  @Test(arguments: [false, true]) func aTruncatedLogKeepsItsCompleteTransactions(isBigEndian: Bool)
    throws
  {
    let log = Self.log(isBigEndian: isBigEndian)
    let ends = [32 + 2 * 536, 32 + 4 * 536]
    for count in 0...log.count {
      let state = Self.states[ends.filter { $0 <= count }.count]
      #expect(try merge(Array(log[..<count])) == state, "\(count)")
    }
  }

  /// A changed byte anywhere invalidates its frame and all later ones.
  @Test(arguments: [false, true]) func aChangedByteEndsTheLog(isBigEndian: Bool) throws {
    let log = Self.log(isBigEndian: isBigEndian)
    for position in log.indices {
      for mask: UInt8 in [0x01, 0x80, 0xff] {
        var changed = log
        changed[position] ^= mask
        let frame = (position - 32) / 536
        let state = position < 32 || frame < 2 ? 0 : frame < 4 ? 1 : 2
        #expect(try merge(changed) == Self.states[state], "\(position) \(mask)")
      }
    }
  }

  @Test func framesOfAnEarlierUseAreIgnored() throws {
    var new = LogBuilder(salt: 6)
    new.frame(3, page(30), size: 3)
    let old = Self.log(isBigEndian: false)
    #expect(try merge(new.bytes + old.dropFirst(new.bytes.count)) == pages(1, 2, 30))
  }

  @Test func theDatabaseMayShrink() throws {
    var log = LogBuilder()
    log.frame(1, page(10))
    log.frame(5, page(50))
    log.frame(2, page(20), size: 2)
    #expect(try merge(log.bytes) == pages(10, 20))
  }

  /// Pages that are in neither file are zeros, and so is the rest of a page that is only partly in
  /// the database.
  @Test func missingPagesAreZeros() throws {
    var log = LogBuilder()
    log.frame(5, page(50), size: 6)
    let database = page(1) + page(2, 100)
    let expected = database + page(0, 412) + pages(0, 0, 50, 0)
    #expect(try merge(log.bytes, database) == expected)
  }

  @Test func theLargestPagesAreApplied() throws {
    var log = LogBuilder(pageSize: 65_536, isBigEndian: true)
    log.frame(2, page(9, 65_536), size: 2)
    #expect(try merge(log.bytes, page(1, 65_536)) == page(1, 65_536) + page(9, 65_536))
    #expect(try overlay(log.bytes, WriteAheadLog(size: UInt64(log.bytes.count)))?.size == 131_072)
  }

  @Test(arguments: [0, 1, 256, 513, 1000, 131_072, .max] as [UInt32])
  func anInvalidPageSizeIsIgnored(size: UInt32) throws {
    let log = LogBuilder(storedPageSize: size).bytes + page(0, 200_000)
    #expect(try overlay(log, WriteAheadLog(size: UInt64(log.count))) == nil)
  }

  @Test func anotherVersionIsRefused() {
    let log = LogBuilder(version: 3_007_001).bytes + page(0)
    #expect(throws: LogRefusal.unknownVersion(3_007_001)) {
      try overlay(log, WriteAheadLog(size: UInt64(log.count)))
    }
  }

  /// A log may claim any size, which the checksum does not prevent.
  @Test func aSizeWithoutPagesIsRefused() throws {
    var log = LogBuilder()
    log.frame(.max, page(1), size: .max)
    let found = try #require(try overlay(log.bytes, WriteAheadLog(size: UInt64(log.bytes.count))))
    #expect(found.size == UInt64(UInt32.max) * 512)
    #expect(throws: LogRefusal.tooLarge(found.size)) { try found.requireFit(over: 1536) }
    try found.requireFit(over: found.size - 65_536 - 512)
    try found.requireFit(over: .max)
  }

  @Test func impossibleSizesAreHandled() throws {
    for size in [0, 31, 32, 33, UInt64(Int64.max), .max] {
      var parser = WriteAheadLog(size: size)
      while let range = parser.next, range.upperBound < 4096 {
        try parser.parse([UInt8](repeating: 0x37, count: range.count).span)
      }
      #expect(parser.overlay() == nil)
    }
  }

  /// A log that writes the same pages repeatedly is not kept in memory as a whole.
  @Test func replacedPagesAreDropped() {
    var list = PageOverlay.Builder(slack: 10)
    for round in 0..<1000 {
      for number in 1...7 { list.append(UInt32(number), at: UInt64(round * 7 + number)) }
      list.commit()
      #expect(list.count < 40)
    }
    list.append(1, at: 0)
    let found = list.finish(pageSize: 512, pageCount: 5)
    #expect(found.pages.map(\.number) == [1, 2, 3, 4, 5])
    #expect(found.pages.map(\.offset) == [6994, 6995, 6996, 6997, 6998])
    #expect(found.records == 7000)
  }
}
