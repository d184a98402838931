import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Removal of snapshots, and pins.
struct SnapshotRemovalTests {
  private let memory = MemoryStorage()
  private let watched: WatchedStorage
  private let repository: Repository

  init() throws {
    watched = WatchedStorage(memory)
    repository = try Repository.create(in: watched, program: "test")
  }

  /// Backs up files, one of which differs in each snapshot.
  private func make(_ count: Int, in repository: Repository? = nil) throws -> [SnapshotID] {
    try (1...count).map { number in
      try (repository ?? self.repository).back(
        up: [("same", [1, 2, 3]), ("own", [9, UInt8(number)])], sequence: UInt64(number)
      ).id
    }
  }

  @discardableResult
  private func remove(_ ids: [SnapshotID]) throws -> SnapshotRemoval.Report {
    try SnapshotRemoval(repository).run(ids) { _ in }
  }

  private func present() throws -> Set<SnapshotID> {
    Set(try RepositoryListing.snapshots(memory))
  }

  /// Checks that each remaining snapshot can be restored.
  private func expectIntact() throws {
    let listing = try repository.snapshots()
    #expect(listing.damaged.isEmpty)
    let reader = try repository.beginReading()
    for stored in listing.snapshots {
      #expect(try reader.bytes(at: "same", in: stored) == [1, 2, 3])
      #expect(try reader.bytes(at: "own", in: stored) == [9, UInt8(stored.snapshot.sequence)])
    }
  }

  @Test func removedSnapshotsAreGoneAndTheOthersIntact() throws {
    let ids = try make(5)
    var removed: [SnapshotID] = []
    let report = try SnapshotRemoval(repository).run([ids[1], ids[3]]) { removed.append($0) }
    #expect(report == SnapshotRemoval.Report() && removed == [ids[1], ids[3]])
    #expect(try present() == [ids[0], ids[2], ids[4]])
    #expect(try memory.list(RepositoryLayout.leases).isEmpty)
    try expectIntact()
  }

  @Test func snapshotThatIsAlreadyGoneIsNotAnError() throws {
    let ids = try make(3)
    try remove([ids[0]])
    let report = try remove([ids[0], ids[1]])
    #expect(report.gone == [ids[0]])
    #expect(try present() == [ids[2]])
  }

  @Test func damagedSnapshotCanBeRemoved() throws {
    let ids = try make(2)
    try memory.change(RepositoryLayout.tested.snapshot(ids[0])) { $0[20] ^= 1 }
    try remove([ids[0]])
    #expect(try present() == [ids[1]])
  }

  // MARK: - Pins

  @Test func pinnedSnapshotStays() throws {
    let ids = try make(3)
    #expect(try repository.pin([ids[0], ids[1]]) == [ids[0], ids[1]])
    #expect(try repository.pin([ids[1], ids[2]]) == [ids[2]])
    #expect(try repository.pins() == Set(ids))
    #expect(try memory.load(RepositoryLayout.pin(ids[0]), limit: 1).isEmpty)
    #expect(try repository.unpin([ids[2]]) == [ids[2]])
    #expect(try repository.unpin([ids[2]]).isEmpty)
    #expect(try remove(ids).pinned == [ids[0], ids[1]])
    #expect(try present() == [ids[0], ids[1]])
    #expect(try memory.list(RepositoryLayout.leases).isEmpty)
  }

  /// The pins are the only evidence that a snapshot is lost.
  @Test func pinsOfMissingSnapshotsStay() throws {
    let ids = try make(3)
    try repository.pin([ids[0], ids[1]])
    try memory.remove(RepositoryLayout.tested.snapshot(ids[0]))
    try memory.put([], RepositoryLayout.pins.appending("foreign"))
    try remove([ids[2]])
    #expect(try repository.lostPinned() == [ids[0]])
    #expect(try repository.unpin([ids[0]]) == [ids[0]])
    #expect(try repository.pins() == [ids[1]] && repository.lostPinned().isEmpty)
    #expect(try memory.list(RepositoryLayout.pins).contains("foreign"))
  }

  @Test func missingDirectoryOfPinsIsCreated() throws {
    let ids = try make(2)
    try memory.remove(RepositoryLayout.pins)
    #expect(try repository.pins().isEmpty)
    try remove([ids[0]])
    try repository.pin([ids[1]])
    #expect(try repository.pins() == [ids[1]])
  }

  @Test func missingSnapshotCannotBePinned() throws {
    let ids = try make(2)
    try remove([ids[0]])
    let error = storeError { try repository.pin([ids[0]]) }
    #expect(error?.code == .noSnapshot && error?.hint != nil)
    #expect(try repository.pins().isEmpty)
  }

  /// Another program pins the snapshot at any moment of its removal: either the snapshot stays, or
  /// that program gets an error.
  @Test func snapshotPinnedAtAnyMomentOfItsRemovalIsKept() throws {
    var outcomes: Set<String> = []
    for moment in 1...40 {
      let ids = try make(2)
      let other = try Repository.open(memory)
      let refusal = Mutex<StoreError?>(nil)
      let calls = Atomic<Int>(0)
      watched.state.withLock {
        $0.action = { _ in
          guard calls.add(1, ordering: .relaxed).newValue == moment else { return }
          let error = storeError { try other.pin([ids[0]]) }
          refusal.withLock { $0 = error }
        }
      }
      let report = try remove([ids[0]])
      watched.state.withLock { $0.action = nil }
      if calls.load(ordering: .relaxed) < moment { break }
      let isPresent = try present().contains(ids[0])
      let error = refusal.withLock { $0 }
      #expect(isPresent || error?.code == .noSnapshot, "moment \(moment)")
      #expect(isPresent == !report.pinned.isEmpty, "moment \(moment)")
      outcomes.insert(isPresent ? (error == nil ? "pinned" : "both") : "removed")
      try expectIntact()
      try memory.removeAllSnapshots()
    }
    #expect(outcomes.isSuperset(of: ["pinned", "removed"]), "\(outcomes)")
  }

  /// A prune that lists the snapshots while one is renamed away does not see it. If the removal
  /// restores it, it leaves its lease behind, so that the prune removes no pack.
  @Test(arguments: [false, true]) func snapshotThatIsMovedBackDelaysARunningPrune(
    isPruning: Bool
  ) throws {
    let ids = try make(2)
    let other = try Repository.open(memory)
    let prune = try other.beginWriting()
    let right = isPruning ? try PruneLease(prune.lease) : nil
    #expect((right != nil) == isPruning)
    let once = Once<Void>()
    watched.state.withLock {
      $0.action = { event in
        // Between the first check for a pin and the second.
        guard event.hasPrefix("rename leases/") else { return }
        once.run { _ = try other.pin([ids[0]]) }
      }
    }
    #expect(try remove([ids[0]]).pinned == [ids[0]])
    watched.state.withLock { $0.action = nil }
    try once.value()
    #expect(try present() == Set(ids))
    let left = try repository.leases().filter { $0.name != prune.lease.path.name }
    #expect(left.count == (isPruning ? 1 : 0))
    right?.release()
    prune.abandon()
    try expectIntact()
  }

  // MARK: - Failures

  @Test func everyFailingCallLeavesOnlyIntactSnapshots() throws {
    for failsRepeatedly in [false, true] {
      for call in 1... {
        let ids = try make(4)
        try repository.pin([ids[3]])
        watched.fail(at: call, failsRepeatedly: failsRepeatedly)
        var removed: [SnapshotID] = []
        let error = storeError {
          _ = try SnapshotRemoval(repository).run([ids[0], ids[1]]) { removed.append($0) }
        }
        let hasFailed = watched.hasFailed
        watched.fail(at: nil)
        let left = try present()
        #expect(left.isSuperset(of: [ids[2], ids[3]]), "call \(call)")
        #expect(left.isDisjoint(with: removed), "call \(call)")
        #expect(try repository.pins() == [ids[3]])
        try expectIntact()
        // The next run finishes the work.
        try remove([ids[0], ids[1]])
        #expect(try present() == [ids[2], ids[3]])
        try memory.removeAllSnapshots()
        if !hasFailed {
          #expect(error == nil && call > 10)
          break
        }
      }
    }
  }

  @Test func everyFailingCallOfAPinIsReported() throws {
    for call in 1... {
      let ids = try make(2)
      watched.fail(at: call)
      let error = storeError { try repository.pin(ids) }
      let hasFailed = watched.hasFailed
      watched.fail(at: nil)
      // A failure after the last rename only leaves the directory of the lease behind.
      if error == nil { #expect(try repository.pins() == Set(ids)) }
      #expect(try present() == Set(ids))
      try repository.pin(ids)
      #expect(try repository.pins() == Set(ids))
      try memory.removeAllSnapshots()
      if !hasFailed { break }
    }
  }

  @Test func lostLeaseEndsTheRemoval() throws {
    let ids = try make(3)
    let renames = Atomic<Int>(0)
    watched.state.withLock {
      $0.action = { [memory] event in
        guard event.hasPrefix("rename"), renames.add(1, ordering: .relaxed).newValue == 2 else {
          return
        }
        // Another program removes the lease before the second snapshot is removed.
        guard let name = try? memory.list(RepositoryLayout.leases).first else { return }
        try? memory.rename(
          RepositoryLayout.leases.appending(name), to: RepositoryLayout.leases.appending("taken"))
      }
    }
    let error = storeError { try remove([ids[0], ids[1]]) }
    watched.state.withLock { $0.action = nil }
    #expect(error?.code == .leaseLost && error?.hint != nil)
    #expect(try present() == [ids[1], ids[2]])
  }

  @Test func interruptedRemovalKeepsTheRest() throws {
    let ids = try make(3)
    let steps = Atomic<Int>(0)
    let removal = SnapshotRemoval(
      repository, isStopping: { steps.add(1, ordering: .relaxed).newValue > 1 })
    let error = storeError { _ = try removal.run(ids) { _ in } }
    #expect(error?.code == .interrupted && error?.hint != nil)
    #expect(try present() == [ids[1], ids[2]])
    #expect(try memory.list(RepositoryLayout.leases).isEmpty)
  }

  @Test(arguments: ["write", "prune"])
  func unknownFeatureRefusesTheRemoval(_ kind: String) throws {
    let ids = try make(1)
    let text = String(
      decoding: try memory.load(RepositoryLayout.settings, limit: 1 << 20), as: UTF8.self)
    let changed = text.replacing("\"\(kind)\": []", with: "\"\(kind)\": [\"locks\"]")
    try #require(changed != text)
    try memory.put(Array(changed.utf8), RepositoryLayout.settings)
    let opened = try Repository.open(memory)
    let error = storeError { _ = try SnapshotRemoval(opened).run(ids) { _ in } }
    #expect(error?.code == .unknownFeature)
    #expect(try present() == Set(ids))
  }
}

extension MemoryStorage {
  fileprivate func removeAllSnapshots() throws {
    for directory in [RepositoryLayout.snapshots, RepositoryLayout.pins] {
      for name in try list(directory) { try remove(directory.appending(name)) }
    }
  }
}
