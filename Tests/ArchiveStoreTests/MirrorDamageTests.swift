import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Mirrors of damaged repositories, with failed calls, and during prunes: every snapshot of the
/// mirror is complete at any moment.
struct MirrorDamageTests {
  /// A damaged pack is not copied, nor are the snapshots that need it.
  @Test func damagedPacksAreNotCopied() throws {
    let fixture = try MirrorFixture()
    let pack = try fixture.source.pack(ofFile: 0)
    try fixture.source.flip(pack)
    let report = try fixture.mirror()
    #expect(report.damaged.count == 1 && report.damaged[0].subject.contains(pack.hex))
    #expect(!report.incomplete.isEmpty && report.hasDamage)
    #expect(report.copied.snapshots == 4 - report.incomplete.count)
    #expect(try fixture.memory.status(RepositoryLayout.tested.pack(pack)) == nil)
    #expect(try fixture.lost().isEmpty && fixture.snapshots() == report.copied.snapshots)
    // Once the pack has been replaced by an intact copy, the next run completes the mirror.
    try fixture.source.flip(pack)
    #expect(try !fixture.mirror().hasDamage)
    try fixture.expectExact()
  }

  /// An intact pack of the mirror is never replaced or removed because the original's pack is
  /// damaged or missing.
  @Test func anIntactPackOfTheMirrorStays() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let pack = RepositoryLayout.tested.pack(try fixture.source.pack(ofFile: 0))
    let intact = try fixture.memory.load(pack, limit: 1 << 30)
    try fixture.source.memory.change(pack) { $0.removeLast(9) }
    let short = try fixture.mirror()
    #expect(short.damaged.count == 1 && short.copied.isEmpty)
    #expect(try fixture.memory.load(pack, limit: 1 << 30) == intact)
    // A check records the pack, and a repair removes it from the original and its index.
    try fixture.source.memory.change(pack) { bytes in
      for at in 0..<(bytes.count / 2) { bytes[at] ^= 0x5a }
    }
    try RepositoryCheck(Repository.open(fixture.source.memory), reading: .everything, workers: 1)
      .run().recordDamage()
    _ = try PackRepair(fixture.source.repository).run()
    #expect(try fixture.source.memory.status(pack) == nil)
    for _ in 0..<2 {
      let report = try fixture.mirror()
      #expect(report.damaged.contains { $0.subject == "\(pack)" }, "\(report.damaged)")
      #expect(try fixture.memory.load(pack, limit: 1 << 30) == intact)
      #expect(try fixture.lost().isEmpty && fixture.snapshots() == 4)
    }
    // The original is repaired from the mirror.
    try fixture.source.memory.put(intact, pack)
    _ = try IndexRepair(fixture.source.repository).run()
    #expect(try fixture.source.lost().isEmpty)
    _ = try fixture.mirror()
    try fixture.expectExact()
  }

  /// The same if the original's pack is missing.
  @Test func aLostPackOfTheOriginalStays() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let pack = RepositoryLayout.tested.pack(try fixture.source.pack(ofFile: 0))
    try fixture.source.memory.remove(pack)
    let report = try fixture.mirror(allowingLargeRemoval: true)
    #expect(report.damaged.contains { $0.subject == "\(pack)" })
    #expect(try fixture.memory.status(pack) != nil && fixture.lost().isEmpty)
  }

  /// The mirror keeps the complete form of a snapshot that was repaired in the original.
  @Test func completeFormsOfRepairedSnapshotsStay() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let pack = RepositoryLayout.tested.pack(try fixture.source.pack(ofFile: 0))
    let intact = try fixture.memory.load(pack, limit: 1 << 30)
    try fixture.source.memory.remove(pack)
    _ = try PackRepair(fixture.source.repository).run()
    _ = try SnapshotRepair(fixture.source.repository, isForgetting: true).run { _ in }
    var repaired: Set<Int> = []
    for isDry in [true, false, false] {
      let report = try fixture.mirror(dry: isDry)
      let refusal = try #require(report.refusal)
      repaired.insert(refusal.repaired)
      #expect(refusal.snapshots == refusal.repaired && report.removed.isEmpty)
    }
    #expect(try fixture.memory.load(pack, limit: 1 << 30) == intact)
    #expect(try fixture.lost().isEmpty)
    let allowed = try fixture.mirror(allowingLargeRemoval: true)
    #expect(allowed.refusal == nil)
    #expect(repaired == [allowed.removed.snapshots] && allowed.removed.snapshots > 0)
  }

  /// A damaged object of the mirror is replaced by the original's if the damage is visible in its
  /// size or if it is an unusable index object.
  @Test func damageInTheMirrorIsReplaced() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let pack = RepositoryLayout.tested.pack(try fixture.source.pack(ofFile: 0))
    try fixture.memory.change(pack) { $0.removeLast(9) }
    let index = RepositoryLayout.indexes.appending(
      try #require(try fixture.memory.list(RepositoryLayout.indexes).first))
    try fixture.memory.change(index) { $0[70] ^= 1 }
    let report = try fixture.mirror()
    #expect(report.copied.packs == 1 && report.copied.indexes == 1 && !report.hasDamage)
    try fixture.expectExact()
  }

  /// Damage that only a check of all data finds is also repaired, once it is recorded. As long as
  /// the original's pack is damaged too, the record stays.
  @Test func recordedDamageInTheMirrorIsReplaced() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let pack = try fixture.source.pack(ofFile: 0)
    for storage in [fixture.memory, fixture.source.memory] {
      try storage.change(RepositoryLayout.tested.pack(pack)) { $0[3] ^= 1 }
    }
    #expect(try fixture.mirror().copied.packs == 0)
    try RepositoryCheck(Repository.open(fixture.memory), reading: .everything, workers: 1)
      .run().recordDamage()
    #expect(try fixture.mirror(dry: true).copied.packs == 1)
    let both = try fixture.mirror()
    #expect(both.copied.packs == 0 && both.hasDamage)
    #expect(try DamageRecords(fixture.memory).packs.keys.contains(pack))
    try fixture.source.memory.change(RepositoryLayout.tested.pack(pack)) { $0[3] ^= 1 }
    let report = try fixture.mirror()
    #expect(report.copied.packs == 1 && !report.hasDamage)
    try fixture.expectExact()
    #expect(try fixture.damage().isEmpty)
  }

  @Test func damagedSnapshotsAndIndexesAreNotCopied() throws {
    var fixture = try MirrorFixture()
    _ = try fixture.mirror()
    try fixture.source.backUp(PruneFixture.files(50..<52))
    let id = fixture.source.snapshots[4].stored.id
    try fixture.source.memory.change(RepositoryLayout.tested.snapshot(id)) { $0[9] ^= 1 }
    let damaged = try fixture.mirror()
    #expect(damaged.damaged.count == 1 && damaged.copied.snapshots == 0)
    #expect(try fixture.snapshots() == 4)
    try fixture.source.memory.change(RepositoryLayout.tested.snapshot(id)) { $0[9] ^= 1 }
    for name in try fixture.source.memory.list(RepositoryLayout.indexes) {
      try fixture.source.memory.change(RepositoryLayout.indexes.appending(name)) { $0[70] ^= 1 }
    }
    // The mirror's index objects are intact, and the new snapshot is complete because of the packs'
    // own tables.
    let report = try fixture.mirror()
    #expect(report.copied.snapshots == 1 && !report.hasDamage)
    #expect(try fixture.lost().isEmpty)
  }

  /// A snapshot whose bytes match its id but which no command can read is reported by each run, and
  /// not copied. A snapshot of a later version is not damaged.
  @Test func unreadableSnapshotsWithTheRightIDAreNamed() throws {
    let fixture = try MirrorFixture()
    let source = fixture.source
    let storage = source.repository.storage
    func put(_ content: String) throws -> ObjectPath {
      let stored = try storage.encode(Array(content.utf8))
      let path = storage.layout.snapshot(stored.id)
      try source.memory.put(stored.bytes, path)
      return path
    }
    let later = try put(#"{"format":"\#(Snapshot.format)","version":9}"# + "\n")
    let broken = try put("{\n")
    for isDry in [true, false, true, false] {
      let report = try fixture.mirror(dry: isDry)
      #expect(report.damaged.map(\.subject) == ["\(broken)"] && report.hasDamage, "\(isDry)")
      #expect(report.damaged.first?.hint?.contains("forget --force") == true)
      #expect(report.incomplete.isEmpty)
    }
    #expect(try fixture.snapshots() == 5 && fixture.memory.status(later) != nil)
    #expect(try fixture.memory.status(broken) == nil && fixture.lost().isEmpty)
    try source.memory.remove(broken)
    #expect(try !fixture.mirror().hasDamage)
  }

  /// Without the index objects that snapshots need, the mirror is complete because of the packs'
  /// own tables. Each run reports the loss until it is repaired.
  @Test func aLostIndexObjectIsNamed() throws {
    let fixture = try MirrorFixture()
    let memory = fixture.source.memory
    for name in try memory.list(RepositoryLayout.indexes) {
      try memory.remove(RepositoryLayout.indexes.appending(name))
    }
    for isDry in [true, false, true, false] {
      let report = try fixture.mirror(dry: isDry)
      #expect(report.damaged.map(\.subject) == ["index"] && report.hasDamage, "\(isDry)")
      #expect(report.incomplete.isEmpty, "\(isDry)")
    }
    #expect(try fixture.snapshots() == 4 && fixture.lost().isEmpty)
    _ = try IndexRepair(fixture.source.repository).run()
    #expect(try !fixture.mirror().hasDamage)
  }

  /// Packs that are in no index object and that no snapshot needs, as after an interrupted backup,
  /// are not reported as a loss.
  @Test func unneededPacksWithoutAnIndexAreNotReportedAsLost() throws {
    let fixture = try MirrorFixture()
    var other = try fixture.source.copy()
    try other.backUp(PruneFixture.files(60..<64))
    let known = try fixture.source.objects()
    for (path, bytes) in try other.objects()
    where path.hasPrefix("packs/") && known[path] == nil {
      try fixture.source.memory.put(
        bytes, path.split(separator: "/").reduce(.root) { $0.appending(ByteString(String($1))) })
    }
    for isDry in [true, false, false] { #expect(try !fixture.mirror(dry: isDry).hasDamage) }
    #expect(try fixture.snapshots() == 4)
  }

  /// A pinned snapshot that the original lost before the mirror was created is reported by each
  /// run.
  @Test func aLostPinnedSnapshotIsNamed() throws {
    let fixture = try MirrorFixture()
    let path = RepositoryLayout.tested.snapshot(fixture.source.snapshots[0].stored.id)
    try fixture.source.memory.remove(path)
    for isDry in [true, false, true, false] {
      let report = try fixture.mirror(dry: isDry)
      #expect(report.damaged.map(\.subject) == ["\(path)"] && report.hasDamage, "\(isDry)")
    }
    #expect(try fixture.snapshots() == 3 && fixture.lost().isEmpty)
  }

  /// Each call of a storage fails in turn: each snapshot of the mirror is complete, and later runs
  /// make the mirror exact.
  @Test(arguments: CopyFaultTests.Side.allCases, [false, true])
  func eachFailedCallLeavesCompleteSnapshots(
    of side: CopyFaultTests.Side, failsRepeatedly: Bool
  ) throws {
    var original = try MirrorFixture()
    let empty = try original.copied()
    _ = try original.mirror()
    try original.source.backUp(PruneFixture.files(60..<63))
    try original.source.forget(2)
    var request = PruneRequest()
    request.maxUnused = .bytes(0)
    _ = try original.source.prune(request)
    for first in [empty, original] {
      for number in Sampling.steps(23, "mirror") {
        let fixture = try first.copied()
        let storage = side == .source ? fixture.source.storage : fixture.storage
        storage.fail(at: number, failsRepeatedly: failsRepeatedly)
        let error = storeError { try fixture.mirror() }
        let hasFailed = storage.hasFailed
        storage.fail(at: nil)
        let text = "\(side), call \(number), \(error?.description ?? "no error")"
        #expect(try fixture.lost().isEmpty, "\(text)")
        // Leases that could not be released expire after up to two hours.
        for _ in 0..<3 {
          _ = try fixture.mirror()
          fixture.source.clock.advance(by: 3700)
        }
        let last = try fixture.mirror()
        #expect(!last.hasDamage && last.waitingPacks == 0, "\(text)")
        try fixture.expectExact("\(text)")
        #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "\(text)")
        if !hasFailed { break }
      }
    }
  }

  /// A prune of the original during the run, which has no lease there: blobs of packs that
  /// disappeared are read from the new packs.
  @Test func aPruneOfTheOriginalDuringTheRun() throws {
    var fixture = try MirrorFixture()
    try fixture.source.forget(3)
    let (memory, flag) = (fixture.source.memory, OneCall())
    fixture.source.storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix("range packs/"), flag.take() else { return }
        var request = PruneRequest()
        request.maxUnused = .bytes(0)
        _ = try? RepositoryPrune(Repository.open(memory), request).run()
      }
    }
    let source = try Repository.open(ReadOnlyStorage(fixture.source.storage))
    let report = try fixture.mirror(from: source)
    #expect(!report.hasDamage && report.copied.snapshots == 3)
    #expect(try fixture.lost().isEmpty)
    fixture.source.storage.state.withLock { $0.action = nil }
    _ = try fixture.mirror()
    try fixture.expectExact()
  }

  /// A prune of the mirror that ends before the run has its lease removes packs that the run has
  /// already listed. They are copied again.
  @Test func aPruneOfTheMirrorBeforeTheLease() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    try fixture.forgetInMirror(3)
    // The first lease of a run is the one under which it creates directories.
    let (memory, call) = (fixture.memory, OneCall(2))
    fixture.storage.state.withLock { state in
      state.action = { event in
        guard event == "directories leases", call.take() else { return }
        _ = try? RepositoryPrune(Repository.open(memory)).run()
      }
    }
    let report = try fixture.mirror()
    #expect(report.copied.packs == 2 && report.copied.snapshots == 1)
    try fixture.expectExact()
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// Packs that a prune of the mirror has condemned stay if the original has them, even if another
  /// prune removes condemned packs before the run has stored the new snapshot.
  @Test func packsThatAPruneOfTheMirrorCondemnedStay() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    try fixture.forgetInMirror(3)
    let reader = try ReaderLease(Repository.open(fixture.memory))
    let pruned = try RepositoryPrune(Repository.open(fixture.memory)).run()
    #expect(pruned.removedPacks == 0)
    #expect(try CondemnedObjects(fixture.memory).packs.count == 2)
    let (memory, call) = (fixture.memory, OneCall())
    fixture.storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix("commit snapshots/"), call.take() else { return }
        reader.release()
        _ = try? RepositoryPrune(Repository.open(memory)).run()
      }
    }
    let report = try fixture.mirror()
    #expect(report.copied.packs == 0 && report.copied.snapshots == 1)
    try fixture.expectExact()
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// The run does not rely on the mirror while another program removes objects from it.
  @Test func aRunningPruneOfTheMirrorEndsTheRun() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    try fixture.forgetInMirror(3)
    let mirror = try Repository.open(fixture.memory)
    let reader = try ReaderLease(mirror)
    _ = try RepositoryPrune(mirror).run()
    let lease = try Lease(fixture.memory)
    let right = try #require(try PruneLease(lease))
    let error = storeError { try fixture.mirror() }
    #expect(error?.code == .busy && error?.action == "mirror the repository to")
    #expect(try fixture.snapshots() == 3 && fixture.lost().isEmpty)
    right.release()
    lease.release()
    reader.release()
    _ = try fixture.mirror()
    try fixture.expectExact()
  }

  /// The run is interrupted at each check of the stop request in turn.
  @Test func eachInterruptionLeavesCompleteSnapshots() throws {
    var original = try MirrorFixture()
    _ = try original.mirror()
    try original.source.backUp(PruneFixture.files(60..<63))
    try original.source.forget(2)
    _ = try original.source.prune()
    // With a damaged index object, the run also searches the packs that it named.
    let name = try #require(try original.source.memory.list(RepositoryLayout.indexes).first)
    try original.source.memory.change(RepositoryLayout.indexes.appending(name)) { $0[70] ^= 1 }
    for number in Sampling.steps(5, "an interruption of a mirror") {
      let fixture = try original.copied()
      let counter = Counter()
      let report = try fixture.mirror(isStopping: { counter.next() >= number })
      #expect(try fixture.lost().isEmpty, "question \(number)")
      #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty, "question \(number)")
      _ = try fixture.mirror()
      #expect(try fixture.lost().isEmpty && fixture.snapshots() == 4, "question \(number)")
      if !report.isInterrupted { return }
    }
  }

  @Test func anInterruptedRunIsContinued() throws {
    let fixture = try MirrorFixture()
    let counters = ProgressCounters(of: "object")
    let report = try RepositoryMirror(
      of: fixture.source.repository, in: fixture.storage, counters: counters,
      isStopping: { counters.progress.filesDone >= 3 }
    ).run()
    #expect(report.isInterrupted && report.copied.packs == 3 && report.copied.snapshots == 0)
    // This host has the original's snapshots in its cache, but the mirror must not be reported to
    // have lost them.
    let directory = TemporaryDirectory()
    let cache = SnapshotHeadCache(directory: ByteString(directory("cache")))
    #expect(try fixture.source.repository.heads(cache: cache).heads.count == 4)
    let mirror = try Repository.open(fixture.memory)
    #expect(try Checked(mirror, .trees, headCache: cache).damaged.isEmpty)
    #expect(try mirror.heads(cache: cache).heads.isEmpty)
    let next = try fixture.mirror()
    #expect(next.copied.packs == 5 && next.copied.snapshots == 4)
    try fixture.expectExact()
  }
}
