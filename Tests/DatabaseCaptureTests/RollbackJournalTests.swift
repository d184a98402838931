import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

/// Rollback journals, valid and hostile.
struct RollbackJournalTests {
  private static let database = pages(10, 20, 30, 40)

  /// Returns a journal of two segments. The transaction changed three pages and added one.
  private static func journal(sectorSize: Int = 512) -> [UInt8] {
    var journal = JournalBuilder(pageCount: 3, sectorSize: sectorSize)
    journal.segment(2)
    journal.record(1, page(1))
    journal.record(3, page(3))
    journal.segment(1, nonce: .max)
    journal.record(2, page(2))
    return journal.bytes
  }

  private static let undone = pages(1, 2, 3)

  private func merge(_ journal: [UInt8]) throws -> [UInt8] {
    try merged(Self.database, journal, parse(journal))
  }

  private func parse(_ journal: [UInt8]) throws(LogRefusal) -> PageOverlay? {
    try overlay(journal, RollbackJournal(size: UInt64(journal.count)))
  }

  @Test(arguments: [32, 512, 4096, 65_536]) func aTransactionIsUndone(sectorSize: Int) throws {
    var journal = Self.journal(sectorSize: sectorSize)
    #expect(try merge(journal) == Self.undone)
    // Leftovers of an earlier transaction after the end are ignored.
    journal += page(0xd9, 70_000)
    #expect(try merge(journal) == Self.undone)
  }

  @Test func aTruncatedJournalUndoesItsCompleteRecords() throws {
    let journal = Self.journal()
    let ends = [512 + 520, 512 + 1040, 2560 + 520]
    for count in 0...journal.count {
      let known = ends.filter { $0 <= count }.count
      let expected =
        count < 512
        ? Self.database
        : pages(known > 0 ? 1 : 10, known > 2 ? 2 : 20, known > 1 ? 3 : 30)
      #expect(try merge(Array(journal[..<count])) == expected, "\(count)")
    }
  }

  /// A checksum covers only a few bytes of a page, so the result may differ, but must consist of
  /// whole pages with correct numbers.
  @Test func aChangedByteIsHandled() throws {
    let journal = Self.journal()
    for position in journal.indices {
      for mask: UInt8 in [0x01, 0x80, 0xff] {
        var changed = journal
        changed[position] ^= mask
        let found = try parse(changed)
        #expect(position >= 8 || found == nil, "\(position)")
        guard let found, (try? found.requireFit(over: 2048)) != nil else { continue }
        #expect(try UInt64(merged(Self.database, changed, found).count) == found.size)
      }
    }
  }

  @Test func anIncompleteRecordEndsTheJournal() throws {
    var journal = JournalBuilder(pageCount: 4)
    journal.segment(.max)
    journal.record(2, page(2))
    journal.record(9, page(9), sumIsOff: true)
    journal.record(1, page(1), sumIsOff: true)
    journal.record(3, page(3))
    #expect(try merge(journal.bytes) == pages(10, 2, 30, 40))
  }

  @Test func aSegmentThatWasNeverSyncedIsEmpty() throws {
    var journal = JournalBuilder(pageCount: 4)
    journal.segment(0)
    journal.record(1, page(1))
    #expect(try merge(journal.bytes) == Self.database)
    #expect(try parse(journal.bytes)?.pages.isEmpty == true)
  }

  @Test func theDatabaseMayHaveBeenEmptyOrLarger() throws {
    var journal = JournalBuilder(pageCount: 0)
    journal.segment(0)
    #expect(try merge(journal.bytes).isEmpty)
    journal = JournalBuilder(pageCount: 6)
    journal.segment(1)
    journal.record(6, page(6))
    #expect(try merge(journal.bytes) == Self.database + pages(0, 6))
  }

  @Test func anEndedJournalIsIgnored() throws {
    let journal = Self.journal()
    for count in [1, 8, 28] {
      #expect(try parse(page(0, count) + journal.dropFirst(count)) == nil)
    }
    #expect(try parse([]) == nil)
  }

  @Test(arguments: [false, true]) func aJournalWithASuperJournalIsRefused(hasSign: Bool) throws {
    let name = "/data/\u{e9}t\u{e9}-mj12345678"
    var journal = JournalBuilder(pageCount: 3)
    journal.segment(1)
    journal.record(1, page(1))
    journal.superJournal(Array(name.utf8), hasSign: hasSign)
    #expect(throws: LogRefusal.severalDatabases(superJournal: ByteString(name))) {
      try parse(journal.bytes)
    }
    // If the name is incomplete, no part of the transaction was committed.
    var torn = journal.bytes
    torn[torn.count - 20] ^= 1
    #expect(try merge(torn) == pages(1, 20, 30))
    // A journal that has ended has no effect.
    #expect(try parse(page(0, 28) + journal.bytes.dropFirst(28)) == nil)
  }

  @Test func aJournalWithoutAPageSizeUsesThatOfTheDatabase() throws {
    var journal = Self.journal()
    journal.replaceSubrange(24..<28, with: word(0))
    let parser = RollbackJournal(size: UInt64(journal.count), databasePageSize: 512)
    #expect(try merged(Self.database, journal, overlay(journal, parser)) == Self.undone)
  }

  @Test func impossibleSizesAreHandled() throws {
    var header = JournalBuilder(pageCount: .max, sectorSize: 65_536)
    header.segment(.max)
    for size in [0, 511, 512, UInt64(Int64.max), .max] {
      var parser = RollbackJournal(size: size)
      var rounds = 0
      while let range = parser.next, rounds < 100 {
        var bytes = Array(header.bytes.prefix(range.count))
        bytes += [UInt8](repeating: 0, count: range.count - bytes.count)
        try parser.parse(bytes.span)
        rounds += 1
      }
      #expect(rounds < 100)
    }
  }

  @Test func aDatabasesPageSizeIsInItsHeader() {
    let magic = Array("SQLite format 3\0".utf8)
    for (bytes, size) in [
      (magic + [0x10, 0], 4096), (magic + [0, 1], 65_536), (magic + [2, 0], 512),
      (magic + [2, 1], nil), (magic + [2], nil), ([0] + magic + [2, 0], nil), ([], nil),
    ] as [([UInt8], Int?)] {
      #expect(DatabaseUnit.pageSize(head: bytes.span) == size)
    }
  }
}
