import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Copies from damaged repositories and into damaged ones: damaged data is never stored as intact,
/// and all intact data is copied.
struct CopyDamageTests {
  /// Damage to a pack with files of the first two snapshots, or with the tree of the first.
  enum Damage: Sendable, CaseIterable {
    case flippedFrame, flippedTree, missingData, missingTree, shortData, noTable

    func apply(to fixture: PruneFixture) throws {
      let isTree = self == .flippedTree || self == .missingTree
      let pack = try isTree ? fixture.pack(ofTree: 0) : fixture.pack(ofFile: 4)
      let path = RepositoryLayout.tested.pack(pack)
      switch self {
      case .flippedFrame, .flippedTree: try fixture.flip(pack)
      case .missingData, .missingTree: try fixture.memory.remove(path)
      case .shortData: try fixture.memory.change(path) { $0.removeLast($0.count - 60) }
      case .noTable: try fixture.memory.change(path) { $0[$0.count - 1] ^= 0xff }
      }
    }

    /// The number of snapshots that lose data: files 4 and 5 are in the first two. A small
    /// encrypted pack is one piece, so a changed byte damages all of its files.
    var affected: Int {
      switch self {
      case .flippedFrame: TestEncryption.isOn ? 2 : 1
      case .flippedTree, .missingTree: 1
      case .missingData, .shortData: 2
      case .noTable: TestEncryption.isOn ? 2 : 0
      }
    }
  }

  @Test(arguments: Damage.allCases)
  func snapshotsThatNeedLostDataAreNotCopied(damage: Damage) throws {
    let fixture = try CopyFixture()
    try damage.apply(to: fixture.source)
    let report = try fixture.copy()
    #expect(report.incomplete.count == damage.affected, "\(report.incomplete.map(\.lost))")
    #expect(report.copied.count == 3 - damage.affected)
    #expect(report.hasDamage)
    #expect(report.incomplete.allSatisfy { !$0.lost.isEmpty && $0.losses > 0 })
    try fixture.expectComplete(3 - damage.affected)
    // A later copy reports the same, and copies nothing twice.
    let again = try fixture.copy()
    #expect(again.incomplete.count == damage.affected && again.present == 3 - damage.affected)
    #expect(again.newPacks == 0)
  }

  /// A blob whose first copy is damaged is read from another pack.
  @Test func anIntactCopyInAnotherPackIsUsed() throws {
    var fixture = try CopyFixture()
    let pack = try fixture.source.pack(ofFile: 4)
    let session = try fixture.source.repository.beginWriting()
    session.exclude([pack])
    for (name, bytes) in PruneFixture.files(0..<6) {
      _ = try session.storeFile(logicalPath: ByteString("folders/test/\(name)"), bytes: bytes)
    }
    try session.checkpoint()
    session.abandon()
    try fixture.source.flip(pack)
    let report = try fixture.copy()
    #expect(report.incomplete.isEmpty && report.copied.count == 3)
    try fixture.expectComplete(3)
    fixture.source.snapshots.removeLast()
  }

  @Test func unreadableSnapshotsAreReported() throws {
    let fixture = try CopyFixture()
    let id = fixture.source.snapshots[1].stored.id
    try fixture.source.memory.change(RepositoryLayout.tested.snapshot(id)) { $0[20] ^= 1 }
    let report = try fixture.copy()
    #expect(report.unreadable.count == 1 && report.copied.count == 2 && report.hasDamage)
    try fixture.expectComplete(2)
  }

  /// Without a usable index, all blobs are found through the packs' own tables, and the damage is
  /// reported.
  @Test func aDamagedIndexCostsNoSnapshot() throws {
    let fixture = try CopyFixture()
    for name in try fixture.source.memory.list(RepositoryLayout.indexes) {
      try fixture.source.memory.change(RepositoryLayout.indexes.appending(name)) { $0[70] ^= 1 }
    }
    let report = try fixture.copy()
    #expect(report.copied.count == 3 && !report.damaged.isEmpty)
    try fixture.expectComplete(3)
  }

  /// A missing index object is also damage if snapshots need blobs that it named.
  @Test(arguments: [true, false]) func aLostIndexCostsNoSnapshot(isDry: Bool) throws {
    let fixture = try CopyFixture()
    for name in try fixture.source.memory.list(RepositoryLayout.indexes) {
      try fixture.source.memory.remove(RepositoryLayout.indexes.appending(name))
    }
    let report = try fixture.copy(dry: isDry)
    #expect(report.copied.count == 3 && report.damaged.map(\.subject) == ["index"])
    if !isDry { try fixture.expectComplete(3) }
  }

  /// A lost pinned snapshot is reported; the others are copied.
  @Test func aLostPinnedSnapshotIsNamed() throws {
    let fixture = try CopyFixture()
    let id = fixture.source.snapshots[0].stored.id
    try fixture.source.repository.pin([id])
    let path = RepositoryLayout.tested.snapshot(id)
    try fixture.source.memory.remove(path)
    let report = try fixture.copy()
    #expect(report.unreadable.map(\.subject) == ["\(path)"] && report.hasDamage)
    #expect(report.copied.count == 2)
  }

  /// A snapshot whose content is damaged in the target is not stored.
  @Test func checkFindsDamageInTheTarget() throws {
    let fixture = try CopyFixture()
    let (memory, call) = (fixture.target.memory, OneCall())
    let digest = Blake2b.hash(PruneFixture.files(20..<21)[0].bytes)
    fixture.target.storage.state.withLock { state in
      state.action = { event in
        // The last listing of the check, after all packs were written.
        guard event == "objects packs" else { return }
        guard
          let pack = try? Repository.open(memory).beginReading().locate(
            BlobID(kind: .data, digest: digest))?.pack
        else { return }
        guard call.take() else { return }
        try? memory.change(RepositoryLayout.tested.pack(pack)) { bytes in
          for at in 0..<(bytes.count / 2) { bytes[at] ^= 0x5a }
        }
      }
    }
    let report = try fixture.copy(check: true)
    #expect(!report.damagedInTarget.isEmpty && report.hasDamage)
    #expect(report.copied.count == 3 - report.damagedInTarget.count)
    #expect(try fixture.copies().count == report.copied.count)
    #expect(try fixture.differences().isEmpty)
  }

  /// A check of existing copies reads them.
  @Test func checkReadsExistingCopies() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    let clean = try fixture.copy(check: true)
    #expect(clean.checkedBlobs > 10 && !clean.hasDamage)
    try fixture.target.flip(fixture.target.pack(ofFile: 4))
    let report = try fixture.copy(check: true)
    #expect(!report.damagedInTarget.isEmpty && report.copied.isEmpty)
    #expect(try fixture.copies().count == 3)
  }

  /// Lost content of existing copies is copied again once a check of the target has recorded the
  /// damage, or, if a pack is missing, by a copy with a check.
  @Test(arguments: [false, true])
  func existingCopiesAreRepaired(isMissing: Bool) throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    let pack = try fixture.target.pack(ofFile: 4)
    if isMissing {
      try fixture.target.memory.remove(RepositoryLayout.tested.pack(pack))
    } else {
      try fixture.target.flip(pack)
      #expect(try fixture.copy().neededBlobs == 0)
      try RepositoryCheck(
        Repository.open(fixture.target.memory), reading: .everything, workers: 1
      ).run().recordDamage()
      let plan = try fixture.copy(dry: true)
      #expect(plan.missingBlobs > 0 && plan.newPacks == 0)
    }
    let report = try fixture.copy(check: isMissing)
    #expect(report.present == 3 && report.copied.isEmpty && report.newPacks > 0)
    #expect(report.damagedInTarget.isEmpty && report.incomplete.isEmpty)
    #expect(try fixture.copies().count == 3)
    #expect(try fixture.differences().isEmpty)
    #expect(try fixture.copy(check: true).newPacks == 0)
  }

  /// The available content of a snapshot is copied again, even if the source has lost other parts
  /// of it.
  @Test func existingCopiesAreRepairedFromADamagedSource() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    let pack = try fixture.target.pack(ofFile: 4)
    try fixture.target.memory.remove(RepositoryLayout.tested.pack(pack))
    try fixture.source.memory.remove(
      RepositoryLayout.tested.pack(fixture.source.pack(ofFile: 6)))
    let report = try fixture.copy([fixture.source.snapshots[1].stored.id], check: true)
    #expect(report.present == 1 && report.newPacks > 0 && report.incomplete.isEmpty)
    #expect(report.damagedInTarget.count == 1)
    let reader = try Repository.open(fixture.target.memory).beginReading()
    for (number, isFound) in [(4, true), (5, true), (6, false)] {
      let bytes = PruneFixture.files(number..<(number + 1))[0].bytes
      let blob = BlobID(kind: .data, digest: Blake2b.hash(bytes))
      #expect((try? reader.readBlob(blob)) == (isFound ? bytes : nil), "\(number)")
    }
  }

  /// Content that the source has also lost does not make the snapshot count as incomplete.
  @Test func contentThatBothHaveLostIsNotCopied() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    for side in [fixture.source, fixture.target] {
      try side.memory.remove(RepositoryLayout.tested.pack(side.pack(ofFile: 4)))
    }
    let report = try fixture.copy(check: true)
    #expect(report.incomplete.isEmpty && report.present == 3)
    #expect(!report.damagedInTarget.isEmpty && report.hasDamage)
  }

  /// A check reports a damaged pack of the target even if no snapshot loses data because of it.
  @Test func checkNamesDamagedPacksOfTheTarget() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    let (before, pack) = (try fixture.target.packs(), try fixture.target.pack(ofFile: 4))
    let session = try fixture.target.repository.beginWriting()
    session.exclude([pack])
    for (name, bytes) in PruneFixture.files(0..<9) + PruneFixture.files(20..<24) {
      _ = try session.storeFile(logicalPath: ByteString("folders/test/\(name)"), bytes: bytes)
    }
    try session.checkpoint()
    session.abandon()
    fixture.target.storage.state.withLock { $0.events = [] }
    #expect(try !fixture.copy(check: true).hasDamage)
    // Both packs have the same files; the check reads one of them.
    let copies = try fixture.target.packs().subtracting(before).union([pack])
    let read = fixture.target.packsRead()
    let used = try #require(
      copies.first { read.contains("range \(RepositoryLayout.tested.pack($0))") })
    #expect(copies.count == 2)
    try fixture.target.flip(used)
    let report = try fixture.copy(check: true)
    #expect(report.damagedInTarget.isEmpty && report.hasDamage)
    #expect(report.targetDamage.contains { $0.subject.contains(used.hex) })
  }

  @Test func checkNamesDamagedIndexObjectsOfTheTarget() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    let name = try #require(try fixture.target.memory.list(RepositoryLayout.indexes).first)
    try fixture.target.memory.change(RepositoryLayout.indexes.appending(name)) { $0[70] ^= 1 }
    let report = try fixture.copy(check: true)
    #expect(report.targetDamage.map(\.subject) == ["index/\(name)"] && report.hasDamage)
    #expect(report.damagedInTarget.isEmpty && report.checkedBlobs > 10)
  }

  /// A dry run reads the packs that a check of the source has recorded as damaged, and reports the
  /// same snapshots as the copy.
  @Test(arguments: Damage.allCases) func aPlanNamesTheSnapshotsWithRecordedDamage(damage: Damage)
    throws
  {
    let fixture = try CopyFixture()
    try damage.apply(to: fixture.source)
    try RepositoryCheck(Repository.open(fixture.source.memory), reading: .everything, workers: 1)
      .run().recordDamage()
    let before = try fixture.target.objects()
    let plan = try fixture.copy(dry: true)
    #expect(try fixture.target.objects() == before)
    #expect(plan.incomplete.count == damage.affected && plan.copied.count == 3 - damage.affected)
    let report = try fixture.copy()
    #expect(plan.incomplete.map(\.head.id) == report.incomplete.map(\.head.id))
    #expect(plan.copied.map(\.head.id) == report.copied.map(\.head.id))
    #expect(Set(plan.damaged.map(\.subject)) == Set(report.damaged.map(\.subject)))
    #expect(plan.hasDamage == report.hasDamage)
    #expect((plan.missingBlobs, plan.missingBytes) == (report.missingBlobs, report.missingBytes))
  }

  /// A copy uses the packs of the target that are in no index object, unless a check has recorded
  /// them as damaged.
  @Test func aPlanCountsPacksThatNoIndexNames() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy()
    let damaged = try fixture.target.pack(ofFile: 20)
    try fixture.target.flip(damaged)
    try RepositoryCheck(Repository.open(fixture.target.memory), reading: .everything, workers: 1)
      .run().recordDamage()
    for directory in [RepositoryLayout.indexes, RepositoryLayout.snapshots] {
      for name in try fixture.target.memory.list(directory) {
        try fixture.target.memory.remove(directory.appending(name))
      }
    }
    let plan = try fixture.copy(dry: true)
    let report = try fixture.copy()
    #expect(plan.copied.count == 3 && report.copied.count == 3)
    #expect(plan.missingBlobs == report.missingBlobs && plan.missingBlobs > 0)
    #expect(plan.missingBlobs < plan.neededBlobs)
    #expect(try fixture.differences().isEmpty)
  }
}
