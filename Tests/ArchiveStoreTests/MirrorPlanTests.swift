import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The plan of a mirror, which a dry run prints, equals the result of the run, even if a check has
/// recorded damage.
struct MirrorPlanTests {
  /// Expects the result of a run to equal its plan, and returns the plan.
  private func planThatIsKept(_ fixture: MirrorFixture) throws -> RepositoryMirror.Report {
    let (before, original) = (try fixture.memory.objects(), try fixture.source.objects())
    let plan = try fixture.mirror(dry: true)
    #expect(try fixture.memory.objects() == before && fixture.source.objects() == original)
    try expect(plan, isKeptBy: fixture.mirror())
    return plan
  }

  private func expect(
    _ plan: RepositoryMirror.Report, isKeptBy report: RepositoryMirror.Report
  ) throws {
    #expect(plan.copied.packs == report.copied.packs)
    #expect(plan.copied.indexes == report.copied.indexes)
    #expect(plan.copied.snapshots == report.copied.snapshots)
    #expect(plan.copied.bytes == report.copied.bytes)
    #expect(plan.incomplete.map(\.head.id) == report.incomplete.map(\.head.id))
    #expect(plan.damaged.map(\.description) == report.damaged.map(\.description))
    #expect(plan.removed.packs == report.removed.packs)
    #expect(plan.removed.indexes == report.removed.indexes)
    #expect(plan.removed.bytes == report.removed.bytes)
    #expect(plan.removed.snapshots == report.removed.snapshots)
  }

  private func recordDamage(in memory: MemoryStorage) throws {
    try RepositoryCheck(Repository.open(memory), reading: .everything, workers: 1)
      .run().recordDamage()
  }

  /// The plan excludes a pack that a check of the original has recorded as damaged, and the
  /// snapshots that need it.
  @Test func recordedDamageOfTheOriginalIsPlanned() throws {
    let fixture = try MirrorFixture()
    let pack = try fixture.source.pack(ofFile: 0)
    try fixture.source.flip(pack)
    try recordDamage(in: fixture.source.memory)
    let new = try RepositoryMirror(of: fixture.source.repository, in: nil, isDry: true).run()
    let plan = try planThatIsKept(fixture)
    #expect(plan.damaged.map(\.subject) == ["\(RepositoryLayout.tested.pack(pack))"])
    #expect(!plan.incomplete.isEmpty && plan.hasDamage)
    #expect(plan.copied.snapshots == 4 - plan.incomplete.count)
    // For a mirror that does not exist yet, the plan is the same.
    #expect(new.isNew && new.copied == plan.copied)
    #expect(new.incomplete.map(\.head.id) == plan.incomplete.map(\.head.id))
  }

  /// The planned bytes are those of all objects that the run copies.
  @Test func bytesOfAllObjectsArePlanned() throws {
    let fixture = try MirrorFixture()
    let plan = try planThatIsKept(fixture)
    let copied = try fixture.memory.objects().filter { path, _ in
      ["packs/", "index/", "snapshots/"].contains { path.hasPrefix($0) }
    }
    #expect(plan.copied.bytes == copied.reduce(0) { $0 + UInt64($1.value.count) })
    #expect(copied.count == plan.copied.snapshots + plan.copied.indexes + plan.copied.packs)
  }

  /// A record of damage may be older than the intact pack that replaced the damaged one.
  @Test func aRecordOfAnIntactPackLosesNothing() throws {
    let fixture = try MirrorFixture()
    let pack = try fixture.source.pack(ofFile: 0)
    try fixture.source.flip(pack)
    try recordDamage(in: fixture.source.memory)
    try fixture.source.flip(pack)
    let plan = try planThatIsKept(fixture)
    #expect(!plan.hasDamage && plan.copied.snapshots == 4 && plan.copied.packs == 8)
  }

  /// The mirror may have the content of a damaged pack in another pack, which a prune of the
  /// original has removed.
  @Test func contentThatOnlyTheMirrorHasIsPlanned() throws {
    var fixture = try MirrorFixture()
    _ = try fixture.mirror()
    try fixture.source.backUp(PruneFixture.files(8..<9) + PruneFixture.files(60..<63))
    for number in [3, 2] { try fixture.source.forget(number) }
    var request = PruneRequest()
    request.maxUnused = .bytes(0)
    _ = try fixture.source.prune(request)
    let pack = try fixture.source.pack(ofFile: 8)
    try fixture.source.memory.change(RepositoryLayout.tested.pack(pack)) { bytes in
      for at in 0..<(bytes.count / 2) { bytes[at] ^= 0x5a }
    }
    try recordDamage(in: fixture.source.memory)
    let plan = try planThatIsKept(fixture)
    #expect(plan.damaged.count == 1 && plan.incomplete.isEmpty && plan.copied.snapshots == 1)
    #expect(try fixture.lost().isEmpty)
  }

  /// Neither side has the content.
  @Test func aPackThatTheOriginalHasLostIsPlanned() throws {
    let fixture = try MirrorFixture()
    try fixture.source.memory.remove(
      RepositoryLayout.tested.pack(fixture.source.pack(ofFile: 0)))
    let plan = try planThatIsKept(fixture)
    #expect(!plan.incomplete.isEmpty && plan.copied.packs == 7)
  }

  /// A pack that a check of the mirror has recorded as damaged is copied again, unless the
  /// original's is recorded as well.
  @Test(arguments: [false, true]) func recordedDamageOfTheMirrorIsPlanned(ofBoth: Bool) throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let pack = try fixture.source.pack(ofFile: 0)
    for storage in [fixture.memory] + (ofBoth ? [fixture.source.memory] : []) {
      try storage.change(RepositoryLayout.tested.pack(pack)) { $0[200] ^= 0xff }
      try recordDamage(in: storage)
    }
    #expect(try planThatIsKept(fixture).copied.packs == (ofBoth ? 0 : 1))
  }

  /// Packs with an unexpected size are read, as by the run.
  @Test func damageThatSizesShowIsPlanned() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    for (memory, number) in [(fixture.source.memory, 0), (fixture.memory, 6)] {
      let pack = RepositoryLayout.tested.pack(try fixture.source.pack(ofFile: number))
      try memory.change(pack) { $0.removeLast(9) }
    }
    let plan = try planThatIsKept(fixture)
    #expect(plan.copied.packs == 1 && plan.damaged.count == 1)
  }

  /// A prune of the original replaces objects during the planning: nothing is reported as lost.
  @Test func aPruneOfTheOriginalIsNotDamage() throws {
    var fixture = try MirrorFixture()
    try fixture.source.forget(3)
    let (memory, flag) = (fixture.source.memory, OneCall())
    fixture.source.storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix("load index/"), flag.take() else { return }
        var request = PruneRequest()
        request.maxUnused = .bytes(0)
        _ = try? RepositoryPrune(Repository.open(memory), request).run()
      }
    }
    let packs = try fixture.source.packs()
    let plan = try fixture.mirror(dry: true)
    #expect(try !packs.isSubset(of: fixture.source.packs()))
    fixture.source.storage.state.withLock { $0.action = nil }
    #expect(!plan.hasDamage && plan.incomplete.isEmpty && plan.copied.snapshots == 3)
    // The plan may still count packs that were listed before the prune, so it is not compared with
    // the run.
    let report = try fixture.mirror()
    #expect(!report.hasDamage && report.copied.snapshots == 3)
  }

  /// If the original changes with each listing, the dry run fails with the hint to try again.
  @Test func anOriginalThatKeepsChangingIsBusy() throws {
    let fixture = try MirrorFixture()
    let memory = fixture.source.memory
    let number = Mutex(0)
    try memory.remove(RepositoryLayout.tested.pack(fixture.source.pack(ofFile: 0)))
    fixture.source.storage.state.withLock { state in
      state.action = { event in
        guard event == "list index" else { return }
        let next = number.withLock { number in
          number += 1
          return number
        }
        let (old, new) = (Blake2b.hash([UInt8(next - 1)]), Blake2b.hash([UInt8(next)]))
        try? memory.remove(RepositoryLayout.tested.pack(old))
        try? memory.put([1], RepositoryLayout.tested.pack(new))
      }
    }
    let error = storeError { try fixture.mirror(dry: true) }
    #expect(error?.code == .busy && error?.reason.contains("keep disappearing") == true)
  }

  /// The run keeps a pack that snapshots need and that the original has lost.
  @Test(arguments: [false, true]) func aNeededPackIsNotPlannedForRemoval(_ hasOthers: Bool) throws {
    var fixture = try MirrorFixture()
    _ = try fixture.mirror()
    if hasOthers {
      try fixture.source.backUp(PruneFixture.files(40..<42))
      try fixture.source.forget(1)
      try fixture.source.forget(2)
      var request = PruneRequest()
      request.maxUnused = .bytes(0)
      _ = try fixture.source.prune(request)
    }
    let listed = try RepositoryListing.packs(fixture.memory)
    let packs = try fixture.source.packs().intersection(listed).sorted()
    let pack = try #require(packs.first)
    try fixture.source.memory.remove(RepositoryLayout.tested.pack(pack))
    let plan = try planThatIsKept(fixture)
    #expect(plan.damaged.map(\.subject) == ["\(RepositoryLayout.tested.pack(pack))"])
    #expect((plan.removed.packs > 0) == hasOthers)
    #expect(try fixture.memory.status(RepositoryLayout.tested.pack(pack)) != nil)
  }
}
