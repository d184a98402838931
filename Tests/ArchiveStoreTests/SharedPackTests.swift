import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Packs that are so large that several threads read the frames of one.
@Suite struct SharedPackTests {
  private let storage: MemoryStorage
  private let repository: Repository
  private let packs: [PrunePlan.Pack]

  /// Stores files of random bytes in a pack of several shares; their tree is in another pack.
  init() throws {
    storage = MemoryStorage()
    repository = try Repository.create(in: storage, program: "test")
    _ = try repository.back(up: PruneFixture.files(0..<24, size: 2 << 20))
    packs = try RepositoryPrune(repository, PruneRequest()).plan(at: Host.now()).plan.packs
      .sorted { $0.size > $1.size }
  }

  @Test(arguments: [1, 3]) func everyBlobIsReceivedOnceAndEachPackEndsOnce(threads: Int) throws {
    try #require(packs[0].size > 2 * FrameDelivery.shareSize)
    let record = Record()
    #expect(try deliver(threads: threads, to: record))
    let seen = record.seen
    #expect(seen.blobs.count == packs.reduce(0) { $0 + $1.usedBlobs })
    #expect(Set(seen.blobs).count == seen.blobs.count)
    #expect(seen.ended.sorted() == packs.map(\.id).sorted())
    // The threads begin shares, not packs.
    #expect(seen.begun.count { $0 == packs[0].id } >= 3)
    #expect(seen.framesAfterEnd == 0)
  }

  /// After damage that ends a pack, no thread continues it, and it does not end as a whole.
  @Test func damagedPackDoesNotEnd() throws {
    try damageMiddle()
    let record = Record()
    record.stopsPacks = true
    #expect(try deliver(threads: 3, to: record))
    #expect(!record.seen.ended.contains(packs[0].id))
    #expect(record.seen.missing == 1)
    #expect(record.seen.ended.count == packs.count - 1)
  }

  /// Damage that ends no pack loses the blobs of its frame only.
  @Test func damagedFrameIsLeftOut() throws {
    try damageMiddle()
    let record = Record()
    #expect(try deliver(threads: 3, to: record))
    #expect(record.seen.ended.count == packs.count && record.seen.missing == 1)
    let received = record.seen.blobs.count { $0.kind == .data }
    #expect(received < packs[0].usedBlobs && received > packs[0].usedBlobs * 3 / 4)
  }

  /// A pack without readable tables is reported once, not once by each thread.
  @Test func unreadableTablesAreReportedOnce() throws {
    try storage.changeContent(RepositoryLayout.tested.pack(packs[0].id)) { $0[$0.count - 3] ^= 1 }
    let record = Record()
    #expect(try deliver(threads: 3, to: record))
    #expect(record.seen.missing == 1 && record.seen.ended.count == packs.count)
    #expect(!record.seen.blobs.contains { $0.kind == .data })
  }

  /// An interruption does not end the packs that were begun.
  @Test func interruptionCompletesThePack() throws {
    let record = Record()
    let isComplete = try deliver(threads: 3, to: record) { !record.seen.begun.isEmpty }
    #expect(!isComplete)
    #expect(record.seen.ended == [packs[0].id])
    #expect(record.seen.blobs.count == packs[0].usedBlobs)
  }

  private func damageMiddle() throws {
    try storage.changeContent(RepositoryLayout.tested.pack(packs[0].id)) { $0[$0.count / 2] ^= 1 }
  }

  private func deliver(
    threads: Int, to record: Record, isStopping: @escaping @Sendable () -> Bool = { false }
  ) throws -> Bool {
    try FrameDelivery(packs, from: repository.storage, isStopping: isStopping)
      .run(threads: threads) { Receiver(record: record) }
  }
}

/// The events of a delivery, from all threads.
private final class Record: Sendable {
  private let state = Mutex(Seen())
  private let stops = Mutex(false)

  struct Seen {
    var begun: [Digest] = []
    var ended: [Digest] = []
    var blobs: [BlobID] = []
    var missing = 0
    var framesAfterEnd = 0
  }

  var seen: Seen { state.withLock { $0 } }

  /// Whether damage ends a pack.
  var stopsPacks: Bool {
    get { stops.withLock { $0 } }
    set { stops.withLock { $0 = newValue } }
  }

  func change(_ body: (inout Seen) -> Void) { state.withLock { body(&$0) } }
}

private struct Receiver: FrameDelivery.Receiver {
  let record: Record
  private var pack: Digest?

  init(record: Record) { self.record = record }

  mutating func begin(_ pack: FrameDelivery.Pack) -> (BlobRecord) -> Bool {
    self.pack = pack.id
    record.change { $0.begun.append(pack.id) }
    return { _ in true }
  }

  func receive(_ frame: PackFrames.Frame) {
    record.change { seen in
      seen.blobs += frame.used.map(\.id)
      if let pack, seen.ended.contains(pack) { seen.framesAfterEnd += 1 }
    }
  }

  func reportMissing(
    _ blobs: [BlobRecord]?, of pack: FrameDelivery.Pack, _ error: StoreError
  ) -> Bool {
    record.change { $0.missing += 1 }
    return !record.stopsPacks
  }

  func end(_ pack: FrameDelivery.Pack) { record.change { $0.ended.append(pack.id) } }

  func finish() {}
}
