import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Prunes while other programs use the repository: data that they rely on stays.
struct PruneConcurrencyTests {
  /// A repository with a pack that becomes unused.
  private func fixture() throws -> PruneFixture {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<10))
    try fixture.backUp(PruneFixture.files(20..<22))
    return fixture
  }

  private func store(
    _ files: [(name: String, bytes: [UInt8])], _ session: WritingSession
  ) throws -> TreeReference {
    try session.storeTree(
      files.map { file in
        TreeEntry(
          name: ByteString(file.name),
          node: .file(
            try session.storeFile(
              logicalPath: ByteString("folders/test/" + file.name), bytes: file.bytes)))
      })
  }

  /// A writer that began before the packs were condemned may rely on them and make a snapshot.
  @Test func packsStayWhileAnEarlierWriterMayNeedThem() throws {
    var fixture = try fixture()
    let session = try fixture.repository.beginWriting()
    try fixture.forget(0)
    let report = try fixture.prune()
    #expect(report.removedPacks == 0 && report.waitingPacks == 2)
    #expect(report.waitingFor == [session.lease.path.name])
    let files = PruneFixture.files(0..<10)
    let tree = try store(files, session)
    #expect(session.statistics.newBlobs == 0)
    let stored = try session.finish(fixture.repository.makeSnapshot(tree, sequence: 9))
    fixture.snapshots.append((stored, files))
    let next = try fixture.prune()
    #expect(next.removedPacks == 0 && next.waitingPacks == 0)
    #expect(try fixture.memory.list(RepositoryLayout.condemned).isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// A prune has two condemned objects: one whose packs it may remove, since a reader has ended,
  /// and its own, which waits for a writer. The writer commits a snapshot and ends, at each of the
  /// prune's listings in turn.
  @Test func aWriterMayCommitAtEachListingOfAPrune() throws {
    for number in 1...200 {
      var fixture = try fixture()
      try fixture.backUp(PruneFixture.files(40..<42))
      try fixture.forget(0)
      let reader = try ReaderLease(fixture.repository)
      #expect(try fixture.prune().waitingPacks == 2)
      let session = try fixture.repository.beginWriting()
      let files = fixture.snapshots[0].files
      let tree = try store(files, session)
      #expect(session.statistics.newBlobs == 0)
      try fixture.forget(0)
      let (call, commit) = (OneCall(number), Once<StoredSnapshot>())
      fixture.storage.state.withLock { state in
        state.action = { [repository = fixture.repository] event in
          if event.hasPrefix("commit condemned/") { reader.release() }
          guard event.hasPrefix("list "), !WatchedStorage.isFurtherPackDirectory(event),
            call.take()
          else { return }
          commit.run { try session.finish(repository.makeSnapshot(tree, sequence: 9)) }
        }
      }
      _ = try fixture.prune()
      fixture.storage.state.withLock { $0.action = nil }
      guard call.isTaken else {
        #expect(number > 5)
        return
      }
      fixture.snapshots.append((try commit.value(), files))
      for _ in 0..<2 {
        #expect(try fixture.lost().isEmpty, "listing \(number)")
        _ = try fixture.prune()
      }
      let damage = try fixture.findings().filter(\.isDamage)
      #expect(try fixture.lost().isEmpty && damage.isEmpty, "listing \(number): \(damage)")
    }
    Issue.record("the prune does not end")
  }

  /// A writer that began after the packs were condemned does not rely on them, so they are removed
  /// even while it runs.
  @Test func aLaterWriterDelaysNothing() throws {
    var fixture = try fixture()
    let first = try fixture.repository.beginWriting()
    try fixture.forget(0)
    #expect(try fixture.prune().waitingPacks == 2)
    first.abandon()
    let session = try fixture.repository.beginWriting()
    #expect(try fixture.prune().removedPacks == 2)
    let files = PruneFixture.files(0..<10)
    let tree = try store(files, session)
    #expect(session.statistics.newBlobs > 0)
    let stored = try session.finish(fixture.repository.makeSnapshot(tree, sequence: 9))
    fixture.snapshots.append((stored, files))
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// A writer without a heartbeat for an hour loses its lease, and cannot commit.
  @Test func aWriterThatSleptForAnHourMakesNoSnapshot() throws {
    var fixture = try fixture()
    let session = try fixture.repository.beginWriting()
    let tree = try store(PruneFixture.files(0..<10), session)
    try fixture.forget(0)
    fixture.clock.advance(by: 3599)
    #expect(try fixture.prune().waitingPacks == 2)
    fixture.clock.advance(by: 3601)
    #expect(try fixture.prune().removedPacks == 2)
    let error = storeError {
      try session.finish(fixture.repository.makeSnapshot(tree, sequence: 9))
    }
    #expect(error?.code == .leaseLost)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// Packs that are in no index object belong to a running writer or to a run that ended.
  @Test func packsOfAnInterruptedRunAreRemovedAfterAllWritersHaveEnded() throws {
    var fixture = try fixture()
    let session = try fixture.repository.beginWriting()
    let tree = try store(PruneFixture.files(50..<60), session)
    let pack = try #require(session.packers.all[0].detachOpen())
    try session.packs.close(pack)
    let unindexed = try fixture.packs().count
    #expect(try fixture.prune().plan.packs(.remove).isEmpty)
    #expect(try fixture.packs().count == unindexed)
    session.abandon()
    let report = try fixture.prune()
    #expect(report.plan.packs(.remove).map(\.reason) == [.notIndexed])
    #expect(try fixture.packs().count == unindexed - 1)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
    withExtendedLifetime(tree) {}
    fixture.snapshots = []
  }

  /// Even if there is always some running writer, packs of interrupted runs are removed: those that
  /// are older than all running writers. The packs of these writers stay.
  @Test func packsOlderThanAllWritersAreRemoved() throws {
    var fixture = try fixture()
    let left = try leavePack(of: PruneFixture.files(50..<60), in: fixture)
    fixture.clock.advance(by: 10)
    let first = try fixture.repository.beginWriting()
    fixture.clock.advance(by: 10)
    let files = PruneFixture.files(70..<80)
    let tree = try store(files, first)
    let pack = try #require(first.packers.all[0].detachOpen())
    try first.packs.close(pack)
    // The pack is condemned but stays until the writer, which may rely on it, has ended.
    let marked = try fixture.prune()
    #expect(marked.plan.packs(.remove).map(\.id) == [left] && marked.waitingPacks == 1)
    #expect(try fixture.packs().contains(left))
    let second = try fixture.repository.beginWriting()
    let stored = try first.finish(fixture.repository.makeSnapshot(tree, sequence: 9))
    fixture.snapshots.append((stored, files))
    #expect(try fixture.prune().removedPacks == 1)
    #expect(try !fixture.packs().contains(left))
    second.abandon()
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// A writer whose start time is unknown may have written any pack.
  @Test func packsStayWhileAWriterOfUnknownAgeRuns() throws {
    let fixture = try fixture()
    let left = try leavePack(of: PruneFixture.files(50..<60), in: fixture)
    fixture.clock.advance(by: 10)
    let session = try fixture.repository.beginWriting()
    try fixture.memory.remove(session.lease.path.appending(LeaseStatus.Owner.sign))
    #expect(try fixture.prune().plan.packs(.remove).isEmpty)
    #expect(try fixture.packs().contains(left))
    session.abandon()
  }

  /// Leaves a pack behind, as a run that is killed before it writes its index.
  private func leavePack(
    of files: [(name: String, bytes: [UInt8])], in fixture: PruneFixture
  ) throws -> Digest {
    let before = try fixture.packs()
    let session = try fixture.repository.beginWriting()
    _ = try store(files, session)
    let pack = try #require(session.packers.all[0].detachOpen())
    try session.packs.close(pack)
    session.abandon()
    return try #require(fixture.packs().subtracting(before).first)
  }

  /// Packs that a reader with a lease relies on stay until it ends.
  @Test func packsStayWhileAReaderHasALease() throws {
    var fixture = try fixture()
    var reader: RepositoryReader? = try fixture.repository.beginReading(
      lease: ReaderLease(fixture.repository))
    let (stored, files) = fixture.snapshots[0]
    try fixture.forget(0)
    let waiting = try fixture.prune()
    #expect(waiting.waitingPacks == 2)
    let lease = try #require(try fixture.repository.leases().first)
    #expect(waiting.waitingFor == [lease.name] && lease.isReader)
    #expect(lease.host == Host.name && lease.process == Host.processID)
    #expect(try reader?.bytes(at: ByteString(files[0].name), in: stored) == files[0].bytes)
    reader = nil
    #expect(try fixture.repository.leases().isEmpty)
    #expect(try fixture.prune().removedPacks == 2)
  }

  /// Removes the first snapshot and prunes as soon as a pack is read. Returns the report of the
  /// prune.
  private func pruneWhileReading(
    _ fixture: PruneFixture, _ read: () throws -> Void
  ) throws -> RepositoryPrune.Report {
    let once = Once<RepositoryPrune.Report>()
    let first = RepositoryLayout.tested.snapshot(fixture.snapshots[0].stored.id)
    fixture.storage.state.withLock { state in
      state.action = { [memory = fixture.memory] event in
        guard event.hasPrefix("range packs/") || event.hasPrefix("load packs/") else { return }
        once.run {
          try memory.remove(first)
          return try RepositoryPrune(Repository.open(memory)).run()
        }
      }
    }
    defer { fixture.storage.state.withLock { $0.action = nil } }
    try read()
    return try once.value()
  }

  @Test func packsStayWhileACheckReadsThem() throws {
    var fixture = try fixture()
    var result: RepositoryCheck.Result?
    let report = try pruneWhileReading(fixture) {
      result = try RepositoryCheck(fixture.repository, reading: .everything, workers: 1).run()
    }
    #expect(report.removedPacks == 0 && report.waitingPacks == 2)
    var findings: [RepositoryCheck.Finding] = []
    let summary = try result?.forEachFinding { findings.append($0) }
    #expect(summary?.packsRead == 4 && summary?.damaged == 0 && summary?.costs == 0, "\(findings)")
    #expect(!findings.contains { "\($0)".contains("leases/") }, "its own lease: \(findings)")
    #expect(try fixture.repository.leases().count == 1)
    result = nil
    #expect(try fixture.repository.leases().isEmpty)
    fixture.snapshots.removeFirst()
    #expect(try fixture.prune().removedPacks == 2)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// A check that reads no packs, or that finds no directory of leases, takes no lease.
  @Test func aCheckOfTreesTakesNoLease() throws {
    let fixture = try fixture()
    let memory = fixture.memory
    _ = try RepositoryCheck(fixture.repository, workers: 1).run()
    #expect(!fixture.storage.state.withLock(\.events).contains { $0.contains("touch reader") })
    for name in try memory.list(RepositoryLayout.leases) {
      try memory.remove(RepositoryLayout.leases.appending(name))
    }
    try memory.remove(RepositoryLayout.leases)
    _ = try RepositoryCheck(fixture.repository, reading: .everything, workers: 1).run()
    #expect(try memory.status(RepositoryLayout.leases) == nil)
  }

  @Test func packsStayWhileTheGrowthIsRead() throws {
    var fixture = try fixture()
    let heads = try fixture.repository.heads(cache: nil)
    var growth: RepositoryGrowth?
    let report = try pruneWhileReading(fixture) {
      growth = try fixture.repository.growth(of: heads) { _, _ in }
    }
    #expect(report.removedPacks == 0 && report.waitingPacks == 2)
    #expect(growth?.rows.count == 2 && growth?.unreadable == 0 && growth?.lostBlobs == 0)
    #expect(try fixture.repository.leases().isEmpty)
    fixture.snapshots.removeFirst()
    #expect(try fixture.prune().removedPacks == 2)
  }

  /// The lease of a prune that crashed does not delay the next one.
  @Test func aDeadPruneDoesNotDelayTheNext() throws {
    var fixture = try fixture()
    try fixture.forget(0)
    fixture.storage.state.withLock { state in
      state.action = { [storage = fixture.storage] event in
        let isRemoval = event.hasPrefix("rename leases/") && event != "rename \(PruneLease.path)"
        if isRemoval { storage.fail(at: 1, failsRepeatedly: true) }
      }
    }
    #expect(storeError { try fixture.prune() } != nil)
    fixture.storage.state.withLock { ($0.action, $0.failing) = (nil, nil) }
    #expect(try fixture.memory.list(RepositoryLayout.condemned).count == 1)
    // The right to remove objects stays with the dead program for an hour.
    fixture.clock.advance(by: 3700)
    #expect(try fixture.prune().removedPacks == 2)
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// Another program takes the right before this one renames its directory into place: only the
  /// other one gets it.
  @Test func onlyOneProgramHasTheRight() throws {
    let fixture = try fixture()
    let other = try fixture.repository.beginWriting()
    let once = Once<PruneLease?>()
    fixture.storage.state.withLock { state in
      state.action = { [lease = other.lease] event in
        guard event == "rename \(PruneLease.path)" else { return }
        once.run { try PruneLease(lease) }
      }
    }
    #expect(storeError { try fixture.prune() }?.code == .busy)
    fixture.storage.state.withLock { $0.action = nil }
    let right = try #require(try once.value())
    #expect(try right.isHeld())
    right.release()
    #expect(try fixture.memory.list(RepositoryLayout.leases) == [other.lease.path.name])
  }

  /// A prune that sleeps while it writes an index object loses the right to remove objects. It
  /// reports that, and causes no damage.
  @Test func aRightLostDuringTheSweepIsReported() throws {
    var fixture = try PruneFixture()
    for number in 0..<4 { try fixture.backUp(PruneFixture.files(number..<(number + 2))) }
    #expect(try RepositoryListing.indexes(fixture.memory).count < 4)
    try fixture.forget(0)
    let packs = try fixture.packs()
    let isCondemned = Mutex(false)
    fixture.storage.state.withLock { state in
      state.action = { [memory = fixture.memory] event in
        if event.hasPrefix("commit condemned/") { isCondemned.withLock { $0 = true } }
        guard event == "start", isCondemned.withLock({ $0 }) else { return }
        let owners = (try? memory.list(PruneLease.path)) ?? []
        for name in owners where name.bytes.starts(with: "of-".utf8) {
          try? memory.remove(PruneLease.path.appending(name))
        }
      }
    }
    #expect(storeError { try fixture.prune() }?.code == .leaseLost)
    #expect(try fixture.packs().isSuperset(of: packs))
    fixture.storage.state.withLock { $0.action = nil }
    #expect(try fixture.lost().isEmpty && fixture.findings().allSatisfy { !$0.isDamage })
  }
}
