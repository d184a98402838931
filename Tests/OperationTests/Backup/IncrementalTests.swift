import ArchiveStore
import PolicyEngine
import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// The files that a backup reads if an earlier backup left a state file.
@Suite(.spreadScans) struct IncrementalTests {
  /// Three directories with files of several kinds.
  private func makeFixture() throws -> Fixture {
    let fixture = try Fixture()
    for number in 0..<40 {
      try fixture.directory.write("file \(number)", at: ByteString("tree/a/\(number)"))
      try fixture.directory.write("other \(number)", at: ByteString("tree/b/c/\(number)"))
    }
    var random = Seeded(7)
    try fixture.directory.write(random.bytes(9_000_000), at: "tree/large")
    try Directory.open(path: fixture.directory.path("tree/a")).createLink("link", to: "1")
    return fixture
  }

  private func tree(_ report: BackupReport) -> TreeReference? { report.snapshot?.snapshot.tree }

  @Test func unchangedFilesAreNotOpened() throws {
    let fixture = try makeFixture()
    let first = try fixture.backup(keeping: "cache")
    #expect(first.opened == 81)
    let second = try fixture.backup(keeping: "cache")
    #expect(second.opened == 0 && second.storedBytes == 0)
    #expect(second.files == 81 && second.entries == first.entries && second.bytes == first.bytes)
    #expect(tree(second) == tree(first))
    #expect(second.snapshot?.snapshot.parent == first.snapshot?.id)
    // Once more: the state file of a run that read nothing is as good as any other.
    #expect(try fixture.backup(keeping: "cache").opened == 0)
    // Without a state file everything is read, with the same result.
    let again = try fixture.backup(keeping: "other")
    #expect(again.opened == 81 && tree(again) == tree(first))
  }

  /// The index cache has copies of the written index objects; without it, each object is read once.
  @Test func eachIndexObjectIsReadOnce() throws {
    let fixture = try makeFixture()
    _ = try fixture.backup(keeping: "cache")
    #expect(try indexReads(fixture, keeping: "cache").isEmpty)
    let directories = try fixture.names("cache/sandboxctl")
    for name in directories {
      let position = fixture.directory.path(ByteString("cache/sandboxctl/\(name)"))
      try Directory.open(path: position).removeTree("index")
    }
    let reads = try indexReads(fixture, keeping: "cache")
    #expect(!reads.isEmpty && reads.count == Set(reads).count, "\(reads)")
    #expect(try indexReads(fixture, keeping: "cache").isEmpty)
    // Even without a state file, each file is read and each blob is looked up only once.
    for path in try fixture.stateFiles("cache", ".state") {
      try fixture.directory.directory.remove(path)
    }
    #expect(try indexReads(fixture, keeping: "cache", opening: 81).isEmpty)
  }

  /// The index objects that another backup reads.
  private func indexReads(
    _ fixture: Fixture, keeping cache: ByteString, opening files: Int = 0
  ) throws -> [String] {
    let watched = WatchedStorage(fixture.repository.storage)
    let report = try fixture.backup(to: Repository.open(watched), keeping: cache)
    #expect(report.opened == files && report.storedBytes == 0)
    return watched.state.withLock(\.events).filter {
      $0.hasPrefix("load index/") || $0.hasPrefix("range index/")
    }
  }

  @Test func onlyChangedFilesAreRead() throws {
    let fixture = try makeFixture()
    _ = try fixture.backup(keeping: "cache")
    try fixture.directory.write("changed", at: "tree/a/7")
    try fixture.directory.write("new", at: "tree/b/c/new")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.directory("a").remove("8")
    try tree.directory("b").directory("c").setModified(Timestamp(seconds: 1_000_000))
    try tree.directory("a").file("9").setPermissions(0o600)
    let second = try fixture.backup(keeping: "cache")
    #expect(second.opened == 3)
    #expect(second.files == 81)
    _ = try fixture.restore(second)
    #expect(try fixture.text("back/a/7") == "changed")
    #expect(try fixture.text("back/b/c/new") == "new")
    #expect(try fixture.names("back/a").count == 40)
    let back = try Directory.open(path: fixture.directory.path("back"))
    #expect(try back.directory("b").status("c").modified.seconds == 1_000_000)
    #expect(try back.directory("a").status("9").permissions == 0o600)
    #expect(try self.tree(second) == self.tree(fixture.backup(keeping: "other")))
    #expect(try fixture.backup(keeping: "cache").opened == 0)
  }

  @Test func aFileReadRightAfterAChangeIsReadAgain() throws {
    // A file that is read two seconds after it was written, as on a busy machine, is not read again
    // by the next run.
    for _ in 0..<20 {
      let fixture = try Fixture()
      let start = Host.monotonicSeconds()
      for number in 0..<10 {
        try fixture.directory.write("file \(number)", at: ByteString("tree/a/\(number)"))
      }
      _ = try fixture.backup(keeping: "cache") { $0.now = nil }
      if Host.monotonicSeconds() - start > 1.5 { continue }
      #expect(try fixture.backup(keeping: "cache") { $0.now = nil }.opened == 10)
      return
    }
    Issue.record("no file was read soon enough")
  }

  /// A file that was changed a moment before is not read again if no process had it open for
  /// writing. If one had, a later store through a mapping might not change its times.
  @Test func aFileChangedRecentlyAndNotOpenIsNotReadAgain() throws {
    let fixture = try Fixture()
    for number in 0..<10 {
      try fixture.directory.write("file \(number)", at: ByteString("tree/a/\(number)"))
    }
    let tree = try Directory.open(path: fixture.directory.path("tree/a"))
    guard try tree.file("0").hasNoWriter else { return }
    let soon = Host.now().seconds + 10
    let backup = { () throws -> BackupReport in
      try fixture.backup(keeping: "cache") { request in
        request.now = { Timestamp(seconds: soon) }
        request.times = .exact
      }
    }
    let open = try tree.fileForWriting("3")
    _ = try backup()
    try open.close()
    #expect(try backup().opened == 1)
    #expect(try backup().opened == 0)
  }

  @Test func anotherPolicyReadsNoUnchangedFile() throws {
    let fixture = try makeFixture()
    _ = try fixture.backup(keeping: "cache")
    let less = try fixture.backup(keeping: "cache", [.exclude("b/c/1*")])
    #expect(less.opened == 0 && less.files == 70)
    _ = try fixture.restore(less)
    #expect(try fixture.names("back/b/c").count == 29)
    let more = try fixture.backup(keeping: "cache")
    // Files that were not in the state file's snapshot are read.
    #expect(more.opened == 11 && more.files == 81, "\(more.opened)")
  }

  // MARK: - Outdated state

  @Test func afterALostSnapshotNothingIsReadAgain() throws {
    let fixture = try makeFixture()
    let first = try fixture.backup(keeping: "cache")
    try fixture.empty("repo/snapshots")
    let second = try fixture.backup(keeping: "cache")
    #expect(second.opened == 0 && tree(second) == tree(first))
    #expect(try fixture.restore(second).isComplete)
  }

  @Test func anEmptiedRepositoryIsFilledAgain() throws {
    let fixture = try makeFixture()
    let first = try fixture.backup(keeping: "cache")
    for directory: ByteString in ["snapshots", "index"] {
      try fixture.empty(ByteString("repo").appending(directory))
    }
    for directory in try fixture.names("repo/packs") {
      try fixture.empty(ByteString("repo/packs").appending(directory))
    }
    let second = try fixture.backup(keeping: "cache")
    #expect(second.opened == 81 && tree(second) == tree(first))
    #expect(try fixture.restore(second).isComplete)
    #expect(try fixture.text("back/a/7") == "file 7")
  }

  @Test func aDamagedStateFileIsNotUsed() throws {
    let fixture = try makeFixture()
    let first = try fixture.backup(keeping: "cache")
    let states = try fixture.stateFiles("cache", ".state")
    #expect(states.count == 1)
    for (position, state) in states.enumerated() {
      var bytes = try fixture.directory.read(state)
      #expect(bytes.count > 9000, "\(position)")
      for offset in stride(from: 8192, to: bytes.count, by: 64) { bytes[offset] ^= 1 }
      try fixture.directory.write(bytes, at: state)
    }
    let second = try fixture.backup(keeping: "cache")
    #expect(second.opened == 81 && tree(second) == tree(first))
    #expect(try fixture.backup(keeping: "cache").opened == 0)
  }

  @Test func aSecondBackupOfTheSameSourceIsRefused() throws {
    let fixture = try makeFixture()
    let cache = fixture.directory.path("cache")
    let plan = BackupPlan.make(try fixture.scan())
    let outcome = Outcome()
    // The second run begins when the first one checks for an interruption.
    _ = try fixture.backup(keeping: "cache") { request in
      request.isStopping = {
        outcome.note {
          _ = try BackupOperation(
            plan, to: fixture.repository, BackupRequest(program: "test", cache: cache)
          ).run()
        }
        return false
      }
    }
    #expect(outcome.kind == .busy)
  }

  /// The result of the first attempt on another thread.
  private final class Outcome: Sendable {
    private let queue = BoundedQueue<OperationError.Kind?>(capacity: 1000)

    func note(_ body: () throws -> Void) {
      do {
        try body()
        queue.enqueue(nil)
      } catch { queue.enqueue((error as? OperationError)?.kind) }
    }

    var kind: OperationError.Kind? {
      queue.close()
      return queue.dequeue() ?? nil
    }
  }

  // MARK: - Nothing to do

  @Test func anUnchangedSourceIsSkippedOnRequest() throws {
    let fixture = try makeFixture()
    let first = try fixture.backup(keeping: "cache") { $0.skipsUnchanged = true }
    #expect(!first.isUnchanged && first.snapshot != nil)
    let second = try fixture.backup(keeping: "cache") { $0.skipsUnchanged = true }
    #expect(second.isUnchanged && second.snapshot == nil && second.opened == 0)
    #expect(try fixture.repository.snapshots().snapshots.count == 1)
    // Without a state file, the backup finds this out by reading, and records it.
    let third = try fixture.backup(keeping: "other") { $0.skipsUnchanged = true }
    #expect(third.isUnchanged && third.opened == 81)
    #expect(try fixture.backup(keeping: "other") { $0.skipsUnchanged = true }.opened == 0)
    try fixture.directory.write("changed", at: "tree/a/7")
    let last = try fixture.backup(keeping: "cache") { $0.skipsUnchanged = true }
    #expect(last.snapshot != nil && last.opened == 1)
  }

  @Test func aBackupThatDoesNotFitIsRefused() throws {
    let fixture = try makeFixture()
    let huge = UInt64(Int64.max)
    let error = #expect(throws: OperationError.self) {
      try fixture.backup(keeping: "cache") { $0.keepFree = huge }
    }
    #expect(
      error?.description.contains("folders/tree 8.6 MiB") == true, "\(String(describing: error))")
    #expect(error?.description.contains("user-data") == true)
    #expect(try fixture.names("repo/leases").isEmpty && fixture.names("repo/snapshots").isEmpty)
    #expect(try fixture.repository.storage.space() != nil)
    // Known files do not count as new.
    _ = try fixture.backup(keeping: "cache")
    _ = try fixture.backup(keeping: "cache") { $0.keepFree = huge }
    // Neither do files of an earlier snapshot, as far as they are known without a state file.
    _ = try fixture.backup(keeping: "other") { $0.keepFree = huge }
  }
}
