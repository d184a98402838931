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
}
