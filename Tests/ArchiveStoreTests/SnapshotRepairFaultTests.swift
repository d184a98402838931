import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Repairs of snapshots after damage to packs, with failing storage calls, and followed by a prune.
struct SnapshotRepairFaultTests {
  /// Damage to stored packs.
  enum Damage: Sendable, CaseIterable {
    /// A byte of a file's content, which a check of the data has found.
    case data
    /// A byte of a tree, which no check has read.
    case trees
    /// A missing pack of file contents, and a missing one of trees.
    case missingData
    case missingTrees
    /// A truncated pack of trees.
    case short

    func apply(to fixture: SnapshotRepairFixture) throws {
      let isTree = [.trees, .missingTrees, .short].contains(self)
      let pack = RepositoryLayout.tested.pack(try fixture.pack(of: isTree ? "sub" : "a"))
      switch self {
      case .data, .trees: try fixture.memory.change(pack) { $0[$0.count / 3] ^= 0xff }
      case .missingData, .missingTrees: try fixture.memory.remove(pack)
      case .short: try fixture.memory.change(pack) { $0.removeLast($0.count - 40) }
      }
      if self == .data { try fixture.check() }
    }
  }

  /// The repaired snapshot contains everything that can still be restored. A repair of the packs
  /// and a prune then find no damage.
  @Test(arguments: Damage.allCases, [false, true])
  func pruneWorksAfterTheRepair(of damage: Damage, packsFirst: Bool) throws {
    let fixture = try SnapshotRepairFixture()
    try damage.apply(to: fixture)
    let left = try fixture.entries(of: fixture.stored)
    #expect(left.count < fixture.entries.count)
    #expect(storeError { try RepositoryPrune(fixture.repository).run() } != nil || damage == .data)
    if packsFirst {
      try repairPacks(fixture)
      let error = storeError { try RepositoryPrune(fixture.repository).run() }
      let needsTrees = [.trees, .missingTrees, .short].contains(damage)
      #expect((error?.hint?.contains("repair snapshots --forget") ?? false) == needsTrees)
    }
    let (report, repaired) = try fixture.repair(forget: true)
    #expect(report.repaired == 1 && report.removed == 1)
    let new = try #require(repaired.first?.new)
    #expect(Set(try fixture.entries(of: new).keys) == Set(left.keys))
    if !packsFirst { try repairPacks(fixture) }
    try expectHealthy(fixture)
    #expect(Set(try fixture.entries(of: new).keys) == Set(left.keys))
  }

  private func repairPacks(_ fixture: SnapshotRepairFixture) throws {
    try fixture.check()
    _ = try PackRepair(fixture.repository).run()
  }

  /// Prunes, and expects no damage before and after.
  private func expectHealthy(
    _ fixture: SnapshotRepairFixture, _ comment: Comment? = nil
  ) throws {
    #expect(try fixture.affected().isEmpty, comment)
    let pruned = try RepositoryPrune(fixture.repository).run()
    #expect(pruned.lostBlobs == 0 && pruned.damaged.isEmpty, comment)
    let checked = try Checked(fixture.repository, .everything)
    #expect(checked.damaged.isEmpty && checked.costs.isEmpty, "\(checked.findings)")
  }

  /// A repair does not notice damage to file contents unless a check has recorded it; it reads the
  /// trees itself.
  @Test func damageToDataMustBeRecorded() throws {
    let fixture = try SnapshotRepairFixture()
    let pack = RepositoryLayout.tested.pack(try fixture.pack(of: "a"))
    try fixture.memory.change(pack) { $0[$0.count / 3] ^= 0xff }
    #expect(try fixture.repair().report.isIdle)
    try fixture.check()
    #expect(try fixture.repair().report.repaired == 1)
  }

  /// A repair does not rely on a damaged copy of a tree that it needs, but stores the tree again.
  @Test func damagedCopyOfATreeIsNotReliedOn() throws {
    let fixture = try SnapshotRepairFixture()
    // The repaired root is an empty tree, and the stored copy of the empty tree is damaged.
    let session = try fixture.repository.beginWriting()
    let empty = try session.storeTree([])
    let top = try session.finish(fixture.repository.makeSnapshot(empty, sequence: 8))
    let found = try fixture.repository.beginReading().locate(
      BlobID(kind: .tree, digest: empty.digest))
    let pack = RepositoryLayout.tested.pack(try #require(found?.pack))
    try fixture.memory.change(pack) { $0[$0.count / 3] ^= 0xff }
    let (_, repaired) = try fixture.repair(forget: true)
    #expect(repaired.map(\.old.id) == [top.id])
    #expect(try fixture.affected().isEmpty)
  }

  /// Each call fails in turn: nothing that can be restored is lost, no snapshot disappears without
  /// a repaired one, and the next repair completes the work.
  @Test(arguments: [false, true], [false, true])
  func repairSurvivesEveryFailedCall(failsRepeatedly: Bool, isRecorded: Bool) throws {
    let original = try SnapshotRepairFixture()
    try original.repository.pin([original.stored.id])
    if isRecorded {
      // The pack is read: blobs that cannot be read because of a failed call are not lost.
      try Damage.data.apply(to: original)
    } else {
      try original.lose("sub")
      try original.lose("a")
    }
    let left = Set(try original.entries(of: original.stored).keys)
    var failures = 0
    for number in Sampling.steps(5, "snapshot repair") {
      let fixture = try original.copy()
      fixture.storage.fail(at: number, failsRepeatedly: failsRepeatedly)
      if storeError({ try fixture.repair(forget: true) }) != nil { failures += 1 }
      let hasFailed = fixture.storage.hasFailed
      fixture.storage.fail(at: nil)
      for id in try fixture.snapshots() {
        let stored = try fixture.repository.snapshot(id)
        #expect(Set(try fixture.entries(of: stored).keys) == left, "call \(number)")
      }
      #expect(try !fixture.snapshots().isEmpty, "call \(number)")
      try fixture.removeLeases()
      _ = try fixture.repair(forget: true)
      try fixture.removeLeases()
      let ids = try fixture.snapshots()
      #expect(ids.count == 1 && ids[0] != original.stored.id, "call \(number)")
      #expect(try fixture.repository.pins().contains(ids[0]), "call \(number)")
      if isRecorded { try repairPacks(fixture) }
      try expectHealthy(fixture, "call \(number)")
      if !hasFailed { break }
    }
    #expect(failures > 5)
  }

  @Test func interruptedRepairChangesNothing() throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.lose("a")
    let error = storeError {
      try SnapshotRepair(fixture.repository, isForgetting: true, isStopping: { true }).run { _ in }
    }
    #expect(error?.code == .interrupted && error?.description.contains("repair") == true)
    #expect(try fixture.snapshots() == [fixture.stored.id])
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
  }
}
