import ArchiveStore
import Codecs
import Interchange
import SystemIO
import TestSupport
import Testing

/// Small contents of a source are stored together.
struct SmallContentTests {
  /// Files around the limits of a batch keep their contents, in any order of sizes.
  @Test func everyFileKeepsItsContent() throws {
    let fixture = try Fixture()
    var random = Seeded(31)
    var items: [ListedSource.Item] = []
    for number in 0..<600 {
      let size = [0, 1, 100, 4096, 131_072, 131_073, 70_000][number % 7]
      items.append(
        .file("d\(number % 9)/f\(number)", random.bytes(number % 50 == 0 ? size : size % 5000)))
      if number % 90 == 0 {
        items.append(.entry("d\(number % 9)/link\(number)", .symlink(target: "x")))
      }
    }
    items.append(.link("again", to: "d3/f3"))
    let report = try fixture.run(items)
    #expect(report.isComplete && report.snapshot.snapshot.totals.files == 601)
    for item in items {
      guard case .file = item.entry.kind, case .bytes(let bytes)? = item.parts.first else {
        continue
      }
      #expect(
        try fixture.bytes(ByteString("folders/x").appending(item.entry.joinedPath), report) == bytes
      )
    }
    #expect(
      try fixture.bytes("folders/x/again", report) == fixture.bytes("folders/x/d3/f3", report))
  }

  /// If a source provides more bytes than it claims, or holes, the provided data counts.
  @Test func theBytesCountAndNotTheClaimedSize() throws {
    let fixture = try Fixture()
    var random = Seeded(32)
    let long = random.bytes(400_000)
    var more = ListedSource.Item.file("more", long)
    more.entry.kind = .file(size: 10)
    var less = ListedSource.Item.file("less", "12345")
    less.entry.kind = .file(size: 1000)
    var sparse = ListedSource.Item.file("sparse", "begin")
    sparse.parts += [.hole(5000), .bytes([7])]
    sparse.entry.kind = .file(size: 5006)
    let report = try fixture.run([.file("a", "a"), more, less, sparse, .file("z", "z")])
    #expect(try fixture.bytes("folders/x/more", report) == long)
    #expect(try fixture.text("folders/x/less", report) == "12345")
    #expect(
      try fixture.bytes("folders/x/sparse", report)
        == Array("begin".utf8) + [UInt8](repeating: 0, count: 5000) + [7])
    #expect(try fixture.text("folders/x/a", report) + fixture.text("folders/x/z", report) == "az")
  }

  /// If a path occurs twice, the last entry counts, even if the first one is large.
  @Test(arguments: [(10, 300_000), (300_000, 10), (10, 20)])
  func theLastEntryOfAPathCounts(first: Int, second: Int) throws {
    let fixture = try Fixture()
    let report = try fixture.run([
      .file("f", [UInt8](repeating: 1, count: first)), .file("g", "g"),
      .file("f", [UInt8](repeating: 2, count: second)),
    ])
    let bytes = try fixture.bytes("folders/x/f", report)
    #expect(bytes == [UInt8](repeating: 2, count: second))
  }

  /// A file that is damaged or has an invalid path does not affect its neighbors.
  @Test func aDamagedFileIsSkippedAlone() throws {
    let fixture = try Fixture()
    var damaged = ListedSource.Item.file("damaged", "begin")
    damaged.parts.append(.failure(.damagedEntry))
    let report = try fixture.run([
      .file("before", "1"), damaged, .file("middle", "2"),
      .file("invalid/../f", "x"), .file("after", "3"),
    ])
    #expect(report.skipped.entryCount == 2)
    for (path, text) in [("before", "1"), ("middle", "2"), ("after", "3")] {
      #expect(try fixture.text(ByteString("folders/x/\(path)"), report) == text)
    }
  }

  /// If a source ends with damage, all data before it is stored.
  @Test func entriesBeforeTheDamageAreStored() throws {
    let fixture = try Fixture()
    var source = ListedSource([.file("a", "1"), .file("b", "2")])
    source.end = .damaged
    let report = try fixture.run(&source)
    #expect(report.damage != nil && report.snapshot.snapshot.totals.files == 2)
    #expect(try fixture.text("folders/x/b", report) == "2")
  }
}
