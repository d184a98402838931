import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

struct UnitTests {
  @Test func namesAreBytes() {
    let (composed, decomposed) = (ByteString("é"), ByteString("e\u{301}"))
    let odd = ByteString([0xff, 0x0a])
    for name in [composed, decomposed, odd] {
      let log = DatabaseUnit(name).name(of: .log)
      #expect(Array(log.bytes) == Array(name.bytes) + Array("-wal".utf8))
      let owner = DatabaseMember.owner(of: log)
      #expect(owner?.database == name && owner?.member == .log)
    }
    #expect(composed != decomposed)
  }

  @Test func aUnitCapturesItsOwnFiles() {
    let unit = DatabaseUnit("x.db")
    let captured = DatabaseUnit.captured.map(unit.name(of:))
    #expect(captured == ["x.db", "x.db-wal", "x.db-journal"])
    #expect(DatabaseMember.owner(of: "x.db-shm")?.member == .sharedMemory)
    #expect(DatabaseMember.owner(of: "x.db-shm")?.database == "x.db")
    #expect(DatabaseMember.owner(of: "x.db") == nil)
    #expect(DatabaseMember.owner(of: "-wal") == nil)
  }

  /// A file named like a journal does not make the file beside it a database, unless it is a
  /// journal of SQLite.
  @Test func aJournalIsRecognizedByItsHeader() throws {
    let temporary = try TemporaryDirectory("journal")
    let unit = DatabaseUnit("f")
    var found = unit.hasJournal(in: temporary.directory)
    #expect(!found)
    let zeros = [UInt8](repeating: 0, count: 28)
    let begun = zeros[..<16] + [0, 0, 0, 9, 0, 0, 2, 0, 0, 0, 16, 0]
    let oddPages = zeros[..<16] + [0, 0, 0, 9, 0, 0, 2, 0, 0, 0, 16, 1]
    let heads: [([UInt8], isJournal: Bool, isLive: Bool)] = [
      (journal(100), true, true), (Array(journal(100).prefix(27)), false, false),
      (zeros, true, false), (Array(zeros.dropLast()), false, false), (Array(begun), true, false),
      (Array(oddPages), false, false), ([], true, false), (content(100, 5), false, false),
    ]
    for size in [0, 100, 1024] {
      try temporary.write(content(size, 1), at: "f")
      for (head, isJournal, isLive) in heads {
        try temporary.write(head, at: "f-journal")
        found = unit.hasJournal(in: temporary.directory)
        #expect(found == (isLive || (isJournal && size == 1024)))
        found = unit.hasLiveJournal(in: temporary.directory)
        #expect(found == isLive)
      }
    }
    try temporary.write("log", at: "f-wal")
    found = unit.hasCompanions(in: temporary.directory)
    #expect(found)
  }

  @Test func onlyTheWholeMagicCounts() throws {
    let temporary = try TemporaryDirectory("magic")
    for (bytes, expected) in [
      ("SQLite format 3\0", true), ("SQLite format 3\0more", true), ("SQLite format 3", false),
      ("SQLite format 4\0", false), ("", false),
    ] {
      try temporary.write(bytes, at: "f")
      #expect(try DatabaseUnit.hasMagic(temporary.directory.file("f")) == expected)
    }
  }

  @Test func onlyFilesThatConsistOfPagesMayBeDatabases() {
    for size: UInt64 in [512, 1024, 65_536, 1 << 40] {
      #expect(DatabaseUnit.mayBeDatabase(size: size))
    }
    for size: UInt64 in [0, 1, 511, 513, 4095, .max] {
      #expect(!DatabaseUnit.mayBeDatabase(size: size))
    }
  }
}
