import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Packs that a copy cannot read at all: their blobs are found with few scans of the index, however
/// many packs there are.
struct UnreadablePacksTests {
  private static let error = StoreError.damaged("a pack", "it is damaged")

  private static func id(_ number: Int) -> Digest { Blake2b.hash(Array("\(number)".utf8)) }

  private static func pack(_ number: Int, blobs: Int) -> PrunePlan.Pack {
    PrunePlan.Pack(
      id: id(number), size: 1, used: 1, unused: 0, usedBlobs: blobs, unusedBlobs: 0, hasData: true)
  }

  /// The packs of each scan, and the packs that were passed on with their blobs.
  private func scans(
    of count: Int, blobs: Int, limit: Int, isStopping: (_ packs: Int) -> Bool = { _ in false }
  ) throws -> (scans: [Set<Digest>], passed: [Digest], isComplete: Bool) {
    let unreadable = UnreadablePacks(blobsOfScan: limit)
    for number in 0..<count { unreadable.add(Self.pack(number, blobs: blobs), Self.error) }
    var (scans, passed): ([Set<Digest>], [Digest]) = ([], [])
    func find(_ packs: Set<Digest>) -> [Digest: [BlobRecord]] {
      scans.append(packs)
      return Dictionary(
        uniqueKeysWithValues: packs.map { pack in
          let blob = BlobID(kind: .data, digest: pack)
          return (pack, [BlobRecord(id: blob, offset: 0, length: 1)])
        })
    }
    func isInterrupted() -> Bool { isStopping(passed.count) }
    let isComplete = try unreadable.forEach(findingBlobs: find, isStopping: isInterrupted) {
      pack, blobs in
      #expect(blobs.map(\.digest) == [pack.pack.id])
      passed.append(pack.pack.id)
    }
    return (scans, passed, isComplete)
  }

  @Test func manyPacksNeedOneScan() throws {
    let (scans, passed, isComplete) = try scans(of: 1000, blobs: 100, limit: 1 << 20)
    #expect(scans.count == 1 && passed == (0..<1000).map(Self.id).sorted() && isComplete)
    #expect(try self.scans(of: 0, blobs: 1, limit: 1).scans.isEmpty)
  }

  /// The blobs of a scan are kept in memory, so their number is limited.
  @Test func aScanFindsALimitedNumberOfBlobs() throws {
    let (scans, passed, _) = try scans(of: 10, blobs: 4, limit: 12)
    #expect(scans.map(\.count) == [3, 3, 3, 1] && passed.count == 10)
    #expect(try self.scans(of: 3, blobs: 20, limit: 12).scans.map(\.count) == [1, 1, 1])
  }

  @Test func anInterruptionEndsTheScans() throws {
    let (scans, passed, isComplete) = try scans(of: 9, blobs: 1, limit: 3) { $0 == 4 }
    #expect(scans.count == 2 && passed.count == 4 && !isComplete)
  }

  /// Packs that could not be read at all are reported even after an interruption.
  @Test func anInterruptionReportsThePacksThatAreLeft() throws {
    let fixture = try CopyFixture()
    var needs = try SnapshotNeedsSearch(
      fixture.source.repository, cache: nil, threads: 1, isStopping: { false },
      snapshot: { try fixture.source.repository.snapshot($0) })
    _ = try needs.mark(try fixture.source.repository.heads(cache: nil).heads)
    let search = needs.search
    for pack in try fixture.source.packs() {
      try fixture.source.memory.change(RepositoryLayout.tested.pack(pack)) { bytes in
        for at in bytes.indices { bytes[at] ^= 0x5a }
      }
    }
    func check(stoppingAt last: Int) throws -> (result: CopyCheck.Result, calls: Int) {
      let calls = Mutex(0)
      let check = CopyCheck(fixture.source.repository, search, counters: ProgressCounters())
      let result = try check.run(threads: 1) {
        calls.withLock { calls in
          calls += 1
          return calls >= last
        }
      }
      return (result, calls.withLock { $0 })
    }
    let (whole, calls) = try check(stoppingAt: .max)
    let (stopped, _) = try check(stoppingAt: calls)
    #expect(!whole.isInterrupted && stopped.isInterrupted)
    #expect(whole.damaged.count == 6 && stopped.lost.count < whole.lost.count)
    #expect(stopped.damaged.map(\.description) == whole.damaged.map(\.description))
  }

  /// Damaged packs are recognized even if the condemned ones are unknown.
  @Test func damagedPacksAreKnownWithoutCondemnedOnes() throws {
    let fixture = try CopyFixture()
    let pack = try fixture.source.pack(ofFile: 0)
    try fixture.source.flip(pack)
    try RepositoryCheck(fixture.source.repository, reading: .everything, workers: 1).run()
      .recordDamage()
    fixture.source.storage.state.withLock { state in
      state.failure = { event in
        event.contains("condemned")
          ? StoreError(.system, "list", subject: "condemned", reason: "the test says so") : nil
      }
    }
    let known = try ReadableIndex(fixture.source.repository, cache: nil)
    #expect(known.index.packs(in: .damaged) == [pack])
    let error = storeError {
      try ReadableIndex(fixture.source.repository, cache: nil, isReliedOn: true)
    }
    #expect(error?.subject == "condemned")
  }

  /// A pack that a prune removed is not damage.
  @Test func removedPacksAreNotDamage() throws {
    let unreadable = UnreadablePacks()
    unreadable.add(Self.pack(0, blobs: 1), .missing("a pack"))
    unreadable.add(Self.pack(1, blobs: 1), Self.error)
    #expect(unreadable.leftDamage == [Self.error])
    func find(_ packs: Set<Digest>) -> [Digest: [BlobRecord]] { [:] }
    func isInterrupted() -> Bool { false }
    _ = try unreadable.forEach(findingBlobs: find, isStopping: isInterrupted) { _, _ in }
    #expect(unreadable.leftDamage.isEmpty)
  }

  /// One scan finds the blobs that are marked as used in several packs.
  @Test func oneScanFindsTheBlobsOfAllPacks() throws {
    let fixture = try CopyFixture()
    var needs = try SnapshotNeedsSearch(
      fixture.source.repository, cache: nil, threads: 1, isStopping: { false },
      snapshot: { try fixture.source.repository.snapshot($0) })
    _ = try needs.mark(try fixture.source.repository.heads(cache: nil).heads)
    let packs = PackUsage.packs(of: needs.search).filter { $0.usedBlobs > 0 }
    let blobs = needs.search.blobs(in: Set(packs.map(\.id)))
    #expect(packs.count == 6 && blobs.count == 6)
    for pack in packs { #expect(blobs[pack.id]?.count == pack.usedBlobs) }
    #expect(blobs.values.reduce(0) { $0 + $1.count } == needs.search.used.count)
    let (first, rest) = (packs[0].id, Set(packs.dropFirst().map(\.id)))
    #expect(needs.search.blobs(in: rest)[first] == nil)
  }

  /// If several packs cannot be read at all, the copies of their blobs in other packs are used.
  @Test(arguments: [1, 3]) func intactCopiesOfSeveralPacksAreUsed(workers: Int) throws {
    var fixture = try CopyFixture()
    let packs = try Set([4, 8, 20].map { try fixture.source.pack(ofFile: $0) })
    let session = try fixture.source.repository.beginWriting()
    session.exclude(packs)
    for (name, bytes) in PruneFixture.files(0..<9) {
      _ = try session.storeFile(logicalPath: ByteString("folders/test/\(name)"), bytes: bytes)
    }
    try session.checkpoint()
    session.abandon()
    for pack in packs {
      try fixture.source.memory.change(RepositoryLayout.tested.pack(pack)) { bytes in
        for at in bytes.indices { bytes[at] ^= 0x5a }
      }
    }
    let report = try fixture.copy(workers: workers)
    #expect(packs.count == 3 && report.copied.count == 2 && report.incomplete.count == 1)
    #expect(report.incomplete.map(\.head.id) == [fixture.source.snapshots[2].stored.id])
    #expect(
      report.damaged.contains { error in packs.contains { error.subject.contains($0.hex) } },
      "\(report.damaged)")
    fixture.source.snapshots.removeLast()
    try fixture.expectComplete(2)
  }
}
