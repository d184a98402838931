import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

@Suite struct UnitTests {
  @Test func aDatabaseWithALogIsAUnitWhateverItsBytes() {
    let names: [ByteString] = ["a", "a-wal", "b", "b-journal", "c-wal", "d", "d-shm", "e-wal", "é"]
    #expect(DatabaseUnit.pairs(in: names) == [DatabaseUnit("a")])
    #expect(DatabaseUnit.pairs(in: [ByteString]()).isEmpty)
    #expect(DatabaseUnit.pairs(in: ["-wal"] as [ByteString]).isEmpty)
  }

  @Test func namesAreBytes() {
    let composed = ByteString("é")
    let decomposed = ByteString("e\u{301}")
    let log = ByteString(Array(composed.bytes) + Array("-wal".utf8))
    let odd = ByteString([0xff, 0x0a])
    let oddLog = ByteString([0xff, 0x0a] + Array("-wal".utf8))
    let names = [composed, decomposed, log, odd, oddLog].sorted()
    #expect(DatabaseUnit.pairs(in: names) == [DatabaseUnit(composed), DatabaseUnit(odd)])
  }

  @Test func aLogIsNotADatabase() {
    let names: [ByteString] = ["a", "a-wal", "a-wal-wal", "a-wal-wal-wal"]
    // The last two are another pair: nothing shows that they belong to the first.
    #expect(DatabaseUnit.pairs(in: names) == [DatabaseUnit("a"), DatabaseUnit("a-wal-wal")])
  }

  @Test func manyPairsAreFoundAmongManyNames() {
    var generator = Seeded.fresh()
    var names: Set<ByteString> = []
    var expected: Set<ByteString> = []
    for _ in 0..<2000 {
      let name = ByteString(generator.fileName(longest: 6))
      if DatabaseMember.owner(of: name) != nil { continue }
      names.insert(name)
      if Bool.random(using: &generator) {
        names.insert(DatabaseUnit(name).name(of: .log))
        expected.insert(name)
      }
    }
    let found = DatabaseUnit.pairs(in: names.sorted())
    #expect(found.map(\.name) == expected.sorted())
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
