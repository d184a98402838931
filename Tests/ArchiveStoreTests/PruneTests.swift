import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Prune removes the data that no snapshot needs, and nothing else.
struct PruneTests {
  @Test func packsThatNoSnapshotNeedsAreRemoved() throws {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<10))
    let old = try fixture.packs()
    try fixture.backUp(PruneFixture.files(10..<20))
    try fixture.forget(0)
    let before = try fixture.storedBytes()
    let report = try fixture.prune()
    #expect(try fixture.packs().isDisjoint(with: old))
    #expect(report.removedPacks == 2 && report.newPacks == 0 && report.snapshots == 1)
    #expect(try fixture.storedBytes() == before - report.removedBytes)
    #expect(try fixture.lost().isEmpty)
    #expect(try fixture.findings().isEmpty)
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.memory.list(RepositoryLayout.condemned).isEmpty)
    // There is nothing left to do.
    #expect(try fixture.prune().plan.isIdle)
  }

  /// A lost and recreated directory of snapshots looks like that of a repository whose snapshots
  /// were all removed.
  @Test func dataWithoutASnapshotIsRemovedOnlyOnRequest() throws {
    var fixture = try PruneFixture()
    // An empty repository has nothing to lose.
    #expect(try fixture.prune().plan.isIdle)
    try fixture.backUp(PruneFixture.files(0..<10))
    let packs = try fixture.packs()
    try fixture.forget(0)
    for attempt in [{ try fixture.plan() }, { try fixture.prune() }] {
      let error = #expect(throws: StoreError.self) { try attempt() }
      #expect(error?.code == .noSnapshot && error?.hint?.contains("'--remove-all'") == true)
    }
    #expect(try fixture.packs() == packs)
    var request = PruneRequest()
    request.mayRemoveAll = true
    #expect(try fixture.plan(request).plan.packs(.remove).count == packs.count)
    #expect(try fixture.prune(request).removedPacks == packs.count)
    #expect(try fixture.packs().isEmpty)
  }

  /// Only a damaged snapshot may lead to the advice to remove it.
  @Test func snapshotOfANewerVersionIsNotReportedAsDamaged() throws {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<3))
    try fixture.backUp(PruneFixture.files(3..<6))
    let old = RepositoryLayout.tested.snapshot(fixture.snapshots[0].stored.id)
    let text = String(decoding: try fixture.memory.content(old), as: UTF8.self)
    let newer = Array(text.replacing("\"version\":1", with: "\"version\":2").utf8)
    #expect(String(decoding: newer, as: UTF8.self) != text)
    try fixture.memory.remove(old)
    try fixture.memory.put(newer, kind: .snapshot)
    let error = #expect(throws: StoreError.self) { try fixture.prune() }
    #expect(error?.code == .unsupported, "\(error?.description ?? "")")
    #expect(error?.hint?.contains("forget") != true, "\(error?.hint ?? "")")
  }

  @Test func usedDataOfMostlyUnusedPacksMovesToNewPacks() throws {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<20))
    try fixture.backUp(PruneFixture.files(0..<5))
    try fixture.forget(0)
    let before = try fixture.storedBytes()
    let report = try fixture.prune(workers: 3)
    #expect(report.plan.packs(.rewrite).map(\.reason).contains(.mostlyUnused))
    #expect(report.newPacks > 0 && report.damaged.isEmpty && report.lostBlobs == 0)
    #expect(try fixture.storedBytes() < before - 15 * 1900)
    #expect(try fixture.lost().isEmpty)
    #expect(try fixture.findings().isEmpty)
    // The members keep their names, so that any archive program can extract them.
    let members = try fixture.members()
    for (name, bytes) in PruneFixture.files(0..<5) {
      #expect(members["folders/test/\(name)"] == bytes)
    }
    #expect(members["folders/test/file-5"] == nil)
  }

  /// A frame whose blobs are all used is copied byte for byte.
  @Test func wholeFramesMoveWithoutCompression() throws {
    var fixture = try PruneFixture()
    let large = PruneFixture.files(0..<6, size: 500_000)
    try fixture.backUp(large)
    try fixture.backUp(Array(large.prefix(2)))
    try fixture.forget(0)
    let frames = try fixture.storedFrames()
    _ = try fixture.prune()
    let moved = try fixture.storedFrames().intersection(frames)
    #expect(moved.contains { $0.count > 900_000 }, "\(moved.map(\.count))")
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// Data that only older snapshots need will become unused first, and a restore of the latest
  /// snapshot does not read it.
  @Test func blobsOfOlderSnapshotsAreInSeparateFrames() throws {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<20))
    try fixture.backUp(PruneFixture.files(0..<6))
    try fixture.backUp(PruneFixture.files(3..<6))
    try fixture.forget(0)
    _ = try fixture.prune()
    let latest = Set(PruneFixture.files(3..<6).map { Blake2b.hash($0.bytes) })
    let older = Set(PruneFixture.files(0..<3).map { Blake2b.hash($0.bytes) })
    let frames = try fixture.dataFrames()
    #expect(frames.count == 2 && frames.contains(latest) && frames.contains(older), "\(frames)")
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// If only some blobs of a file are used, they are stored as parts, which can be extracted by
  /// hand.
  @Test func usedPartsOfAFileCanBeExtracted() throws {
    var fixture = try PruneFixture()
    let bytes = SeededBytes.some(seed: 1, count: 7 << 20)
    try fixture.backUp([("movie", bytes)])
    let changed = SeededBytes.some(seed: 2, count: 2 << 20) + bytes[(2 << 20)...]
    try fixture.backUp([("movie", changed)])
    try fixture.forget(0)
    let report = try fixture.prune()
    #expect(!report.plan.packs(.rewrite).isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
    let members = try fixture.members()
    let isWhole = members["folders/test/movie"] != nil
    #expect(!isWhole)
    var size = 0
    for (name, content) in members where name.hasPrefix(".sandboxctl/parts/folders/test/movie/") {
      let offset = try #require(Int(name.suffix(16), radix: 16))
      let isInPlace = Array(changed[offset..<(offset + content.count)]) == content
      #expect(isInPlace, "\(name)")
      size += content.count
    }
    #expect(size == changed.count)
  }

  @Test func unusedDataWithinTheLimitStays() throws {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<20))
    try fixture.backUp(PruneFixture.files(0..<19))
    try fixture.forget(0)
    var request = PruneRequest()
    #expect(try fixture.plan(request).plan.packs(.rewrite).allSatisfy { !$0.hasData })
    request.maxUnused = .bytes(1000)
    #expect(
      try fixture.plan(request).plan.packs(.rewrite).contains { $0.reason == .limit && $0.hasData })
    for limit in [PruneRequest.UnusedLimit.fraction(0.99999999999999989), .bytes(.max)] {
      request.maxUnused = limit
      #expect(try fixture.plan(request).plan.packs(.rewrite).allSatisfy { $0.reason != .limit })
    }
    request.maxUnused = .unlimited
    #expect(try fixture.plan(request).plan.packs(.rewrite).isEmpty)
  }

  @Test func smallPacksAreCombined() throws {
    var fixture = try PruneFixture()
    for number in 0..<40 { try fixture.backUp(PruneFixture.files(number..<(number + 1))) }
    #expect(try fixture.packs().count == 80)
    let report = try fixture.prune(workers: 2)
    #expect(try fixture.packs().count <= 4)
    #expect(report.plan.packs(.rewrite).allSatisfy { $0.reason == .small })
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
    var request = PruneRequest()
    request.smallPacks = nil
    #expect(try fixture.prune(request).plan.isIdle)
  }

  /// The second copy of a blob is unused, and the first one stays.
  @Test func onlyOneCopyOfABlobIsKept() throws {
    var fixture = try PruneFixture()
    let files = PruneFixture.files(0..<10)
    let first = try fixture.repository.beginWriting()
    let second = try fixture.repository.beginWriting()
    for (number, session) in [first, second].enumerated() {
      let entries = try files.map { file in
        TreeEntry(
          name: ByteString(file.name),
          node: .file(
            try session.storeFile(
              logicalPath: ByteString("folders/test/" + file.name), bytes: file.bytes)))
      }
      let tree = try session.storeTree(entries)
      let stored = try session.finish(
        fixture.repository.makeSnapshot(tree, sequence: UInt64(number + 1)))
      fixture.snapshots.append((stored, files))
    }
    let before = try fixture.storedBytes()
    let report = try fixture.prune()
    #expect(report.removedBytes > before / 3)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  @Test func aDryRunChangesNothing() throws {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<10))
    try fixture.backUp(PruneFixture.files(5..<12))
    try fixture.forget(0)
    fixture.storage.state.withLock { $0.events = [] }
    let report = try fixture.plan()
    #expect(!report.plan.isIdle && report.plan.freedBytes > 0)
    let changes = fixture.storage.state.withLock(\.events).filter { event in
      ["commit", "rename", "remove", "touch", "start", "directories"].contains {
        event.hasPrefix($0)
      }
    }
    #expect(changes.isEmpty, "\(changes)")
  }

  @Test func anInterruptedPruneKeepsItsWork() throws {
    var fixture = try PruneFixture()
    for number in 0..<40 { try fixture.backUp(PruneFixture.files(number..<(number + 2))) }
    let stops = Atomic<Int>(0)
    let calls = Atomic<Int>(0)
    let report = try fixture.prune(isStopping: {
      calls.add(1, ordering: .relaxed)
      return stops.load(ordering: .relaxed) > 0 || calls.load(ordering: .relaxed) > 60
    })
    stops.store(1, ordering: .relaxed)
    #expect(report.isInterrupted && report.removedPacks > 0, "\(calls.load(ordering: .relaxed))")
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
    var request = PruneRequest()
    request.smallPacks = 2
    _ = try fixture.prune(request)
    #expect(try fixture.packs().count <= 4)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }
}

/// A prune refuses to remove anything if it cannot determine which data is needed.
struct PruneRefusalTests {
  private func fixture() throws -> PruneFixture {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<10))
    try fixture.backUp(PruneFixture.files(5..<15))
    try fixture.forget(0)
    return fixture
  }

  private func refused(
    _ fixture: PruneFixture, _ code: StoreError.Code, _ comment: Comment
  ) throws {
    let before = try fixture.packs()
    let error = storeError { try fixture.prune() }
    #expect(error?.code == code, comment)
    #expect(error?.hint?.isEmpty == false, comment)
    #expect(try fixture.packs() == before, comment)
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty, comment)
  }

  @Test func aMissingPackIsNotTakenForUnused() throws {
    let fixture = try fixture()
    let pack = try #require(try fixture.packs().first)
    try fixture.memory.remove(RepositoryLayout.tested.pack(pack))
    try refused(fixture, .missing, "pack")
  }

  @Test func aPinnedSnapshotThatIsLostMayNeedAnything() throws {
    var fixture = try fixture()
    let id = fixture.snapshots[0].stored.id
    try fixture.repository.pin([id])
    try fixture.backUp(PruneFixture.files(20..<22))
    try fixture.memory.remove(RepositoryLayout.tested.snapshot(id))
    try refused(fixture, .missing, "pinned")
    #expect(storeError { try fixture.plan() }?.code == .missing)
    let damage = RepositoryCheck.Finding.damage(
      object: "\(RepositoryLayout.tested.snapshot(id))", reason: "it is pinned and does not exist",
      hint: DamageRemedy.pinnedSnapshot)
    #expect(try fixture.findings().contains(damage))
    try fixture.repository.unpin([id])
    #expect(try fixture.prune().removedPacks > 0)
  }

  @Test func aSnapshotThatCannotBeReadMayNeedAnything() throws {
    let fixture = try fixture()
    try fixture.memory.change(RepositoryLayout.tested.snapshot(fixture.snapshots[0].stored.id)) {
      $0[20] ^= 1
    }
    try refused(fixture, .damaged, "snapshot")
  }

  @Test func anIndexObjectThatCannotBeReadMayNameAnything() throws {
    let fixture = try fixture()
    let index = try #require(try RepositoryListing.indexes(fixture.memory).first)
    try fixture.memory.change(RepositoryLayout.tested.index(index)) { $0[100] ^= 1 }
    try refused(fixture, .damaged, "index")
  }

  @Test func aTreeThatCannotBeReadMayNeedAnything() throws {
    let fixture = try fixture()
    let reader = try fixture.repository.beginReading()
    let tree = fixture.snapshots[0].stored.snapshot.tree
    let location = try #require(reader.index.set.find(BlobID(kind: .tree, digest: tree.digest)))
    try fixture.memory.changeContent(RepositoryLayout.tested.pack(location.pack)) {
      for byte in 8..<Int(location.frame.stored) { $0[Int(location.frame.offset) + byte] ^= 0xff }
    }
    let before = try fixture.packs()
    #expect(storeError { try fixture.prune() }?.kind == .damaged)
    #expect(try fixture.packs() == before)
  }

  @Test func aSnapshotInPendingMayNeedAnything() throws {
    let fixture = try fixture()
    try fixture.memory.makeDirectories(["pending"], in: .root)
    #expect(try fixture.plan().plan.isIdle == false)
    try fixture.memory.put([1], RepositoryLayout.pending.appending("x.json"))
    try refused(fixture, .unsupported, "pending")
  }

  /// A pack whose used data is damaged stays and is reported; the others are pruned.
  @Test func aDamagedPackIsNotRewritten() throws {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<20))
    try fixture.backUp(PruneFixture.files(0..<2))
    try fixture.forget(0)
    let reader = try fixture.repository.beginReading()
    let blob = BlobID(kind: .data, digest: Blake2b.hash(PruneFixture.files(0..<1)[0].bytes))
    let location = try #require(reader.index.set.find(blob))
    try fixture.memory.changeContent(RepositoryLayout.tested.pack(location.pack)) {
      $0[Int(location.frame.offset) + 600] ^= 0xff
    }
    let report = try fixture.prune()
    #expect(report.damaged.count == 1)
    #expect(try fixture.packs().contains(location.pack))
    let lost = try fixture.lost()
    #expect(!lost.isEmpty)
  }

  @Test func aSecondPruneEndsAtOnce() throws {
    let fixture = try fixture()
    let session = try fixture.repository.beginWriting()
    let right = try #require(try PruneLease(session.lease))
    #expect(storeError { try fixture.prune() }?.code == .busy)
    right.release()
    session.abandon()
    #expect(try fixture.prune().removedPacks > 0)
  }
}

extension PruneFixture {
  /// Returns the compressed bytes of all frames.
  func storedFrames() throws -> Set<[UInt8]> {
    var frames: Set<[UInt8]> = []
    for (pack, size) in try RepositoryListing.packSizes(memory) {
      for frame in try PackTables.load(pack, size: size, from: memory).frames {
        frames.insert(
          try RepositoryStorage(memory).load(
            pack: pack, offset: frame.offset, count: Int(frame.stored)))
      }
    }
    return frames
  }

  /// Returns the blobs of each frame of file contents.
  func dataFrames() throws -> [Set<Digest>] {
    try RepositoryListing.packSizes(memory).flatMap { pack, size in
      let records = try PackTables.load(pack, size: size, from: memory).records
      return Dictionary(grouping: records.filter { $0.kind == .data }, by: \.frame).values
        .map { Set($0.map(\.digest)) }
    }
  }
}
