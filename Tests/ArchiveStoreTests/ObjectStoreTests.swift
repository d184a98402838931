import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A repository in a store without rename: all operations work, and a snapshot is committed only if
/// none of the data that it needs can have been removed.
struct ObjectStoreTests {
  private let files = PruneFixture.files(0..<6)

  @Test(arguments: [true, false]) func everythingWorks(isExclusive: Bool) throws {
    var fixture = try ObjectStoreFixture(canCreateExclusively: isExclusive)
    for range in [0..<6, 4..<9, 20..<24, 20..<22] { try fixture.backUp(PruneFixture.files(range)) }
    let repository = try fixture.open()
    #expect(try repository.snapshots().snapshots.count == 4)
    let again = try repository.back(up: PruneFixture.files(4..<9), sequence: 9)
    #expect(again.snapshot.totals.stored == 0)
    fixture.snapshots.append((again, PruneFixture.files(4..<9)))
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
    try fixture.forget(2)
    try fixture.forget(0)
    let report = try fixture.prune()
    #expect(report.removedPacks > 0 && report.waitingPacks == 0)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
    #expect(try fixture.prune().plan.isIdle)
    for directory in [
      RepositoryLayout.leases, RepositoryLayout.pending, RepositoryLayout.condemned,
    ] {
      #expect(try fixture.names(directory).isEmpty, "\(directory)")
    }
  }

  /// A program that has just begun has no heartbeat yet, even if it removes objects.
  @Test func checkSaysThatAProgramIsRunning() throws {
    let store = MemoryObjectStorage()
    _ = try Repository.create(in: store, program: "test")
    let repository = try Repository.open(store)
    let lease = try Lease(repository.storage)
    let right = try #require(try PruneLease(lease))
    let reason = "a program is running, with 0 unfinished objects"
    let remarks = try Checked(repository, .trees).findings
    #expect(remarks.contains(.remark(object: "\(lease.path)", reason: reason)), "\(remarks)")
    #expect(remarks.contains(.remark(object: "leases/prune", reason: reason)), "\(remarks)")
    right.release()
    lease.release()
  }

  /// A program that may not remove objects could not release the right, which would stay taken for
  /// an hour.
  @Test func theRightIsOnlyForProgramsThatCanRemove() throws {
    let store = MemoryObjectStorage()
    _ = try Repository.create(in: store, program: "test")
    let watched = WatchedStorage(store)
    watched.state.withLock {
      $0.failure = { event in
        guard event.hasPrefix("remove ") else { return nil }
        return StoreError(
          .system, "remove", subject: "it", reason: "access denied",
          cause: SystemError(.remove, "it", number: 13))
      }
    }
    let error = storeError { try RepositoryPrune(Repository.open(watched)).run() }
    #expect(error?.reason == "access denied", "\(error as Any)")
    #expect(error?.hint == "use credentials that may remove objects")
    _ = try RepositoryPrune(Repository.open(store)).run()
  }

  /// A check lists the index objects with their sizes, and does not request the status of each.
  @Test func checkRequestsEachIndexObjectOnce() throws {
    var fixture = try ObjectStoreFixture()
    for range in [0..<6, 4..<9, 20..<24] { try fixture.backUp(PruneFixture.files(range)) }
    fixture.store.state.withLock { $0.requests = [] }
    #expect(try fixture.damage().isEmpty)
    let requests = fixture.store.state.withLock { $0.requests }.filter { $0.contains(" index/") }
    #expect(requests.count == 3, "\(requests)")
  }

  /// A lost connection is not damage, and ends the check at once. An object that alone cannot be
  /// read is not damaged either.
  @Test(arguments: [true, false]) func checkEndsWithTheConnection(isLost: Bool) throws {
    var fixture = try ObjectStoreFixture()
    for range in [0..<6, 4..<9, 20..<24] { try fixture.backUp(PruneFixture.files(range)) }
    let repository = try fixture.open()
    let failed = Mutex(0)
    fixture.store.state.withLock { state in
      state.hook = { request in
        failed.withLock { failed in
          guard failed > 0 && isLost || failed == 0 && request.hasPrefix("get snapshots/") else {
            return nil
          }
          failed += 1
          return .refused
        }
      }
    }
    if isLost {
      #expect(storeError { try Checked(repository, .trees) }?.code == .system)
      #expect(failed.withLock { $0 } == 2)
    } else {
      let checked = try Checked(repository, .trees)
      #expect(checked.damaged.isEmpty && checked.report.unreadable == 1)
      #expect(checked.report.hasOtherReasons)
    }
  }

  /// A second program cannot create a repository over an existing one.
  @Test func twoProgramsDoNotCreateOneRepository() throws {
    let store = MemoryObjectStorage()
    let first = try ObjectStoreFixture().store.load(RepositoryLayout.settings, limit: 1 << 20)
    let once = OneCall()
    store.state.withLock { state in
      state.hook = { request in
        guard request == "create repository.json", once.take() else { return nil }
        try? store.save(first, as: RepositoryLayout.settings, by: .root)
        return nil
      }
    }
    #expect(storeError { try Repository.create(in: store, program: "test") }?.code == .notEmpty)
    #expect(try store.load(RepositoryLayout.settings, limit: 1 << 20) == first)
  }

  /// A snapshot is first stored as pending, where it is invisible, and then under its name.
  @Test func aSnapshotIsPendingFirst() throws {
    let fixture = try ObjectStoreFixture()
    let store = fixture.store
    let seen = Mutex<[String]>([])
    let program = try ObjectStoreProgram(store)
    program.connection.state.withLock { state in
      state.action = { event in
        let pending = (try? store.list(RepositoryLayout.pending).count) ?? -1
        let listed = (try? Repository.open(store).snapshots().snapshots.count) ?? -1
        if event.hasPrefix("commit snapshots/") || pending > 0 {
          seen.withLock { $0.append("\(pending) \(listed)") }
        }
      }
    }
    try program.repository.back(up: files)
    program.endInterruption()
    // The requests: put the pending object, check the lease, put the snapshot, check the lease,
    // remove the pending object.
    let all = seen.withLock { $0 }
    #expect(
      all.first == "1 0" && all.contains("1 1") && !all.contains { $0.hasPrefix("0 1") }, "\(all)")
    #expect(try fixture.names(RepositoryLayout.pending).isEmpty)
    let requests = program.connection.state.withLock(\.events)
    let commit = try #require(requests.firstIndex { $0.hasPrefix("commit snapshots/") })
    #expect(requests[commit + 1].hasPrefix("list leases/"))
  }

  /// A program slept for an hour, and blobs that it relies on were removed: it stores no snapshot,
  /// and reports that it has to be run again.
  @Test(arguments: [true, false]) func aWriterWhosePacksAreGoneMakesNoSnapshot(
    isExclusive: Bool
  ) throws {
    var fixture = try ObjectStoreFixture(canCreateExclusively: isExclusive)
    try fixture.backUp(files)
    try fixture.backUp(PruneFixture.files(20..<22))
    let program = try ObjectStoreProgram(fixture.store)
    let session = try program.repository.beginWriting()
    let tree = try program.store(files, session)
    #expect(session.statistics.newBlobs == 0)
    try fixture.forget(0)
    #expect(try fixture.prune().removedPacks == 0)
    fixture.store.advance(by: 3700)
    #expect(try fixture.prune().removedPacks > 0)
    let error = storeError {
      try session.finish(program.repository.makeSnapshot(tree, sequence: 9))
    }
    #expect(error?.code == .busy && error?.hint != nil, "\(error as Any)")
    #expect(try fixture.names(RepositoryLayout.pending).isEmpty)
    #expect(try fixture.open().snapshots().snapshots.count == 1)
    try fixture.backUp(files)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// A program slept for an hour, but no blob that it relies on was removed: its work is not lost.
  @Test func aWriterWhosePacksAreThereCommitsWithANewLease() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(PruneFixture.files(20..<22))
    let program = try ObjectStoreProgram(fixture.store)
    let session = try program.repository.beginWriting()
    let lease = session.lease.path
    let tree = try program.store(files, session)
    fixture.store.advance(by: 3700)
    try fixture.prune()
    #expect(try fixture.names(lease).contains("dead"))
    let stored = try session.finish(program.repository.makeSnapshot(tree, sequence: 9))
    fixture.snapshots.append((stored, files))
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
    // The rest of the dead lease is removed after a day.
    #expect(try fixture.names(RepositoryLayout.leases) == [lease.name])
    try fixture.pruneLater()
    #expect(try fixture.names(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// A program that wakes up after its lease was removed must not treat the lease as valid.
  @Test func aHeartbeatDoesNotReviveALease() throws {
    let fixture = try ObjectStoreFixture()
    let lease = try Lease(fixture.open().storage)
    #expect(try !lease.isDead())
    fixture.store.advance(by: 3700)
    try fixture.pruneLater()
    #expect(try fixture.names(RepositoryLayout.leases).isEmpty)
    try lease.touchAlive()
    #expect(try lease.isDead())
    #expect(storeError { try lease.remove(RepositoryLayout.readme) }?.code == .leaseLost)
    #expect(storeError { try lease.save([1], as: RepositoryLayout.readme) }?.code == .leaseLost)
  }

  /// Packs stay as long as a reader with a lease may need them.
  @Test func packsStayWhileAReaderHasALease() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(files)
    try fixture.backUp(PruneFixture.files(20..<22))
    let reader = try #require(ReaderLease.ifPossible(fixture.open()))
    try fixture.forget(0)
    let waiting = try fixture.prune()
    #expect(waiting.removedPacks == 0 && waiting.waitingFor == [reader.name])
    reader.release()
    #expect(try fixture.prune().removedPacks > 0)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// A snapshot that is pinned during its removal stays.
  @Test func aSnapshotThatIsPinnedDuringItsRemovalStays() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(files)
    let id = fixture.snapshots[0].stored.id
    let program = try ObjectStoreProgram(fixture.store)
    let once = OneCall()
    program.connection.state.withLock { state in
      state.action = { [store = fixture.store] event in
        guard event.hasPrefix("remove \(id.hex)"), once.take() else { return }
        try? store.touch(RepositoryLayout.pin(id))
      }
    }
    let report = try SnapshotRemoval(program.repository).run([id]) { _ in }
    #expect(once.isTaken && report.pinned == [id])
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
    #expect(try fixture.names(RepositoryLayout.pending).isEmpty)
  }

  /// A snapshot that the store never sends is removed only if that is forced and the snapshot is
  /// not pinned.
  @Test func aSnapshotThatIsNeverSentIsRemovedByForce() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(files)
    try fixture.backUp(files)
    let id = fixture.snapshots[0].stored.id
    let path = RepositoryLayout.tested.snapshot(id)
    fixture.store.state.withLock { state in
      state.hook = { $0 == "get \(path)" ? .refused : nil }
    }
    let removal = SnapshotRemoval(try fixture.open())
    #expect(storeError { try removal.run([id]) { _ in } }?.reason == "the test says so")
    let pin = RepositoryLayout.pin(id)
    try fixture.store.touch(pin)
    #expect(try removal.run([id], forced: [id]) { _ in }.pinned == [id])
    #expect(fixture.store.paths.contains(path))
    try fixture.store.remove(pin)
    var removed: [SnapshotID] = []
    let report = try removal.run([id], forced: [id]) { removed.append($0) }
    #expect(removed == [id] && report == SnapshotRemoval.Report())
    #expect(try removal.run([id], forced: [id]) { _ in }.gone == [id])
    fixture.store.state.withLock { $0.hook = nil }
    fixture.snapshots.removeFirst()
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// No condemned pack becomes usable as long as a program that lost the right to remove packs may
  /// still remove it.
  @Test func aDamagedListWaitsForASleepingPrune() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(files)
    let sleeping = try fixture.open().beginWriting()
    let right = try #require(try PruneLease(sleeping.lease))
    fixture.store.advance(by: 3700)
    try fixture.prune()
    let damaged = CondemnedObject.path(Digest.some)
    try fixture.store.save([1, 2, 3], as: damaged, by: .root)
    #expect(storeError { try fixture.open().beginWriting() }?.code == .busy)
    #expect(try !right.isHeld())
    fixture.store.advance(by: 90_000)
    try fixture.store.remove(damaged)
    try fixture.prune()
    try fixture.store.save([1, 2, 3], as: damaged, by: .root)
    try fixture.backUp(files)
    #expect(try fixture.names(RepositoryLayout.condemned).isEmpty)
    sleeping.abandon()
  }
}

/// One prune at a time, with and without conditional requests.
struct ObjectStoreRightTests {
  /// A second prune begins at any request of the first one: only one of them removes packs, and no
  /// data is lost.
  @Test(arguments: [true, false]) func aSecondPruneMayBeginAtAnyTime(isExclusive: Bool) throws {
    let original = try ObjectStoreFixture.withUnusedPacks(canCreateExclusively: isExclusive)
    for number in Sampling.steps(9, "second prune") {
      let fixture = original.copy()
      let program = try ObjectStoreProgram(fixture.store)
      let second = Once<RepositoryPrune.Report>()
      let call = program.interrupt(at: number) { second.run { try fixture.prune() } }
      let first = Result { try RepositoryPrune(program.repository).run() }
      program.endInterruption()
      guard call.isTaken else {
        #expect(number > 10)
        return
      }
      let errors = [storeError { try first.get() }, storeError { try second.value() }]
      #expect(errors.allSatisfy { $0 == nil || $0?.code == .busy }, "request \(number): \(errors)")
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "request \(number)")
      let last = try fixture.pruneLater()
      #expect(last.waitingPacks == 0, "request \(number)")
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "request \(number)")
    }
  }

  @Test(arguments: [true, false]) func aRightIsTakenOverAnHourLater(isExclusive: Bool) throws {
    let fixture = try ObjectStoreFixture(canCreateExclusively: isExclusive)
    let (first, second) = (try fixture.open().beginWriting(), try fixture.open().beginWriting())
    let right = try #require(try PruneLease(first.lease))
    #expect(try PruneLease(second.lease) == nil)
    #expect(try right.isHeld())
    #expect(
      try LeaseStatus.all(fixture.open().storage).filter(\.removesObjects).map(\.name)
        == [first.lease.path.name])
    fixture.store.advance(by: 3700)
    try second.lease.touchAlive()
    let taken = try #require(try PruneLease(second.lease))
    #expect(try taken.isHeld() && !right.isHeld())
    right.release()
    #expect(try taken.isHeld())
    taken.release()
    #expect(try fixture.names(PruneLease.path).isEmpty)
  }
}
