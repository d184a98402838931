import ArchiveStore
import Lifecycle
import PolicyEngine
import Synchronization
import SystemIO
import TestSupport
import Testing

/// What a backup reads when an earlier one left its state.
@Suite(.spreadScans) struct IncrementalTests {
  /// Three directories with files of several kinds.
  private func rig() throws -> Fixture {
    let rig = try Fixture()
    for number in 0..<40 {
      try rig.directory.write("file \(number)", at: ByteString("tree/a/\(number)"))
      try rig.directory.write("other \(number)", at: ByteString("tree/b/c/\(number)"))
    }
    var random = Seeded(7)
    try rig.directory.write(random.bytes(9_000_000), at: "tree/large")
    try Directory.open(path: rig.directory.path("tree/a")).createLink("link", to: "1")
    return rig
  }

  private func tree(_ report: BackupReport) -> TreeReference? { report.snapshot?.snapshot.tree }

  @Test func whatIsUnchangedIsNotOpened() throws {
    let rig = try rig()
    let first = try rig.backup(keeping: "cache")
    #expect(first.opened == 81)
    let second = try rig.backup(keeping: "cache")
    #expect(second.opened == 0 && second.storedBytes == 0)
    #expect(second.files == 81 && second.entries == first.entries && second.bytes == first.bytes)
    #expect(tree(second) == tree(first))
    #expect(second.snapshot?.snapshot.parent == first.snapshot?.id)
    // Once more: the state of a run that read nothing is as good.
    #expect(try rig.backup(keeping: "cache").opened == 0)
    // Without a state everything is read, and it is the same.
    let anew = try rig.backup(keeping: "other")
    #expect(anew.opened == 81 && tree(anew) == tree(first))
  }

  /// The host has its own copy of what it wrote; one that has none reads each object once, and not
  /// again.
  @Test func theIndexIsReadOnce() throws {
    let rig = try rig()
    _ = try rig.backup(keeping: "cache")
    #expect(try indexReads(rig, keeping: "cache").isEmpty)
    let directories = try rig.names("cache/sandboxctl")
    for name in directories {
      let place = rig.directory.path(ByteString("cache/sandboxctl/\(name)"))
      try Directory.open(path: place).removeTree("index")
    }
    let reads = try indexReads(rig, keeping: "cache")
    #expect(!reads.isEmpty && reads.count == Set(reads).count, "\(reads)")
    #expect(try indexReads(rig, keeping: "cache").isEmpty)
    // With no state either, each file is read again, and each blob looked up.
    for path in try rig.stateFiles("cache", ".state") { try rig.directory.directory.remove(path) }
    #expect(try indexReads(rig, keeping: "cache", opening: 81).isEmpty)
  }

  /// What another backup reads of index objects.
  private func indexReads(
    _ rig: Fixture, keeping cache: ByteString, opening files: Int = 0
  ) throws -> [String] {
    let watched = WatchedStorage(rig.repository.storage)
    let report = try rig.backup(to: Repository.open(watched), keeping: cache)
    #expect(report.opened == files && report.storedBytes == 0)
    return watched.state.withLock(\.events).filter {
      $0.hasPrefix("load index/") || $0.hasPrefix("range index/")
    }
  }

  @Test func onlyWhatChangedIsRead() throws {
    let rig = try rig()
    _ = try rig.backup(keeping: "cache")
    try rig.directory.write("changed", at: "tree/a/7")
    try rig.directory.write("new", at: "tree/b/c/new")
    let tree = try Directory.open(path: rig.directory.path("tree"))
    try tree.directory("a").remove("8")
    try tree.directory("b").directory("c").setModified(Timestamp(seconds: 1_000_000))
    try tree.directory("a").file("9").setPermissions(0o600)
    let second = try rig.backup(keeping: "cache")
    #expect(second.opened == 3)
    #expect(second.files == 81)
    _ = try rig.restore(second)
    #expect(try rig.text("back/a/7") == "changed")
    #expect(try rig.text("back/b/c/new") == "new")
    #expect(try rig.names("back/a").count == 40)
    let back = try Directory.open(path: rig.directory.path("back"))
    #expect(try back.directory("b").status("c").modified.seconds == 1_000_000)
    #expect(try back.directory("a").status("9").permissions == 0o600)
    #expect(try self.tree(second) == self.tree(rig.backup(keeping: "other")))
    #expect(try rig.backup(keeping: "cache").opened == 0)
  }

  @Test func whatWasChangedJustBeforeItWasReadIsReadAgain() throws {
    // What is read two seconds after it was written, as on a busy machine, is not read again.
    for _ in 0..<20 {
      let rig = try Fixture()
      let start = Host.monotonicSeconds()
      for number in 0..<10 {
        try rig.directory.write("file \(number)", at: ByteString("tree/a/\(number)"))
      }
      _ = try rig.backup(keeping: "cache") { $0.now = nil }
      if Host.monotonicSeconds() - start > 1.5 { continue }
      #expect(try rig.backup(keeping: "cache") { $0.now = nil }.opened == 10)
      return
    }
    Issue.record("it was never read soon enough")
  }

  /// A file of a moment ago is not read again if nobody could write to it when it was read: else a
  /// store through a mapping may come later than its times say.
  @Test func aYoungFileThatNobodyHasOpenIsNotReadAgain() throws {
    let rig = try Fixture()
    for number in 0..<10 {
      try rig.directory.write("file \(number)", at: ByteString("tree/a/\(number)"))
    }
    let tree = try Directory.open(path: rig.directory.path("tree/a"))
    guard try tree.file("0").hasNoWriter else { return }
    let soon = Host.now().seconds + 10
    let backup = { () throws -> BackupReport in
      try rig.backup(keeping: "cache") { request in
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

  @Test func anotherPolicyReadsNothingAnew() throws {
    let rig = try rig()
    _ = try rig.backup(keeping: "cache")
    let less = try rig.backup(keeping: "cache", [.exclude("b/c/1*")])
    #expect(less.opened == 0 && less.files == 70)
    _ = try rig.restore(less)
    #expect(try rig.names("back/b/c").count == 29)
    let more = try rig.backup(keeping: "cache")
    // What was not in the snapshot that the state belongs to is read.
    #expect(more.opened == 11 && more.files == 81, "\(more.opened)")
  }

  // MARK: - A state that is old

  @Test func aRemovedSnapshotCostsLookups() throws {
    let rig = try rig()
    let first = try rig.backup(keeping: "cache")
    try rig.empty("repo/snapshots")
    let second = try rig.backup(keeping: "cache")
    #expect(second.opened == 0 && tree(second) == tree(first))
    #expect(try rig.restore(second).isComplete)
  }

  @Test func aReplacedRepositoryIsFilledAgain() throws {
    let rig = try rig()
    let first = try rig.backup(keeping: "cache")
    for directory: ByteString in ["snapshots", "index"] {
      try rig.empty(ByteString("repo").appending(directory))
    }
    for directory in try rig.names("repo/packs") {
      try rig.empty(ByteString("repo/packs").appending(directory))
    }
    let second = try rig.backup(keeping: "cache")
    #expect(second.opened == 81 && tree(second) == tree(first))
    #expect(try rig.restore(second).isComplete)
    #expect(try rig.text("back/a/7") == "file 7")
  }

  @Test func aDamagedStateCostsReadings() throws {
    let rig = try rig()
    let first = try rig.backup(keeping: "cache")
    let states = try rig.stateFiles("cache", ".state")
    #expect(states.count == 1)
    for (place, state) in states.enumerated() {
      var bytes = try rig.directory.read(state)
      #expect(bytes.count > 9000, "\(place)")
      for offset in stride(from: 8192, to: bytes.count, by: 64) { bytes[offset] ^= 1 }
      try rig.directory.write(bytes, at: state)
    }
    let second = try rig.backup(keeping: "cache")
    #expect(second.opened == 81 && tree(second) == tree(first))
    #expect(try rig.backup(keeping: "cache").opened == 0)
  }

  @Test func aSecondRunOfTheSameSourceIsRefused() throws {
    let rig = try rig()
    let cache = rig.directory.path("cache")
    let plan = BackupPlan.make(try rig.scan())
    let outcome = Outcome()
    // The first run asks whether it is to stop: then the second one is begun.
    _ = try rig.backup(keeping: "cache") { request in
      request.isStopping = {
        outcome.note {
          _ = try BackupOperation(
            plan, to: rig.repository, BackupRequest(program: "test", cache: cache)
          ).run()
        }
        return false
      }
    }
    #expect(outcome.kind == .busy)
  }

  /// How an attempt on another thread ended, the first time.
  private final class Outcome: Sendable {
    private let queue = BoundedQueue<LifecycleError.Kind?>(capacity: 1000)

    func note(_ body: () throws -> Void) {
      do {
        try body()
        queue.put(nil)
      } catch { queue.put((error as? LifecycleError)?.kind) }
    }

    var kind: LifecycleError.Kind? {
      queue.close()
      return queue.take() ?? nil
    }
  }

  // MARK: - Nothing to do

  @Test func anUnchangedSourceMakesNoSnapshotWhenAsked() throws {
    let rig = try rig()
    let first = try rig.backup(keeping: "cache") { $0.skipsUnchanged = true }
    #expect(!first.isUnchanged && first.snapshot != nil)
    let second = try rig.backup(keeping: "cache") { $0.skipsUnchanged = true }
    #expect(second.isUnchanged && second.snapshot == nil && second.opened == 0)
    #expect(try rig.repository.snapshots().snapshots.count == 1)
    // Without a state the same is found out by reading, and noted.
    let third = try rig.backup(keeping: "other") { $0.skipsUnchanged = true }
    #expect(third.isUnchanged && third.opened == 81)
    #expect(try rig.backup(keeping: "other") { $0.skipsUnchanged = true }.opened == 0)
    try rig.directory.write("changed", at: "tree/a/7")
    let last = try rig.backup(keeping: "cache") { $0.skipsUnchanged = true }
    #expect(last.snapshot != nil && last.opened == 1)
  }

  @Test func aPlanThatDoesNotFitIsRefused() throws {
    let rig = try rig()
    let huge = UInt64(Int64.max)
    let error = #expect(throws: LifecycleError.self) {
      try rig.backup(keeping: "cache") { $0.keepFree = huge }
    }
    #expect(
      error?.description.contains("folders/tree 8.6 MiB") == true, "\(String(describing: error))")
    #expect(error?.description.contains("user-data") == true)
    #expect(try rig.names("repo/leases").isEmpty && rig.names("repo/snapshots").isEmpty)
    #expect(try rig.repository.storage.space() != nil)
    // What is known is not new.
    _ = try rig.backup(keeping: "cache")
    _ = try rig.backup(keeping: "cache") { $0.keepFree = huge }
    // Nor is what an earlier snapshot had, as far as one can tell without a state.
    _ = try rig.backup(keeping: "other") { $0.keepFree = huge }
  }
}
