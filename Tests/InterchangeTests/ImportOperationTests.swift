import ArchiveStore
import Codecs
import Interchange
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Sources become snapshots, whatever the order of their entries.
struct ImportOperationTests {
  @Test func aSourceBecomesADirectoryOfTheSnapshot() throws {
    let fixture = try Fixture()
    var root = ListedSource.Item.entry("", .directory)
    root.entry.permissions = 0o750
    root.entry.modified = Timestamp(seconds: 77, nanoseconds: 5)
    var file = ListedSource.Item.file("a/b/file", "text")
    file.entry.owner = 12
    file.entry.attributes = [
      .init(name: "user.large", value: [UInt8](repeating: 7, count: 3000)),
      .init(name: "user.small", value: [1]),
    ]
    let report = try fixture.run([
      file, root, .entry("link", .symlink(target: "/etc/passwd")), .entry("pipe", .fifo),
      .entry("null", .characterDevice(major: 1, minor: 3)), .file("empty", ""),
    ])
    #expect(report.isComplete && report.skipped.isEmpty)
    let entries = try fixture.entries(report)
    #expect(
      entries.keys.sorted() == [
        "folders", "folders/x", "folders/x/a", "folders/x/a/b", "folders/x/a/b/file",
        "folders/x/empty", "folders/x/link", "folders/x/null", "folders/x/pipe",
      ])
    #expect(entries["folders/x"]?.permissions == 0o750)
    #expect(entries["folders/x"]?.modified == Timestamp(seconds: 77, nanoseconds: 5))
    // A directory that the source does not contain belongs to the owner of its content.
    #expect(entries["folders/x/a"]?.owner == 12 && entries["folders/x/a"]?.permissions == 0o755)
    #expect(entries["folders/x/link"]?.node == .symlink(target: "/etc/passwd"))
    #expect(entries["folders/x/a/b/file"]?.attributes.map(\.name) == ["user.large", "user.small"])
    #expect(try fixture.text("folders/x/a/b/file", report) == "text")
    let totals = report.snapshot.snapshot.totals
    #expect(totals.entries == 6 && totals.files == 2 && totals.bytes == 4)
    #expect(report.snapshot.snapshot.reason.rawValue == "import")
  }

  /// A later import of the same data stores only the snapshot.
  @Test func aSecondImportStoresNoContentAgain() throws {
    let fixture = try Fixture()
    var random = Seeded(4)
    let items = (0..<20).map { ListedSource.Item.file("f\($0)", random.bytes(200_000)) }
    let first = try fixture.run(items)
    let second = try fixture.run(items.reversed())
    #expect(first.statistics.newBytes > 4_000_000)
    #expect(second.statistics.newBlobs == 0 && second.statistics.storedBytes == 0)
    #expect(first.snapshot.snapshot.tree == second.snapshot.snapshot.tree)
    #expect(second.snapshot.snapshot.sequence == 2)
    #expect(second.snapshot.snapshot.parent == first.snapshot.id)
  }

  @Test func theLastEntryOfAPathIsValid() throws {
    let fixture = try Fixture()
    let report = try fixture.run([
      .file("a", "old"), .entry("b", .directory), .file("a", "new"), .file("c", "file"),
      .entry("c", .symlink(target: "a")),
    ])
    #expect(report.isComplete)
    #expect(try fixture.text("folders/x/a", report) == "new")
    #expect(try fixture.entries(report)["folders/x/c"]?.node == .symlink(target: "a"))
  }

  /// A path below a link is never stored below the link's target.
  @Test func nothingIsStoredThroughALink() throws {
    let fixture = try Fixture()
    let report = try fixture.run([
      .entry("l", .symlink(target: "/etc")), .file("l/passwd", "root::0:0"),
      .file("f", "file"), .file("f/below", "x"), .file("l-ike", "kept"),
    ])
    #expect(!report.isComplete && report.skipped.entryCount == 2)
    #expect(report.skipped.listed.map(\.path) == ["f/below", "l/passwd"])
    #expect(
      try fixture.entries(report).keys.sorted() == [
        "folders", "folders/x", "folders/x/f", "folders/x/l", "folders/x/l-ike",
      ])
    #expect(report.snapshot.snapshot.unreadable.map(\.path).contains("folders/x/l/passwd"))
  }

  @Test func hardLinksAreOneFile() throws {
    let fixture = try Fixture()
    let report = try fixture.run([
      .file("m", "shared"), .link("z", to: "m"), .link("a", to: "z"), .file("alone", "x"),
      .link("lost", to: "nowhere"), .entry("d", .directory), .link("odd", to: "d"),
    ])
    let entries = try fixture.entries(report)
    for name: ByteString in ["folders/x/a", "folders/x/m", "folders/x/z"] {
      #expect(entries[name]?.linkGroup == "folders/x/a")
      #expect(try fixture.text(name, report) == "shared")
    }
    #expect(entries["folders/x/alone"]?.linkGroup == nil)
    #expect(report.skipped.listed.map(\.path) == ["lost", "odd"])
    #expect(report.snapshot.snapshot.totals.bytes == 7)
  }

  /// As in a backup, the group is named after its smallest path in byte order.
  @Test func aGroupIsNamedByItsSmallestPath() throws {
    let fixture = try Fixture()
    let report = try fixture.run([.file("a/b", "x"), .link("a-b", to: "a/b")])
    let entries = try fixture.entries(report)
    #expect(entries["folders/x/a/b"]?.linkGroup == "folders/x/a-b")
    #expect(entries["folders/x/a-b"]?.linkGroup == "folders/x/a-b")
  }

  /// A link refers to the file that its target named at that point, as when an archive is
  /// extracted.
  @Test func aLinkKeepsTheFileThatWasReplacedLater() throws {
    let fixture = try Fixture()
    let report = try fixture.run([
      .file("f", "old"), .link("l", to: "f"), .file("f", "new"), .link("n", to: "f"),
    ])
    let entries = try fixture.entries(report)
    #expect(try fixture.text("folders/x/l", report) == "old")
    #expect(try fixture.text("folders/x/f", report) == "new")
    #expect(try fixture.text("folders/x/n", report) == "new")
    #expect(entries["folders/x/l"]?.linkGroup == nil)
    #expect(entries["folders/x/n"]?.linkGroup == "folders/x/f")
  }

  @Test func holesAreNotStored() throws {
    let fixture = try Fixture()
    var item = ListedSource.Item.entry("sparse", .file(size: 1 << 40))
    item.parts = [.hole(1 << 39), .bytes(Array("data".utf8)), .hole((1 << 39) - 4)]
    let report = try fixture.run([item])
    let entry = try #require(try fixture.entries(report)["folders/x/sparse"])
    guard case .file(let content) = entry.node else {
      Issue.record("no file")
      return
    }
    #expect(content.size == 1 << 40)
    #expect(content.pieces.count == 3 && report.statistics.newBytes < 10_000)
  }

  /// A damaged file is not stored in part, and the other files are stored.
  @Test func damageCostsOneFile() throws {
    let fixture = try Fixture()
    var damaged = ListedSource.Item.entry("bad", .file(size: 10))
    damaged.parts = [.bytes([1, 2]), .failure(.damagedEntry)]
    let report = try fixture.run([.file("a", "a"), damaged, .file("z", "z")])
    #expect(!report.isComplete && report.damage == nil)
    #expect(report.skipped.listed.map(\.path) == ["bad"])
    #expect(try fixture.text("folders/x/z", report) == "z")
    #expect(try fixture.entries(report)["folders/x/bad"] == nil)
  }

  @Test func entriesBeforeTheDamageAreImported() throws {
    let fixture = try Fixture()
    var cut = ListedSource.Item.entry("cut", .file(size: 10))
    cut.parts = [.bytes([1, 2]), .failure(.damaged)]
    let report = try fixture.run([.file("a", "a"), cut, .file("z", "z")])
    #expect(report.damage != nil && !report.isComplete)
    #expect(try fixture.entries(report).keys.sorted() == ["folders", "folders/x", "folders/x/a"])
    #expect(report.skipped.listed.map(\.path) == ["cut"])
  }

  @Test(arguments: [InterchangeError.Kind.system, .wrongKey])
  func otherErrorsMakeNoSnapshot(kind: InterchangeError.Kind) throws {
    let fixture = try Fixture()
    var source = ListedSource([.file("a", "a")])
    source.end = kind
    let error = #expect(throws: InterchangeError.self) { try fixture.run(&source) }
    #expect(error?.kind == kind)
    #expect(try fixture.repository.snapshots().snapshots.isEmpty)
  }

  @Test func aSourceWithoutEntriesMakesNoSnapshot() throws {
    let fixture = try Fixture()
    let error = #expect(throws: OperationError.self) { try fixture.run([]) }
    #expect(error?.code == .nothingReadable)
    #expect(try fixture.repository.snapshots().snapshots.isEmpty)
  }

  /// The interruption comes before an entry, or while a content is read.
  @Test(arguments: [0, 1]) func anInterruptedImportMakesNoSnapshot(calls: Int) throws {
    let fixture = try Fixture()
    let count = Atomic<Int>(0)
    var source = ListedSource([.file("a", "a"), .file("b", "b")])
    let error = #expect(throws: OperationError.self) {
      try fixture.run(&source) {
        $0.isStopping = { count.add(1, ordering: .relaxed).oldValue >= calls }
      }
    }
    #expect(error?.kind == .interrupted)
    #expect(error?.hint?.hasPrefix("run it again") == true)
    #expect(try fixture.repository.snapshots().snapshots.isEmpty)
  }

  /// Ctrl-C also ends the program that writes to a pipe: the end of its archive, or the damage
  /// there, must not cause the partial data to be stored.
  @Test(arguments: [nil, InterchangeError.Kind.damaged])
  func anInterruptionAtTheEndMakesNoSnapshot(end: InterchangeError.Kind?) throws {
    let fixture = try Fixture()
    let signal = Signal()
    var list = ListedSource([.file("a", "a")])
    list.end = end
    var source = EndingSource(list: list, signal: signal)
    let error = #expect(throws: OperationError.self) {
      try fixture.run(&source) { $0.isStopping = { signal.isGiven.load(ordering: .relaxed) } }
    }
    #expect(error?.kind == .interrupted)
    #expect(try fixture.repository.snapshots().snapshots.isEmpty)
  }

  @Test func theTimeIsThatOfTheSourceUnlessGiven() throws {
    let fixture = try Fixture()
    let made = Timestamp(seconds: 1_500_000_000)
    for (time, expected): (ImportRequest.SnapshotTime, Timestamp?) in [
      (.ofSource, made), (.at(Timestamp(seconds: 9)), Timestamp(seconds: 9)), (.now, nil),
    ] {
      var source = ListedSource([.file("a", "a")])
      source.madeAt = made
      let report = try fixture.run(&source) { $0.time = time }
      let found = report.snapshot.snapshot.time
      #expect(expected.map { $0 == found } ?? (found.since(Host.now()) > -600))
    }
  }

  /// The time of a snapshot is a text with a four-digit year; a file can have any time.
  @Test(arguments: [1_099_511_627_776, -1_099_511_627_776, Int64.max, Int64.min])
  func aTimeThatNoSnapshotCanHaveIsReplaced(seconds: Int64) throws {
    let fixture = try Fixture()
    var source = ListedSource([.file("a", "a")])
    source.madeAt = Timestamp(seconds: seconds)
    let report = try fixture.run(&source)
    let found = report.snapshot.snapshot.time
    #expect(abs(found.since(Host.now())) < 600)
    #expect(try fixture.repository.snapshot(report.snapshot.id).snapshot.time == found)
  }

  /// A record of a skipped entry has a bounded size, however long its name is.
  @Test func recordsOfSkippedEntriesAreBounded() throws {
    var skipped = SkippedEntries()
    skipped.append(
      path: ByteString(String(repeating: "n", count: 100_000)),
      reason: String(repeating: "r", count: 100_000))
    skipped.append(path: "short", reason: "short")
    let first = try #require(skipped.listed.first)
    #expect(first.path.count == SkippedEntry.pathLimit)
    #expect(first.reason.utf8.count == SkippedEntry.reasonLimit)
    #expect(skipped.listed.last == SkippedEntry(path: "short", reason: "short"))
    #expect(skipped.entryCount == 2)
  }

  /// Invalid entries are reported and do not affect others, whatever their reader accepted.
  @Test func invalidEntriesAreNamed() throws {
    let fixture = try Fixture()
    var large = ListedSource.Item.file("large", "x")
    large.entry.attributes = [
      .init(name: "user.huge", value: [UInt8](repeating: 0, count: (8 << 20) + 1))
    ]
    var bad = ListedSource.Item.file("bad", "x")
    bad.entry.attributes = [.init(name: "", value: [])]
    let report = try fixture.run([
      .entry("no-target", .symlink(target: "")), large, bad, .file("good", "x"),
    ])
    #expect(report.skipped.entryCount == 2 && report.skipped.propertyCount == 1)
    let entries = try fixture.entries(report)
    #expect(entries["folders/x/good"] != nil && entries["folders/x/large"] != nil)
    #expect(entries["folders/x/bad"] == nil && entries["folders/x/no-target"] == nil)
  }
}

/// A request to stop.
private final class Signal: Sendable {
  let isGiven = Atomic<Bool>(false)
}

/// A source at whose end the request to stop arrives.
private struct EndingSource: EntrySource {
  var list: ListedSource
  let signal: Signal

  var skipped: SkippedEntries { list.skipped }

  mutating func next() throws(InterchangeError) -> ForeignEntry? {
    do throws(InterchangeError) {
      if let entry = try list.next() { return entry }
    } catch {
      signal.isGiven.store(true, ordering: .relaxed)
      throw error
    }
    signal.isGiven.store(true, ordering: .relaxed)
    return nil
  }

  mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    try list.read(into: buffer)
  }
}
