import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Programs that sleep, crash or lose requests, at each request to a store without rename: every
/// snapshot that was reported is complete, and the next prune cleans up.
struct ObjectStoreFaultTests {
  /// A writer sleeps for more than an hour at any request, while a prune removes packs that it
  /// relies on.
  @Test(arguments: [false, true]) func aWriterMaySleepAtEachRequest(relies: Bool) throws {
    var original = try ObjectStoreFixture()
    try original.backUp(PruneFixture.files(0..<4))
    try original.backUp(PruneFixture.files(20..<22))
    let files = relies ? PruneFixture.files(0..<4) : PruneFixture.files(40..<44)
    for number in Sampling.steps(3, "sleeping writer") {
      var fixture = original.copy()
      let program = try ObjectStoreProgram(fixture.store)
      let call = program.interrupt(at: number) { [fixture] in
        var other = fixture
        try? other.forget(0)
        for _ in 0..<2 {
          _ = try? other.prune()
          other.store.advance(by: 3700)
        }
        _ = try? other.prune()
      }
      let written = Result { try program.repository.back(up: files, sequence: 9) }
      program.endInterruption()
      guard call.isTaken else {
        #expect(number > 15)
        return
      }
      fixture.snapshots.remove(at: 0)
      if let stored = try? written.get() { fixture.snapshots.append((stored, files)) }
      let error = storeError { try written.get() }
      #expect(
        error == nil || [.busy, .leaseLost].contains(error?.code), "\(number): \(error as Any)")
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "request \(number)")
      try fixture.pruneLater()
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "request \(number)")
      let count = try fixture.open().snapshots().snapshots.count
      #expect(count == fixture.snapshots.count, "request \(number)")
      try fixture.backUp(files)
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "request \(number)")
    }
  }

  /// A prune sleeps for hours at any request, while another one completes and a writer stores the
  /// removed data again.
  @Test func aPruneMaySleepAtEachRequest() throws {
    let original = try ObjectStoreFixture.withUnusedPacks()
    let files = PruneFixture.files(0..<6)
    for number in Sampling.steps(9, "sleeping prune") {
      var fixture = original.copy()
      let program = try ObjectStoreProgram(fixture.store)
      let stored = Once<StoredSnapshot>()
      let call = program.interrupt(at: number) { [fixture] in
        fixture.store.advance(by: 3700)
        _ = try? fixture.prune()
        stored.run { try fixture.open().back(up: files, sequence: 9) }
        _ = try? fixture.prune()
      }
      let pruned = storeError { try RepositoryPrune(program.repository).run() }
      program.endInterruption()
      guard call.isTaken else {
        #expect(number > 15)
        return
      }
      fixture.snapshots.append((try stored.value(), files))
      #expect(try fixture.lost().isEmpty, "request \(number), \(pruned as Any)")
      #expect(try fixture.damage().isEmpty, "request \(number), \(pruned as Any)")
      try fixture.pruneLater()
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "request \(number)")
    }
  }

  /// A request of a backup is refused, its answer is lost, or it and all later requests are
  /// refused, as after a crash.
  @Test(arguments: Fault.allCases) func aBackupMayFailAtEachRequest(fault: Fault) throws {
    var original = try ObjectStoreFixture()
    try original.backUp(PruneFixture.files(0..<4))
    let files = PruneFixture.files(2..<6)
    for number in Sampling.steps(2, "failing backup") {
      var fixture = original.copy()
      let call = fault.happen(at: number, in: fixture.store)
      let written = Result { try fixture.open().back(up: files, sequence: 9) }
      Fault.end(in: fixture.store)
      if let stored = try? written.get() { fixture.snapshots.append((stored, files)) }
      guard call.isTaken else {
        #expect(number > 15)
        return
      }
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "\(number)")
      let count = try fixture.open().snapshots().snapshots.count
      if fault == .refused { #expect(count == fixture.snapshots.count, "\(number)") }
      try fixture.pruneLater()
      #expect(try fixture.names(RepositoryLayout.pending).isEmpty, "\(number)")
      #expect(try fixture.names(RepositoryLayout.leases).isEmpty, "\(number)")
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "\(number)")
    }
  }

  /// Requests of a prune fail in the same ways.
  @Test(arguments: Fault.allCases) func aPruneMayFailAtEachRequest(fault: Fault) throws {
    let original = try ObjectStoreFixture.withUnusedPacks()
    for number in Sampling.steps(9, "failing prune") {
      let fixture = original.copy()
      let call = fault.happen(at: number, in: fixture.store)
      let error = storeError { try fixture.prune() }
      Fault.end(in: fixture.store)
      #expect(try fixture.lost().isEmpty, "\(number), \(error as Any)")
      guard call.isTaken else {
        #expect(number > 30)
        return
      }
      let next = try fixture.pruneLater()
      #expect(next.waitingPacks == 0 && next.plan.isIdle, "\(number)")
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "\(number)")
      #expect(try fixture.names(RepositoryLayout.leases).isEmpty, "\(number)")
      #expect(try fixture.names(RepositoryLayout.condemned).isEmpty, "\(number)")
    }
  }

  /// Requests of a removal of snapshots fail in the same ways: each snapshot is complete or
  /// removed.
  @Test(arguments: Fault.allCases) func aRemovalMayFailAtEachRequest(fault: Fault) throws {
    var original = try ObjectStoreFixture()
    for start in 0..<3 { try original.backUp(PruneFixture.files(start..<(start + 2))) }
    for number in Sampling.steps(2, "failing removal") {
      var fixture = original.copy()
      let call = fault.happen(at: number, in: fixture.store)
      let ids = fixture.snapshots.prefix(2).map(\.stored.id)
      _ = storeError { try SnapshotRemoval(fixture.open()).run(ids) { _ in } }
      Fault.end(in: fixture.store)
      guard call.isTaken else {
        #expect(number > 8)
        return
      }
      let listed = Set(try RepositoryListing.snapshots(fixture.open().storage))
      #expect(listed.contains(fixture.snapshots[2].stored.id))
      fixture.snapshots.removeAll { !listed.contains($0.stored.id) }
      try fixture.pruneLater()
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "\(number)")
    }
  }

  /// The ways in which a request fails.
  enum Fault: CaseIterable, Sendable {
    case refused, answerLost, crash

    /// Makes the request with a number fail, counted from now.
    func happen(at number: Int, in store: MemoryObjectStorage) -> OneCall {
      let call = OneCall(number)
      store.state.withLock { state in
        state.hook = { _ in
          if call.take() { return self == .answerLost ? .answerLost : .refused }
          return self == .crash && call.isTaken ? .refused : nil
        }
      }
      return call
    }

    static func end(in store: MemoryObjectStorage) { store.state.withLock { $0.hook = nil } }
  }
}
