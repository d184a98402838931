import ArchiveStore
import Codecs
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// What backups make of the state: nothing is read twice, and nothing old is taken for new.
@Suite(.spreadScans) struct StateBackupTests {
  let rig: Fixture
  init() throws { rig = try Fixture(inMemory: true) }

  /// Backs up with a state, an hour from now, so that all files have stood still.
  private func backup(
    skippingUnchanged: Bool = false,
    stopping: @escaping @Sendable (ProgressState) -> Bool = { _ in false }
  ) throws -> (report: BackupReport, opened: Int) {
    let counters = ProgressCounters()
    let report = try rig.backup(to: repository(), keeping: "cache") { request in
      request.workers = 1
      request.skipsUnchanged = skippingUnchanged
      request.isStopping = { stopping(counters.progress) }
      request.counters = counters
    }
    return (report, counters.progress.opened)
  }

  /// Opened anew: another repository may have come to its place.
  private func repository() throws -> Repository {
    try Repository.open(try LocalStorage(path: rig.directory.path("repo")))
  }

  /// Backs up until a file was read; nothing of it is in a snapshot then.
  private func interrupt(afterFiles count: Int = 1) throws {
    let error = #expect(throws: LifecycleError.self) {
      try backup(stopping: { $0.filesDone >= count })
    }
    #expect(error?.kind == .interrupted)
  }

  private func write(_ text: String) throws {
    for name: ByteString in ["a", "sub/b", "sub/c", "zub/d"] {
      try rig.directory.write(text + name.description, at: ByteString("tree").appending(name))
    }
  }

  @Test func whatAnInterruptedRunReadIsNotTakenForTheOldTree() throws {
    try write("old ")
    #expect(try backup().opened == 4)
    #expect(try backup().opened == 0)
    // As long as before, so that only times tell.
    try rig.directory.write("new a", at: "tree/a")
    try rig.directory.write("new d", at: "tree/zub/d")
    try interrupt()
    let (report, opened) = try backup()
    #expect(opened == 1)
    _ = try rig.restore(report)
    #expect(try rig.text("back/a") == "new a" && rig.text("back/zub/d") == "new d")
    #expect(try rig.text("back/sub/b") == "old sub/b")
  }

  @Test func anInterruptedFirstRunLosesNothingThatWasRead() throws {
    try write("old ")
    try interrupt(afterFiles: 2)
    let (report, opened) = try backup()
    #expect(opened < 4)
    _ = try rig.restore(report)
    #expect(try rig.text("back/a") == "old a" && rig.text("back/zub/d") == "old zub/d")
  }

  @Test func aPackRemovedByHandCostsReadings() throws {
    try write("old ")
    _ = try backup()
    let packs = try Directory.open(path: rig.directory.path("repo/packs"))
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
    _ = try rig.restore(done.report)
    #expect(try rig.text("back/sub/c") == "old sub/c")
    #expect(try backup().opened == 0)
  }

  @Test func anIndexRemovedByHandCostsReadings() throws {
    try write("old ")
    _ = try backup()
    let indexes = try Directory.open(path: rig.directory.path("repo/index"))
    for name in try indexes.names() { try indexes.remove(name) }
    try expectWhole(try backup(), opened: 4)
  }

  @Test func lostBlobsAreStoredThoughNothingChanged() throws {
    try write("old ")
    _ = try backup()
    let indexes = try Directory.open(path: rig.directory.path("repo/index"))
    for name in try indexes.names() { try indexes.remove(name) }
    let done = try backup(skippingUnchanged: true)
    #expect(!done.report.isUnchanged)
    try expectWhole(done, opened: 4)
    #expect(try backup(skippingUnchanged: true).report.isUnchanged)
  }

  @Test func aSnapshotRemovedByHandCostsLookups() throws {
    try write("old ")
    _ = try backup()
    let snapshots = try Directory.open(path: rig.directory.path("repo/snapshots"))
    for name in try snapshots.names() { try snapshots.remove(name) }
    let (report, opened) = try backup()
    #expect(opened == 0)
    _ = try rig.restore(report)
    #expect(try rig.text("back/sub/c") == "old sub/c")
  }

  @Test func aRepositoryReplacedByAnOlderCopyGetsWhatItLacks() throws {
    try write("old ")
    _ = try backup()
    _ = try Program.run("cp", ["-a", "repo", "copy"], in: rig.directory.url)
    try write("newer ")
    _ = try backup()
    let older = try Program.run(
      "/bin/bash", ["-ec", "rm -r repo/* && cp -a copy/. repo"], in: rig.directory.url)
    #expect(older.code == 0, "\(older.errors)")
    let (report, opened) = try backup()
    #expect(opened == 4)
    _ = try rig.restore(report, from: repository())
    #expect(try rig.text("back/sub/c") == "newer sub/c")
    #expect(try backup().opened == 0)
  }

  @Test func aDamagedStateCostsReadings() throws {
    try write("old ")
    _ = try backup()
    let directory = rig.directory.path("cache/sandboxctl").appending(
      ByteString(rig.repository.id.hex))
    let name = try #require(
      try Directory.open(path: directory).names().first { "\($0)".hasSuffix(".state") })
    let path = ByteString("cache/sandboxctl/\(rig.repository.id.hex)").appending(name)
    let bytes = try rig.directory.read(path)
    var random = Seeded.fresh()
    for _ in 0..<60 {
      var damaged = bytes
      damaged[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8)
      try rig.directory.write(damaged, at: path)
      let (report, _) = try backup()
      _ = try rig.restore(report)
      #expect(try rig.text("back/sub/c") == "old sub/c")
      #expect(try rig.text("back/a") == "old a")
      try rig.directory.directory.removeTree("back")
    }
  }
}
