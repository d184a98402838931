import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A condemned object may be damaged at any moment: writers remove it, the packs that it named stay
/// until the next prune, and no snapshot loses data.
struct DamagedCondemnedTests {
  enum Damage: CaseIterable {
    case changed, cutToHalf, emptied

    func callAsFunction(_ bytes: inout [UInt8]) {
      switch self {
      case .changed: bytes[bytes.count / 2] ^= 4
      case .cutToHalf: bytes.removeLast(bytes.count / 2)
      case .emptied: bytes = []
      }
    }
  }

  /// A repository in which a prune has condemned packs, which wait for another program that has
  /// ended since.
  private func fixture() throws -> PruneFixture {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<10))
    try fixture.backUp(PruneFixture.files(20..<22))
    let other = try fixture.repository.beginWriting()
    try fixture.forget(0)
    #expect(try fixture.prune().waitingPacks == 2)
    other.abandon()
    #expect(try fixture.condemned().count == 1)
    return fixture
  }

  private func damaged(_ damage: Damage) throws -> PruneFixture {
    let fixture = try fixture()
    let path = try #require(try fixture.condemned().first)
    try fixture.memory.change(path) { damage(&$0) }
    return fixture
  }

  // MARK: - One damaged object

  @Test(arguments: Damage.allCases) func aBackupRemovesItAndUsesThePacks(_ damage: Damage) throws {
    var fixture = try damaged(damage)
    let path = try #require(try fixture.condemned().first)
    let session = try fixture.repository.beginWriting()
    #expect(session.damagedCondemned.map(\.subject) == ["\(path)"])
    #expect(session.damagedCondemned.first?.reason.hasSuffix("it was removed") == true)
    #expect(try fixture.condemned().isEmpty)
    let files = PruneFixture.files(0..<10)
    let tree = try session.storeTree(try session.entries(of: files))
    #expect(session.statistics.newBlobs == 0)
    let stored = try session.finish(fixture.repository.makeSnapshot(tree, sequence: 9))
    fixture.snapshots.append((stored, files))
    #expect(try fixture.prune().removedPacks == 0)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  @Test(arguments: Damage.allCases) func aPruneCondemnsThePacksAgain(_ damage: Damage) throws {
    let fixture = try damaged(damage)
    let dry = try fixture.plan()
    #expect(dry.plan.packs(.remove).count == 2 && dry.damagedCondemned.count == 1)
    #expect(try fixture.condemned().count == 1)
    let report = try fixture.prune()
    #expect(report.damagedCondemned.count == 1 && report.removedPacks == 2)
    #expect(try fixture.condemned().isEmpty && fixture.prune().plan.isIdle)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  @Test func theRepairsRemoveIt() throws {
    let packs = try damaged(.changed)
    #expect(try PackRepair(packs.repository).run().damagedCondemned.count == 1)
    #expect(try packs.condemned().isEmpty && packs.findings().isEmpty)
    let snapshots = try damaged(.emptied)
    #expect(try SnapshotRepair(snapshots.repository).run { _ in }.damagedCondemned.count == 1)
    #expect(try snapshots.condemned().isEmpty && snapshots.findings().isEmpty)
  }

  /// A condemned object with any changed bit is ignored.
  @Test func anyChangedBitIsRecognized() throws {
    let memory = MemoryStorage()
    _ = try Repository.create(in: memory, program: "test")
    let bytes = CondemnedObject(packs: [Blake2b.hash([1])]).encode()
    let path = CondemnedObject.path(Blake2b.hash(bytes))
    for bit in 0..<(8 * bytes.count) {
      var changed = bytes
      changed[bit / 8] ^= 1 << (bit % 8)
      try memory.put(changed, path)
      let objects = try CondemnedObjects(memory)
      #expect(objects.damaged.count == 1 && objects.packs.isEmpty, "bit \(bit)")
    }
    try memory.put(bytes, path)
    #expect(try CondemnedObjects(memory).packs == [Blake2b.hash([1])])
  }

  // MARK: - Objects that are not removed

  /// An intact object in a format that this version does not know.
  @Test func anObjectOfANewerVersionIsRefusedAndKept() throws {
    for text in ["", "{}", "[1]", "text", #"{"format":"sandboxctl-condemned","version":1}"#] {
      try expectRefusal(of: text)
    }
    let fixture = try fixture()
    let packs = try fixture.packs()
    for path in try fixture.condemned() { try fixture.memory.remove(path) }
    _ = try fixture.memory.condemn(packs, version: 2)
    try expectRefusal(fixture)
    #expect(try fixture.packs() == packs)
  }

  private func expectRefusal(of text: String) throws {
    let fixture = try PruneFixture()
    _ = try fixture.memory.condemn(text: text)
    try expectRefusal(fixture)
  }

  private func expectRefusal(_ fixture: PruneFixture) throws {
    let objects = try fixture.condemned()
    let runs: [() throws -> Void] = [
      { try fixture.repository.back(up: PruneFixture.files(0..<2), sequence: 9) },
      { _ = try fixture.prune() }, { _ = try fixture.plan() },
      { _ = try PackRepair(fixture.repository).run() },
    ]
    for run in runs {
      let error = storeError { try run() }
      #expect(error?.code == .unsupported && error?.hint == "use a newer sandboxctl")
    }
    #expect(try fixture.condemned() == objects)
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
    #expect(try Checked(fixture.repository, .everything).damaged == objects.map { "\($0)" })
  }

  @Test func anUnknownPruneFeaturePreventsTheRemoval() throws {
    let fixture = try damaged(.changed)
    try fixture.memory.change(RepositoryLayout.settings) { text in
      text = Array(
        String(decoding: text, as: UTF8.self)
          .replacing("\"prune\": []", with: "\"prune\": [\"new\"]").utf8)
    }
    let repository = try Repository.open(fixture.memory)
    #expect(repository.settings.features.prune == ["new"])
    #expect(storeError { try repository.beginWriting() }?.code == .unknownFeature)
    #expect(try fixture.condemned().count == 1)
  }

  /// Another program may have read the list before it was damaged, and be removing the packs now.
  @Test func aWriterWaitsForAProgramThatRemovesObjects() throws {
    let fixture = try damaged(.changed)
    let other = try Lease(fixture.memory)
    let right = try #require(try PruneLease(other))
    let error = storeError { try fixture.repository.beginWriting() }
    #expect(error?.code == .busy && error?.hint?.contains("sandboxctl leases") == true)
    #expect(try fixture.condemned().count == 1)
    right.release()
    #expect(storeError { try fixture.repository.beginWriting() } == nil)
    #expect(try fixture.condemned().isEmpty)
  }

  @Test func aDirectoryWithTheNameOfAnObjectIsRefused() throws {
    let directory = TemporaryDirectory()
    let storage = try LocalStorage.create(path: ByteString(directory("repo")))
    let repository = try Repository.create(in: storage, program: "test")
    let path = CondemnedObject.path(Blake2b.hash([1]))
    try storage.makeDirectories([path.name], in: RepositoryLayout.condemned)
    let error = storeError { try repository.beginWriting() }
    #expect(error?.code == .damaged && error?.subject == "\(path)", "\(error as Any)")
    #expect(try storage.list(RepositoryLayout.condemned) == [path.name])
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  // MARK: - At any moment

  /// Each call of a backup that removes the object fails in turn.
  @Test(arguments: [false, true]) func eachFailedCallLeavesAllSnapshotsComplete(
    failsRepeatedly: Bool
  ) throws {
    let original = try damaged(.changed)
    for number in Sampling.steps(3, "a damaged condemned object") {
      var fixture = try original.copy()
      fixture.storage.fail(at: number, failsRepeatedly: failsRepeatedly)
      let error = storeError { try fixture.repository.beginWriting().abandon() }
      let hasFailed = fixture.storage.hasFailed
      fixture.storage.fail(at: nil)
      #expect(try fixture.lost().isEmpty, "call \(number), \(error?.description ?? "no error")")
      // The right to remove objects, if it was not released, is reserved for another hour.
      fixture.clock.advance(by: 3700)
      if storeError({ try fixture.repository.beginWriting().abandon() })?.code == .busy {
        // If it has no heartbeat, the hour begins only now.
        fixture.clock.advance(by: 3700)
      }
      try fixture.backUp(PruneFixture.files(0..<10))
      #expect(try fixture.condemned().isEmpty, "call \(number)")
      #expect(try fixture.pruneLater().waitingPacks == 0, "call \(number)")
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty, "call \(number)")
      #expect(try fixture.prune().plan.isIdle, "call \(number)")
      if !hasFailed { return }
    }
  }

  /// Before each call of a prune in turn, all condemned objects are damaged, and a backup that
  /// needs the condemned packs begins. With `asleep`, the prune has slept until its lease expired.
  @Test(arguments: [false, true]) func noBackupLosesDataToARunningPrune(asleep: Bool) throws {
    let original = try PruneFixture.withUnusedPacks()
    let files = PruneFixture.files(0..<24)
    var refused = 0
    for number in Sampling.steps(3, "damage during a prune") {
      var fixture = try original.copy()
      let counter = Counter()
      let made = Mutex<StoredSnapshot?>(nil)
      let isBusy = Atomic<Bool>(false)
      fixture.storage.state.withLock { state in
        state.action = { [fixture] _ in
          guard counter.next() == number else { return }
          if asleep { fixture.clock.advance(by: 3700) }
          do {
            try fixture.damageCondemned()
            let stored = try Repository.open(fixture.memory).back(up: files, sequence: 9)
            made.withLock { $0 = stored }
          } catch {
            isBusy.store((error as? StoreError)?.code == .busy, ordering: .relaxed)
          }
        }
      }
      let error = storeError { try fixture.prune() }
      fixture.storage.state.withLock { $0.action = nil }
      let comment: Comment = "call \(number): \(error as Any)"
      // During the sleep, other programs may have merged the index objects that the prune was
      // reading.
      let isExpected =
        error == nil || error?.code == .leaseLost || error?.code == .busy
        || asleep && error?.code == .missing
      #expect(isExpected, comment)
      if let stored = made.withLock({ $0 }) {
        fixture.snapshots.append((stored, files))
      } else if counter.count >= number {
        let wasBusy = isBusy.load(ordering: .relaxed)
        #expect(wasBusy, comment)
        refused += 1
      }
      #expect(try fixture.lost().isEmpty, comment)
      #expect(try fixture.pruneLater().waitingPacks == 0, comment)
      #expect(try fixture.prune().plan.isIdle, comment)
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty, comment)
      if counter.count < number { break }
    }
    #expect(!asleep || refused == 0)
  }

  /// A prune is killed at each call in turn, and its condemned object is damaged afterwards.
  @Test func aPruneThatWasKilledIsContinued() throws {
    let original = try PruneFixture.withUnusedPacks()
    for number in Sampling.steps(3, "a killed prune") {
      var fixture = try original.copy()
      fixture.storage.fail(at: number, failsRepeatedly: true)
      _ = storeError { try fixture.prune() }
      let hasFailed = fixture.storage.hasFailed
      fixture.storage.fail(at: nil)
      try fixture.damageCondemned()
      fixture.clock.advance(by: 3700)
      try fixture.backUp(PruneFixture.files(0..<24))
      #expect(try fixture.condemned().isEmpty, "call \(number)")
      #expect(try fixture.lost().isEmpty && fixture.findings().allSatisfy(\.isRemark))
      #expect(try fixture.pruneLater().waitingPacks == 0, "call \(number)")
      #expect(try fixture.prune().plan.isIdle, "call \(number)")
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty, "call \(number)")
      if !hasFailed { return }
    }
  }

  /// On a full volume, packs are removed before their index entries. If the condemned object is
  /// then damaged, the packs seem to be lost: `prune` suggests the repair, which finds that no
  /// snapshot needs them.
  @Test func removedPacksThatTheIndexNamesAreRepaired() throws {
    let fixture = try PruneFixture.withUnusedPacks()
    let unused = try fixture.plan().plan.packs(.remove).map(\.id)
    try #require(!unused.isEmpty)
    _ = try fixture.memory.condemn(unused)
    for pack in unused { try fixture.memory.remove(RepositoryLayout.tested.pack(pack)) }
    try fixture.damageCondemned()
    let error = storeError { try fixture.prune() }
    #expect(error?.code == .missing && error?.hint?.contains("repair packs") == true)
    #expect(try fixture.condemned().isEmpty)
    let repaired = try PackRepair(fixture.repository).run()
    #expect(Set(repaired.packs.map(\.id)) == Set(unused))
    #expect(try fixture.lost().isEmpty)
    _ = try fixture.prune()
    #expect(try fixture.prune().plan.isIdle)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }
}

extension PruneFixture {
  /// The paths of the condemned objects.
  fileprivate func condemned() throws -> [ObjectPath] {
    try memory.list(RepositoryLayout.condemned).map { RepositoryLayout.condemned.appending($0) }
  }

  /// Damages all condemned objects.
  fileprivate func damageCondemned() throws {
    for path in try condemned() { try memory.change(path) { $0[$0.count / 2] ^= 4 } }
  }
}

extension RepositoryCheck.Finding {
  fileprivate var isRemark: Bool { if case .remark = self { true } else { false } }
}
