import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Copies in which each call of a storage fails, and interrupted copies: every snapshot in the
/// target is complete, and the next copy does the rest.
struct CopyFaultTests {
  enum Side: Sendable, CaseIterable {
    case source, target

    func storage(of fixture: CopyFixture) -> WatchedStorage {
      self == .source ? fixture.source.storage : fixture.target.storage
    }
  }

  @Test(arguments: Side.allCases, [false, true])
  func eachFailedCallLeavesCompleteSnapshots(of side: Side, failsRepeatedly: Bool) throws {
    var original = try CopyFixture()
    // Some of the data is in the target, so that some frames are needed only in part.
    try original.target.backUp(PruneFixture.files(0..<2))
    try original.target.forget(0)
    try original.source.repository.pin([original.source.snapshots[0].stored.id])
    for number in Sampling.steps(7, "copy") {
      let fixture = try original.copied()
      let storage = side.storage(of: fixture)
      storage.fail(at: number, failsRepeatedly: failsRepeatedly)
      let error = storeError { try fixture.copy() }
      let hasFailed = storage.hasFailed
      storage.fail(at: nil)
      let text = "\(side), call \(number), \(error?.description ?? "no error")"
      #expect(try fixture.differences().isEmpty, "\(text)")
      #expect(try fixture.target.damage().isEmpty, "\(text)")
      let report = try fixture.copy()
      #expect(!report.hasDamage && report.present + report.copied.count == 3, "\(text)")
      try fixture.expectComplete(3, "\(text)")
      #expect(try fixture.target.repository.pins().count == 1, "\(text)")
      #expect(try fixture.source.damage().isEmpty, "\(text)")
      if !hasFailed { return }
    }
  }

  /// The same with `--check`, on several threads.
  @Test func eachFailedCallOfACheckLeavesCompleteSnapshots() throws {
    let original = try CopyFixture()
    for number in Sampling.steps(17, "copy with a check") {
      let fixture = try original.copied()
      fixture.target.storage.fail(at: number)
      _ = storeError { try fixture.copy(check: true, workers: 2) }
      let hasFailed = fixture.target.storage.hasFailed
      fixture.target.storage.fail(at: nil)
      #expect(try fixture.differences().isEmpty, "call \(number)")
      _ = try fixture.copy(check: true, workers: 2)
      try fixture.expectComplete(3, "call \(number)")
      if !hasFailed { return }
    }
  }

  /// If the target fails to send a snapshot, it may already be the copy, so no second copy is made.
  @Test func aCopyThatTheTargetDoesNotSendIsNotMadeAgain() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    let path = "\(RepositoryLayout.tested.snapshot(try fixture.copies()[0].id))"
    fixture.target.storage.state.withLock { state in
      state.failure = { event in
        event.hasPrefix("load ") && event.contains(path)
          ? StoreError(.system, "read", subject: event, reason: "the test says so") : nil
      }
    }
    let error = storeError { try fixture.copy() }
    #expect(error?.reason == "the test says so" && error?.hint?.contains("by its id") == false)
    #expect(try fixture.copies().count == 3)
    fixture.target.storage.state.withLock { $0.failure = nil }
    #expect(try fixture.copy().present == 3)
  }

  /// A snapshot that the source fails to send is not copied, and is not reported as damaged.
  @Test func aSnapshotThatTheSourceDoesNotSendIsNotDamaged() throws {
    let fixture = try CopyFixture()
    let path = "\(RepositoryLayout.tested.snapshot(fixture.source.snapshots[0].stored.id))"
    fixture.source.storage.state.withLock { state in
      state.failure = { event in
        event.hasPrefix("load ") && event.contains(path)
          ? StoreError(.system, "read", subject: event, reason: "the test says so") : nil
      }
    }
    let report = try fixture.copy()
    #expect(report.copied.count == 2 && report.unreadable.map(\.reason) == ["the test says so"])
    #expect(!report.hasDamage)
    fixture.source.storage.state.withLock { $0.failure = nil }
    #expect(try fixture.copy().copied.count == 1)
    try fixture.expectComplete(3)
  }

  /// An interrupted copy keeps the packs that it has begun, and writes an index for them. The next
  /// copy reads only the remaining ones.
  @Test func anInterruptedCopyIsContinued() throws {
    let fixture = try CopyFixture()
    let counters = ProgressCounters(of: "pack")
    let report = try RepositoryCopy(
      from: RepositoryCopy.Side(fixture.source.repository),
      to: RepositoryCopy.Side(fixture.target.repository), counters: counters
    ) { counters.progress.filesDone > 1 }.run()
    #expect(report.isInterrupted && report.copied.isEmpty && report.newPacks > 0)
    #expect(try fixture.target.memory.list(RepositoryLayout.indexes).count == 1)
    #expect(try fixture.target.memory.list(RepositoryLayout.leases).isEmpty)
    let stored = try fixture.target.storedBytes()
    let next = try fixture.copy()
    #expect(next.missingBlobs < next.neededBlobs && next.copied.count == 3)
    #expect(try fixture.target.storedBytes() == stored + next.newBytes)
    try fixture.expectComplete(3)
    #expect(try fixture.target.frames() == fixture.source.frames(), "no frame is stored twice")
  }

  @Test func anInterruptedSearchStoresNothing() throws {
    let fixture = try CopyFixture()
    let before = try fixture.target.objects()
    let error = storeError { try fixture.copy(isStopping: { true }) }
    #expect(error?.code == .interrupted && error?.action == "finish the copy to")
    #expect(try fixture.target.objects() == before)
  }

  /// Packs of a copy that was killed before it wrote its index are not copied again.
  @Test func packsOfAKilledCopyAreUsed() throws {
    let fixture = try CopyFixture()
    let storage = fixture.target.storage
    storage.state.withLock { state in
      state.action = { [storage] event in
        if event.hasPrefix("commit index/") { storage.fail(at: 1, failsRepeatedly: true) }
      }
    }
    #expect(storeError { try fixture.copy() } != nil)
    storage.state.withLock { $0.action = nil }
    storage.fail(at: nil)
    let packs = try fixture.target.packs()
    #expect(try !packs.isEmpty && fixture.target.memory.list(RepositoryLayout.indexes).isEmpty)
    let report = try fixture.copy()
    #expect(report.missingBlobs == 0 && report.newPacks == 0 && report.copied.count == 3)
    #expect(try fixture.target.packs() == packs)
    try fixture.expectComplete(3)
  }

  /// Condemned packs that no index names are not used.
  @Test func condemnedPacksAreNotAdopted() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    let memory = fixture.target.memory
    for name in try memory.list(RepositoryLayout.snapshots) {
      try memory.remove(RepositoryLayout.snapshots.appending(name))
    }
    for name in try memory.list(RepositoryLayout.indexes) {
      try memory.remove(RepositoryLayout.indexes.appending(name))
    }
    let packs = try fixture.target.packs()
    let condemned = CondemnedObject(packs: packs).encode()
    try memory.put(condemned, CondemnedObject.path(Blake2b.hash(condemned)))
    let report = try fixture.copy()
    #expect(report.missingBlobs == report.neededBlobs && report.copied.count == 3)
    try fixture.expectComplete(3)
  }
}
