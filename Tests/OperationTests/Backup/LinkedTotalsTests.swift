import ArchiveStore
import Backup
import Codecs
import Interchange
import Restore
import SnapshotQueries
import SystemIO
import TestSupport
import Testing

/// A hard-linked file counts as one file: in the totals of a snapshot, and in the space required
/// for new data.
@Suite(.spreadScans) struct LinkedTotalsTests {
  private static let huge = UInt64(Int64.max)

  private func bytes(_ count: Int) -> [UInt8] {
    var random = Seeded(UInt64(count))
    return random.bytes(count)
  }

  /// A film of 1 MiB under 50 names, and a small file.
  private func makeFixture() throws -> Fixture {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write(bytes(1 << 20), at: "tree/a/film")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    let inner = try tree.directory("a")
    for number in 1..<50 {
      try tree.createHardLink(ByteString("name \(number)"), to: "film", in: inner)
    }
    try fixture.directory.write("12345", at: "tree/other")
    return fixture
  }

  private func statistics(_ report: BackupReport, _ fixture: Fixture) throws -> SnapshotStatistics {
    try SnapshotStatistics(
      of: try #require(report.snapshot), from: fixture.repository.beginReading(),
      unreadable: { _ in })
  }

  @Test func aHardLinkedFileCountsOnceInTotalsAndStatistics() throws {
    let fixture = try makeFixture()
    let report = try fixture.backup()
    let totals = try #require(report.snapshot).snapshot.totals
    #expect(report.files == 51 && totals.files == 51)
    #expect(report.bytes == 1 << 20 + 5 && totals.bytes == report.bytes)
    #expect(totals.classes == [Totals.Class(name: "user-data", files: 51, bytes: 1 << 20 + 5)])
    let rows = try statistics(report, fixture).rows
    #expect(rows.map(\.files) == [51] && rows.map(\.bytes) == [1 << 20 + 5])
  }

  /// A file that has grown since the scan has its new size under each of its names.
  @Test func aGrownHardLinkedFileCountsOnce() throws {
    let fixture = try makeFixture()
    let scan = try fixture.scan()
    let grown = try Program.run(
      "sh", ["-c", "printf more >> '\(fixture.directory.string)/tree/a/film'"])
    #expect(grown.code == 0, "\(grown.errors)")
    let report = try fixture.backup(scan)
    #expect(report.bytes == 1 << 20 + 9)
    #expect(try statistics(report, fixture).rows.map(\.bytes) == [report.bytes])
  }

  /// A name under which the file was read with other content is a separate file in a restore and in
  /// an archive.
  @Test func aNameWithAnotherContentIsASeparateFile() throws {
    let fixture = try makeFixture()
    let report = try fixture.backup()
    var snapshot = try #require(report.snapshot).snapshot
    let session = try fixture.repository.beginWriting()
    let writer = try session.makeWriter()
    let texts = ["one", "one", "two", "seven"]
    let entries = try texts.enumerated().map { number, text in
      let bytes = Array(text.utf8)
      let content = try writer.storeFile(logicalPath: "folders/tree/x") { file in
        try file.append(bytes.span)
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
    let reader = try fixture.repository.beginReading()
    let found = try SnapshotStatistics(of: stored, from: reader, unreadable: { _ in })
    #expect(found.rows.map(\.bytes).reduce(0, +) == 11)

    let plan = try RestorePlan.make(
      stored, path: "x", to: fixture.directory.path("back"), from: reader)
    #expect(try RestoreOperation(plan, from: reader).run().isComplete)
    #expect(try (0..<4).map { try fixture.text(ByteString("back/\($0)")) } == texts)
    let back = try Directory.open(path: fixture.directory.path("back"))
    #expect(try ["0", "1", "2", "3"].map { try back.status($0).links } == [2, 2, 1, 1])

    var archive: [UInt8] = []
    var sink = try TarSink { bytes throws(InterchangeError) in archive.append(bytes) }
    var export = ExportOperation(from: reader) { _, _ in }
    try export.write(tree, to: &sink)
    try sink.finish()
    try fixture.directory.write(archive, at: "out.tar")
    _ = try Directory.make(path: fixture.directory.path("out"))
    let tar = try Program.run("tar", ["-xf", "out.tar", "-C", "out"], in: fixture.directory.url)
    #expect(tar.code == 0, "\(tar.errors)")
    #expect(try (0..<4).map { try fixture.text(ByteString("out/\($0)")) } == texts)
  }

  /// Expects that a backup without free space and without a state file is refused only if there is
  /// new data.
  private func expectNewIsFound(in fixture: Fixture) throws {
    _ = try fixture.backup(keeping: "first")
    _ = try fixture.backup(keeping: "second") { $0.keepFree = Self.huge }
    try fixture.directory.write(bytes(3 << 20), at: "tree/new")
    let error = #expect(throws: OperationError.self) {
      try fixture.backup(keeping: "third") { $0.keepFree = Self.huge }
    }
    let text = "\(try #require(error))"
    #expect(text.contains("up to 3.0 MiB must be stored"), "\(text)")
  }

  /// Without a state file, the last snapshot shows which data is stored: many names of an old file
  /// do not hide new data.
  @Test func newDataIsFoundBesideManyNamesOfAFile() throws {
    let fixture = try makeFixture()
    try expectNewIsFound(in: fixture)
    #expect(try fixture.names("repo/leases").isEmpty)
    _ = try fixture.backup(keeping: "third") { $0.keepFree = 0 }
  }

  /// Neither do holes, which count in the totals of a snapshot but are never stored.
  @Test func newDataIsFoundBesideHoles() throws {
    let fixture = try makeFixture()
    try Directory.open(path: fixture.directory.path("tree")).create("sparse").truncate(to: 1 << 30)
    try expectNewIsFound(in: fixture)
  }

  /// A database is read under each of its names, and stored once.
  @Test func aHardLinkedDatabaseNeedsSpaceOnce() throws {
    let fixture = try Fixture(inMemory: true)
    let bytes = Array("SQLite format 3\0".utf8) + self.bytes(3 << 20)
    try fixture.directory.write(bytes, at: "tree/a.sqlite")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    for name: ByteString in ["b.sqlite", "c.sqlite"] {
      try tree.createHardLink(name, to: "a.sqlite", in: tree)
    }
    let error = #expect(throws: OperationError.self) {
      try fixture.backup(keeping: "cache") { $0.keepFree = Self.huge }
    }
    let text = "\(try #require(error))"
    #expect(text.contains("up to 3.0 MiB must be stored"), "\(text)")
  }
}
