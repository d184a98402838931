import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Copies of snapshots between repositories.
struct CopyTests {
  /// The bytes that encryption adds to a small pack.
  private static let encryption = TestEncryption.isOn ? 250 as UInt64 : 0

  @Test(arguments: [1, 3]) func allSnapshotsAreCopied(workers: Int) throws {
    let fixture = try CopyFixture()
    let report = try fixture.copy(workers: workers)
    #expect(report.snapshots == 3 && report.copied.count == 3 && report.present == 0)
    #expect(!report.hasDamage && !report.isInterrupted)
    try fixture.expectComplete(3)
    for (copy, original) in zip(try fixture.copies(), fixture.source.snapshots) {
      let stored = original.stored
      #expect(
        copy.snapshot.original
          == Snapshot.Original(repository: fixture.source.repository.id, id: stored.id))
      var expected = stored.snapshot
      expected.repository = fixture.target.repository.id
      expected.original = copy.snapshot.original
      #expect(copy.snapshot == expected, "everything else stays, the tree as well")
    }
    #expect(try fixture.target.memory.list(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.source.memory.list(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.source.damage().isEmpty)
  }

  /// Frames that are needed completely are copied byte for byte, without compressing them again.
  @Test func wholeFramesMoveUnchanged() throws {
    let fixture = try CopyFixture()
    let report = try fixture.copy()
    let (from, to) = (try fixture.source.frames(), try fixture.target.frames())
    #expect(from == to && !from.isEmpty)
    #expect(report.movedFrames == from.count && report.partFrames == 0)
    #expect(report.missingBlobs == report.neededBlobs && report.missingBlobs > 10)
  }

  /// If the target has some blobs of a frame, only the missing ones are stored.
  @Test func partsOfFramesAreStoredAgain() throws {
    var fixture = try CopyFixture()
    try fixture.target.backUp(PruneFixture.files(0..<2))
    let before = try fixture.target.storedBytes()
    let report = try fixture.copy([fixture.source.snapshots[0].stored.id])
    #expect(
      report.partFrames == 1 && report.movedFrames == 1, "the frame of files, and of the tree")
    #expect(report.neededBlobs == 7 && report.missingBlobs == 5)
    let added = try fixture.target.storedBytes() - before
    #expect(added < 4 * 2000 + 2000 + 2 * Self.encryption, "\(added)")
    #expect(try fixture.target.damage().isEmpty)
    let copy = try #require(try fixture.copies().first { $0.snapshot.original != nil })
    let reader = try Repository.open(fixture.target.memory).beginReading()
    for (name, bytes) in PruneFixture.files(0..<6) {
      #expect(try reader.bytes(at: ByteString(name), in: copy) == bytes, "\(name)")
    }
    let members = try fixture.target.members()
    for (name, bytes) in PruneFixture.files(2..<6) {
      #expect(members["folders/test/\(name)"] == bytes, "\(name) keeps its name")
    }
  }

  /// Data that the target already has is not read, and a second copy stores nothing.
  @Test func onlyMissingDataIsRead() throws {
    var fixture = try CopyFixture()
    _ = try fixture.copy()
    let again = try fixture.copy()
    #expect(again.present == 3 && again.copied.isEmpty && again.newPacks == 0)
    try fixture.source.backUp(PruneFixture.files(20..<25))
    let stored = try fixture.target.storedBytes()
    fixture.source.storage.state.withLock { $0.events = [] }
    let next = try fixture.copy()
    #expect(next.present == 3 && next.copied.count == 1 && next.missingBlobs == 2)
    #expect(try fixture.target.storedBytes() - stored < 2000 + 3000 + 2 * Self.encryption)
    let old = RepositoryLayout.tested.pack(try fixture.source.pack(ofFile: 20))
    #expect(!fixture.source.packsRead().contains("range \(old)"))
    try fixture.expectComplete(4)
  }

  /// A dry run reports the same as the copy, and changes nothing on either side.
  @Test func dryRunChangesNothing() throws {
    let fixture = try CopyFixture()
    let (from, to) = (try fixture.source.objects(), try fixture.target.objects())
    let dry = try fixture.copy(dry: true)
    #expect(try fixture.source.objects() == from && fixture.target.objects() == to)
    let report = try fixture.copy()
    #expect(dry.copied.map(\.head.id) == report.copied.map(\.head.id))
    #expect(dry.copied.allSatisfy { $0.id == nil } && dry.newPacks == 0)
    #expect(dry.missingBlobs == report.missingBlobs && dry.missingBytes == report.missingBytes)
    let after = try fixture.copy(dry: true)
    #expect(after.present == 3 && after.copied.isEmpty && after.missingBlobs == 0)
  }

  /// Copies between three repositories in any direction make no duplicates.
  @Test func copyingBackAndForthMakesNoDuplicates() throws {
    let fixture = try CopyFixture()
    let third = try PruneFixture()
    let (a, b, c) = (fixture.source.repository, fixture.target.repository, third.repository)
    #expect(try CopyFixture.copy(a, b).copied.count == 3)
    #expect(try CopyFixture.copy(b, c).copied.count == 3)
    for (from, to) in [(a, b), (b, a), (a, c), (c, a), (b, c), (c, b)] {
      let report = try CopyFixture.copy(from, to)
      #expect(report.present == 3 && report.copied.isEmpty)
    }
    let originals = try c.snapshots().snapshots.map(\.snapshot.original?.repository)
    #expect(originals.allSatisfy { $0 == a.id }, "the first original is named")
  }

  /// A snapshot that was removed from its original repository gets its old id when it is copied
  /// back, except in an encrypted repository, where it gets a new one.
  @Test func removedOriginalIsRestoredWithItsID() throws {
    var fixture = try CopyFixture()
    _ = try fixture.copy()
    let removed = fixture.source.snapshots[1]
    try fixture.source.forget(1)
    _ = try fixture.source.prune()
    let report = try CopyFixture.copy(fixture.target.repository, fixture.source.repository)
    #expect(report.copied.count == 1 && report.present == 2)
    #expect((report.copied.first?.id == removed.stored.id) == !TestEncryption.isOn)
    fixture.source.snapshots.append(removed)
    #expect(try fixture.source.lost().isEmpty && fixture.source.damage().isEmpty)
    #expect(try fixture.copy().present == 3)
  }

  /// An original that cannot be reproduced byte for byte gets a copy that is recognized in both
  /// directions.
  @Test func originalWithOtherBytesIsCopiedOnce() throws {
    let fixture = try CopyFixture()
    let first = fixture.source.snapshots[0].stored
    // The members in another order, as written by an earlier version.
    let bytes = Array("{\"later\":1,".utf8) + first.snapshot.encode().dropFirst()
    try fixture.source.memory.remove(RepositoryLayout.tested.snapshot(first.id))
    let id = try fixture.source.memory.put(bytes, kind: .snapshot)
    _ = try fixture.copy([id])
    try fixture.source.memory.remove(RepositoryLayout.tested.snapshot(id))
    let back = try CopyFixture.copy(fixture.target.repository, fixture.source.repository)
    #expect(back.copied.count == 1 && back.copied[0].id != id)
    let again = try CopyFixture.copy(fixture.target.repository, fixture.source.repository)
    #expect(again.present == 1 && again.copied.isEmpty)
    #expect(try fixture.copy().present == 1)
  }

  /// A repaired snapshot and its original are two different snapshots.
  @Test func repairedSnapshotIsCopiedBesideItsOriginal() throws {
    let source = try SnapshotRepairFixture()
    let target = try PruneFixture()
    _ = try CopyFixture.copy(source.repository, target.repository)
    try source.lose("a")
    let new = try #require(try source.repair().repaired.first?.new)
    let report = try CopyFixture.copy(source.repository, target.repository)
    #expect(report.present == 1 && report.copied.map(\.head.id) == [new.id])
    let back = try CopyFixture.copy(target.repository, source.repository)
    #expect(back.present == 2 && back.copied.isEmpty)
    #expect(try target.damage().isEmpty)
  }

  /// Lists, pages, attributes, and the fields and members of later versions are copied.
  @Test func everyKindOfBlobIsCopied() throws {
    let source = try SnapshotRepairFixture()
    let target = try PruneFixture()
    let report = try CopyFixture.copy(source.repository, target.repository, check: true)
    let id = try #require(report.copied.first?.id)
    let copy = try target.repository.snapshot(id)
    #expect(copy.snapshot.unknown == source.stored.snapshot.unknown)
    let reader = try target.repository.beginReading()
    var entries: [ByteString: TreeEntry] = [:]
    try reader.walk(copy.snapshot.tree) { path, entry in
      entries[path] = entry
      return .enter
    }
    #expect(entries == source.entries)
    #expect(try target.damage().isEmpty)
    #expect(report.checkedBlobs == report.neededBlobs)
  }

  /// Pins are copied, even if the snapshot was copied earlier, and never removed.
  @Test func pinsAreCopied() throws {
    let fixture = try CopyFixture()
    let (source, target) = (fixture.source.repository, fixture.target.repository)
    try source.pin([fixture.source.snapshots[0].stored.id])
    let report = try fixture.copy()
    let ids = report.copied.map(\.id)
    #expect(try target.pins() == [try #require(ids[0])])
    try source.unpin([fixture.source.snapshots[0].stored.id])
    try source.pin([fixture.source.snapshots[2].stored.id])
    _ = try fixture.copy()
    #expect(
      try target.pins() == Set(ids.enumerated().filter { $0.offset != 1 }.compactMap(\.element)))
  }

  @Test func unknownFeaturesAreRefusedByName() throws {
    let fixture = try CopyFixture()
    func opened(_ fixture: PruneFixture, _ features: RepositorySettings.Features) throws
      -> Repository
    {
      Repository(
        fixture.storage,
        settings: RepositorySettings(
          id: fixture.repository.id, program: "test", features: features,
          recipients: TestEncryption.keys?.recipients ?? []),
        keys: TestEncryption.keys)
    }
    let writes = try opened(fixture.target, .init(write: ["striped"]))
    let error = storeError { try CopyFixture.copy(fixture.source.repository, writes) }
    #expect(error?.code == .unknownFeature && error?.description.contains("striped") == true)
    // The source is only read, so this is allowed.
    let source = try opened(fixture.source, .init(write: ["striped"], prune: ["striped"]))
    #expect(try CopyFixture.copy(source, fixture.target.repository).copied.count == 3)
  }

  @Test func aReadOnlySourceIsCopied() throws {
    let fixture = try CopyFixture()
    let source = try Repository.open(ReadOnlyStorage(fixture.source.memory))
    #expect(try CopyFixture.copy(source, fixture.target.repository).copied.count == 3)
    try fixture.expectComplete(3)
  }

  @Test func aReadOnlyTargetIsRefused() throws {
    let fixture = try CopyFixture()
    let target = try Repository.open(ReadOnlyStorage(fixture.target.memory))
    let error = storeError { try CopyFixture.copy(fixture.source.repository, target) }
    #expect(error?.description.contains("read-only") == true)
    #expect(try CopyFixture.copy(fixture.source.repository, target, dry: true).copied.count == 3)
  }

  @Test func theRepositoryItselfIsRefused() throws {
    let directory = TemporaryDirectory()
    let path = ByteString(directory("repo"))
    let repository = try Repository.create(in: LocalStorage.create(path: path), program: "test")
    let again = try Repository.open(LocalStorage(path: path))
    let error = storeError { try CopyFixture.copy(repository, again) }
    #expect(error?.code == .invalid && error?.reason == "it is the source itself")
  }
}

extension PruneFixture {
  /// Returns all objects except leases, by path.
  func objects() throws -> [String: [UInt8]] { try memory.objects() }
}

extension MemoryStorage {
  /// Returns all objects except leases, by path.
  func objects() throws -> [String: [UInt8]] {
    var objects: [String: [UInt8]] = [:]
    var paths: [ObjectPath] = []
    try forEachObject(below: .root) { path, _ in paths.append(path) }
    for path in paths where path.components.first != RepositoryLayout.leases.name {
      objects["\(path)"] = try load(path, limit: 1 << 30)
    }
    return objects
  }
}
