import ArchiveStore
import Codecs
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// A file of several names is one file: in what a snapshot says that it holds, and in whether there is
/// room for what is new.
@Suite(.spreadScans) struct LinkedTotalsTests {
  private static let huge = UInt64(Int64.max)

  private func bytes(_ count: Int) -> [UInt8] {
    var random = Seeded(UInt64(count))
    return random.bytes(count)
  }

  /// A film of 1 MiB under 50 names, and a small file.
  private func rig() throws -> Fixture {
    let rig = try Fixture(inMemory: true)
    try rig.directory.write(bytes(1 << 20), at: "tree/a/film")
    let tree = try Directory.open(path: rig.directory.path("tree"))
    let inner = try tree.directory("a")
    for number in 1..<50 {
      try tree.createHardLink(ByteString("name \(number)"), to: "film", in: inner)
    }
    try rig.directory.write("12345", at: "tree/other")
    return rig
  }

  private func statistics(_ report: BackupReport, _ rig: Fixture) throws -> SnapshotStatistics {
    try SnapshotStatistics(
      of: try #require(report.snapshot), from: rig.repository.beginReading(),
      unreadable: { _ in })
  }

  @Test func itCountsOnceInTotalsAndStatistics() throws {
    let rig = try rig()
    let report = try rig.backup()
    let totals = try #require(report.snapshot).snapshot.totals
    #expect(report.files == 51 && totals.files == 51)
    #expect(report.bytes == 1 << 20 + 5 && totals.bytes == report.bytes)
    #expect(totals.classes == [ClassTotal(name: "user-data", files: 51, bytes: 1 << 20 + 5)])
    let rows = try statistics(report, rig).rows
    #expect(rows.map(\.files) == [51] && rows.map(\.bytes) == [1 << 20 + 5])
  }

  /// A file that grew since it was looked at has its new size under each of its names.
  @Test func whatGrewCountsOnce() throws {
    let rig = try rig()
    let scan = try rig.scan()
    let grown = try Program.run(
      "sh", ["-c", "printf more >> '\(rig.directory.string)/tree/a/film'"])
    #expect(grown.code == 0, "\(grown.errors)")
    let report = try rig.backup(scan)
    #expect(report.bytes == 1 << 20 + 9)
    #expect(try statistics(report, rig).rows.map(\.bytes) == [report.bytes])
  }

  /// A name under which the file was read with another content is a file of its own when it is
  /// restored, and in an archive.
  @Test func anotherContentOfAGroupIsAFileOfItsOwn() throws {
    let rig = try rig()
    let report = try rig.backup()
    var snapshot = try #require(report.snapshot).snapshot
    let session = try rig.repository.beginWriting()
    let writer = try session.makeWriter()
    let texts = ["one", "one", "two", "seven"]
    let entries = try texts.enumerated().map { number, text in
      let content = try writer.storeFile(logicalPath: "folders/tree/x") { file in
        try file.append(Array(text.utf8))
      }
      return TreeEntry(
        name: ByteString("\(number)"), node: .file(content), linkGroup: number < 3 ? "x/0" : "x/9")
    }
    try writer.flush()
    let tree = try session.storeTree(entries)
    let directory = TreeEntry(name: "x", node: .directory(tree))
    snapshot.tree = try session.storeTree([directory])
    snapshot.sequence += 1
    let stored = try session.finish(snapshot)
    let reader = try rig.repository.beginReading()
    let found = try SnapshotStatistics(of: stored, from: reader, unreadable: { _ in })
    #expect(found.rows.map(\.bytes).reduce(0, +) == 11)

    let plan = try RestorePlan.make(stored, path: "x", to: rig.directory.path("back"), from: reader)
    #expect(try RestoreOperation(plan, from: reader).run().isComplete)
    #expect(try (0..<4).map { try rig.text(ByteString("back/\($0)")) } == texts)
    let back = try Directory.open(path: rig.directory.path("back"))
    #expect(try ["0", "1", "2", "3"].map { try back.status($0).links } == [2, 2, 1, 1])

    var archive: [UInt8] = []
    var dump = ArchiveDump(
      of: stored, from: reader, to: { archive.append($0) }, leavingOut: { _, _ in })
    try dump.write(tree)
    try dump.finish()
    try rig.directory.write(archive, at: "out.tar")
    _ = try Directory.make(path: rig.directory.path("out"))
    let tar = try Program.run("tar", ["-xf", "out.tar", "-C", "out"], in: rig.directory.url)
    #expect(tar.code == 0, "\(tar.errors)")
    #expect(try (0..<4).map { try rig.text(ByteString("out/\($0)")) } == texts)
  }

  /// Of two backups without room, and without a state, that with something new is refused.
  private func expectNewIsFound(in rig: Fixture) throws {
    _ = try rig.backup(keeping: "first")
    _ = try rig.backup(keeping: "second") { $0.keepFree = Self.huge }
    try rig.directory.write(bytes(3 << 20), at: "tree/new")
    let error = #expect(throws: LifecycleError.self) {
      try rig.backup(keeping: "third") { $0.keepFree = Self.huge }
    }
    let text = "\(try #require(error))"
    #expect(text.contains("up to 3.0 MiB are new"), "\(text)")
  }

  /// Without a state the last snapshot tells what is there already: what is new does not hide behind
  /// the names of what is old.
  @Test func whatIsNewIsFoundBesideManyNames() throws {
    let rig = try rig()
    try expectNewIsFound(in: rig)
    #expect(try rig.names("repo/leases").isEmpty)
    _ = try rig.backup(keeping: "third") { $0.keepFree = 0 }
  }

  /// Nor behind holes: these are in what the snapshot holds, and are never stored.
  @Test func whatIsNewIsFoundBesideHoles() throws {
    let rig = try rig()
    try Directory.open(path: rig.directory.path("tree")).create("sparse").truncate(to: 1 << 30)
    try expectNewIsFound(in: rig)
  }

  /// A database is read by each of its names, and stored once.
  @Test func aDatabaseOfSeveralNamesNeedsRoomOnce() throws {
    let rig = try Fixture(inMemory: true)
    let bytes = Array("SQLite format 3\0".utf8) + self.bytes(3 << 20)
    try rig.directory.write(bytes, at: "tree/a.sqlite")
    let tree = try Directory.open(path: rig.directory.path("tree"))
    for name: ByteString in ["b.sqlite", "c.sqlite"] {
      try tree.createHardLink(name, to: "a.sqlite", in: tree)
    }
    let error = #expect(throws: LifecycleError.self) {
      try rig.backup(keeping: "cache") { $0.keepFree = Self.huge }
    }
    let text = "\(try #require(error))"
    #expect(text.contains("up to 3.0 MiB are new"), "\(text)")
  }
}
