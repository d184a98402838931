import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A run that ends during a merge: all system calls from one of the merge's calls on fail, which
/// leaves the same state on disk as a kill at that call. `MergeKillTests` kills processes.
struct MergeCrashTests {
  @Test func mergeFailsAtEachSystemCall() throws {
    let calls = try CrashedMerge.calls()
    #expect(calls.count > 40, "\(calls)")
    var (old, both, merged) = (0, 0, 0)
    for number in calls {
      let crash = try CrashedMerge()
      let before = Set(try RepositoryListing.indexes(crash.storage))
      let plan = Faults.Plan(at: number, number: 5, failsRepeatedly: true)
      try Faults.inject(plan) { try crash.finish() }
      #expect(plan.hasFired, "call \(number)")
      let now = Set(try RepositoryListing.indexes(crash.storage))
      // Replaced objects are removed only after their replacement exists.
      switch (now.isSuperset(of: before), now.count) {
      case (true, 2): old += 1
      case (true, 3): both += 1
      default:
        merged += 1
        let found = try LoadedIndex.loadAll(from: crash.storage).objects
        let packs = try RepositoryListing.packs(crash.storage)
        #expect(found.contains { Set($0.packIDs) == packs }, "call \(number)")
      }
      try crash.expectWhole("call \(number)")
      if number % 3 == 0 { try crash.expectMergedByTheNext("call \(number)") }
    }
    #expect(old > 10 && both > 5 && merged > 5, "\(old), \(both), \(merged)")
  }
}

/// A repository with a backup, and another backup that ends with a merge.
private struct CrashedMerge {
  let storage: WatchedStorage
  private let directory: TestSupport.TemporaryDirectory
  private let repository: Repository
  private let session: WritingSession
  private let snapshot: Snapshot

  private static let files = (1...3).map {
    ("\($0)", SeededBytes.some(seed: UInt64($0), count: 70))
  }

  init() throws {
    directory = try TestSupport.TemporaryDirectory("merge", inMemory: true)
    storage = WatchedStorage(try LocalStorage.create(path: directory.path("repo")))
    repository = try Repository.create(in: storage, program: "test")
    try repository.back(up: [Self.files[0]], sequence: 1)
    session = try repository.beginWriting()
    let content = try session.storeFile(logicalPath: "folders/test/2", bytes: Self.files[1].1)
    let tree = try session.storeTree([TreeEntry(name: "2", node: .file(content))])
    snapshot = repository.makeSnapshot(tree, sequence: 2)
  }

  /// Returns the numbers of the calls that a merge makes, counted from the end of the session.
  static func calls() throws -> ClosedRange<Int> {
    let crash = try CrashedMerge()
    let plan = Faults.Plan(at: .max, number: 5)
    let begin = Box()
    crash.storage.state.withLock { state in
      state.action = { event in
        if event == "directories leases" { begin.count.withLock { $0 = plan.count } }
      }
    }
    try Faults.inject(plan) { try crash.finish() }
    #expect(crash.session.indexRemark == nil)
    #expect(try RepositoryListing.indexes(crash.storage).count == 1)
    return (begin.count.withLock { $0 } + 1)...plan.count
  }

  /// Ends the session. The snapshot exists before the merge begins, so a failed merge causes no
  /// error.
  func finish() throws { _ = try session.finish(snapshot) }

  /// Expects all backups to be complete when read with the index alone.
  func expectWhole(_ what: String, count: Int = 2) throws {
    let repository = try Repository.open(LocalStorage(path: directory.path("repo")))
    let found = try Checked(repository, .everything)
    #expect(found.damaged.isEmpty && found.costs.isEmpty, "\(what): \(found.findings)")
    let snapshots = try repository.snapshots().snapshots
    #expect(snapshots.count == count, "\(what)")
    let reader = try repository.beginReading()
    for (stored, file) in zip(snapshots, Self.files) {
      let bytes = try reader.bytes(at: ByteString(file.0), in: stored)
      #expect(bytes == file.1, "\(what)")
    }
    #expect(reader.remarks.isEmpty, "\(what): \(reader.remarks)")
  }

  /// Expects the next backup to succeed and to merge: an hour later, the right to remove objects
  /// has expired.
  func expectMergedByTheNext(_ what: String) throws {
    let prune = try? Directory.open(path: directory.path("repo/leases/prune"))
    try prune?.setModified(Timestamp(seconds: Host.now().seconds - 3700), of: "alive")
    let repository = try Repository.open(LocalStorage(path: directory.path("repo")))
    try repository.back(up: [Self.files[2]], sequence: 3)
    try expectWhole(what, count: 3)
    let indexes = try RepositoryListing.indexes(repository.storage).count
    #expect(indexes <= 2, "\(what)")
  }
}

/// A number that a closure can set.
private final class Box: Sendable {
  let count = Mutex(0)
}
