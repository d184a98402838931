import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// How backups use the state file: no unchanged file is read twice, and old content is never
/// mistaken for new.
@Suite(.spreadScans) struct StateBackupTests {
  let fixture: Fixture
  init() throws { fixture = try Fixture(inMemory: true) }

  /// Backs up with a state file and a clock an hour ahead, so that all files count as stable.
  private func backup(
    skippingUnchanged: Bool = false,
    stopping: @escaping @Sendable (ProgressCounters.State) -> Bool = { _ in false }
  ) throws -> (report: BackupReport, opened: Int) {
    let counters = ProgressCounters()
    let report = try fixture.backup(to: repository(), keeping: "cache") { request in
      request.workers = 1
      request.skipsUnchanged = skippingUnchanged
      request.isStopping = { stopping(counters.progress) }
      request.counters = counters
    }
    return (report, counters.progress.opened)
  }

  /// Opens the repository again, because it may have been replaced.
  private func repository() throws -> Repository {
    try Repository.open(try LocalStorage(path: fixture.directory.path("repo")))
  }

  /// Interrupts a backup after a number of files, which are then in no snapshot.
  private func interrupt(afterFiles count: Int = 1) throws {
    let error = #expect(throws: OperationError.self) {
      try backup(stopping: { $0.filesDone >= count })
    }
    #expect(error?.kind == .interrupted)
  }

  private func write(_ text: String) throws {
    for name: ByteString in ["a", "sub/b", "sub/c", "zub/d"] {
      try fixture.directory.write(text + name.description, at: ByteString("tree").appending(name))
    }
  }

  @Test func filesReadByAnInterruptedRunReplaceTheOldOnes() throws {
    try write("old ")
    #expect(try backup().opened == 4)
    #expect(try backup().opened == 0)
    // The same sizes as before, so that only the times show the change.
    try fixture.directory.write("new a", at: "tree/a")
    try fixture.directory.write("new d", at: "tree/zub/d")
    try interrupt()
    let (report, opened) = try backup()
    #expect(opened == 1)
    _ = try fixture.restore(report)
    #expect(try fixture.text("back/a") == "new a" && fixture.text("back/zub/d") == "new d")
    #expect(try fixture.text("back/sub/b") == "old sub/b")
  }

  @Test func anInterruptedFirstBackupIsResumed() throws {
    try write("old ")
    try interrupt(afterFiles: 2)
    let (report, opened) = try backup()
    #expect(opened < 4)
    _ = try fixture.restore(report)
    #expect(try fixture.text("back/a") == "old a" && fixture.text("back/zub/d") == "old zub/d")
  }

  @Test func afterAPackIsLostItsFilesAreReadAgain() throws {
    try write("old ")
    _ = try backup()
    let packs = try Directory.open(path: fixture.directory.path("repo/packs"))
    for name in try packs.names() {
      let directory = try packs.directory(name)
      for pack in try directory.names() { try directory.remove(pack) }
    }
    try expectWhole(try backup(), opened: 4)
  }

  private func expectWhole(
    _ done: (report: BackupReport, opened: Int), opened: Int
  ) throws {
    #expect(done.opened == opened)
    _ = try fixture.restore(done.report)
    #expect(try fixture.text("back/sub/c") == "old sub/c")
    #expect(try backup().opened == 0)
  }

  @Test func afterTheIndexIsLostFilesAreReadAgain() throws {
    try write("old ")
    _ = try backup()
    let indexes = try Directory.open(path: fixture.directory.path("repo/index"))
    for name in try indexes.names() { try indexes.remove(name) }
    try expectWhole(try backup(), opened: 4)
  }

  @Test func lostBlobsAreStoredAgainThoughNothingChanged() throws {
    try write("old ")
    _ = try backup()
    let indexes = try Directory.open(path: fixture.directory.path("repo/index"))
    for name in try indexes.names() { try indexes.remove(name) }
    let done = try backup(skippingUnchanged: true)
    #expect(!done.report.isUnchanged)
    try expectWhole(done, opened: 4)
    #expect(try backup(skippingUnchanged: true).report.isUnchanged)
  }

  @Test func afterASnapshotIsLostNoFileIsReadAgain() throws {
    try write("old ")
    _ = try backup()
    let snapshots = try Directory.open(path: fixture.directory.path("repo/snapshots"))
    for name in try snapshots.names() { try snapshots.remove(name) }
    let (report, opened) = try backup()
    #expect(opened == 0)
    _ = try fixture.restore(report)
    #expect(try fixture.text("back/sub/c") == "old sub/c")
  }

  @Test func aRepositoryReplacedByAnOlderCopyGetsItsMissingData() throws {
    try write("old ")
    _ = try backup()
    _ = try Program.run("cp", ["-a", "repo", "copy"], in: fixture.directory.url)
    try write("newer ")
    _ = try backup()
    let older = try Program.run(
      "/bin/bash", ["-ec", "rm -r repo/* && cp -a copy/. repo"], in: fixture.directory.url)
    #expect(older.code == 0, "\(older.errors)")
    let (report, opened) = try backup()
    #expect(opened == 4)
    _ = try fixture.restore(report, from: repository())
    #expect(try fixture.text("back/sub/c") == "newer sub/c")
    #expect(try backup().opened == 0)
  }

  @Test func aDamagedStateFileIsNotUsed() throws {
    try write("old ")
    _ = try backup()
    let directory = fixture.directory.path("cache/sandboxctl").appending(
      ByteString(fixture.repository.id.hex))
    let name = try #require(
      try Directory.open(path: directory).names().first { "\($0)".hasSuffix(".state") })
    let path = ByteString("cache/sandboxctl/\(fixture.repository.id.hex)").appending(name)
    let bytes = try fixture.directory.read(path)
    var random = Seeded.fresh()
    for _ in 0..<60 {
      var damaged = bytes
      damaged[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8)
      try fixture.directory.write(damaged, at: path)
      let (report, _) = try backup()
      _ = try fixture.restore(report)
      #expect(try fixture.text("back/sub/c") == "old sub/c")
      #expect(try fixture.text("back/a") == "old a")
      try fixture.directory.directory.removeTree("back")
    }
  }
}
