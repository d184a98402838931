import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Packs that are hashed together, and are therefore closed at smaller sizes.
struct PackSharingTests {
  private static let target = 40_000

  /// Packers of a run with a storage in memory.
  private struct Fixture {
    let memory: MemoryStorage
    let storage: WatchedStorage
    let lease: Lease
    let status = RunStatus(location: "test")
    let packs: RunPacks
    let hashers: [MultiStreamHasher]
    let lanes: PackerPool

    init(workers: Int, room: (count: Int, size: Int) = (16, 1000), shares: Bool = true) throws {
      memory = MemoryStorage()
      storage = WatchedStorage(memory)
      lease = try Lease(try Repository.create(in: storage, program: "test").storage)
      packs = RunPacks(lease, status)
      let made = Mutex<[MultiStreamHasher]>([])
      let make = {
        let hasher = MultiStreamHasher(count: room.count, size: room.size)
        made.withLock { $0.append(hasher) }
        return hasher
      }
      lanes = PackerPool(
        packs, KnownBlobs(IndexSet([])), workers: workers, target: PackSharingTests.target,
        hasher: shares ? make : nil)
      hashers = made.withLock { $0 }
    }

    var gathered: Int { hashers.reduce(0) { $0 + $1.gathered } }

    func append(_ count: Int, seed: UInt64) throws {
      var random = SeededBytes(seed: seed)
      for _ in 0..<count {
        let stored = random.bytes(random.number(1..<5000))
        try lanes.append(PackFrame(stored: stored, plain: 1, blobs: []))
      }
    }

    /// Closes all packs, as a checkpoint does.
    func settle() throws {
      for pack in lanes.all.compactMap({ $0.detachOpen() }) { try packs.closeSoon(pack) }
      try packs.wait()
    }

    /// Expects each pack to be named by the hash of its bytes.
    func expectRightNames() throws {
      #expect(packs.areAllClosed && gathered == 0)
      for (_, pack) in packs.unindexed {
        let bytes = try memory.load(RepositoryLayout.tested.pack(pack.id), limit: .max)
        #expect(Blake2b.hash(bytes) == pack.id && UInt64(bytes.count) == pack.size)
      }
    }

    var sizes: [UInt64] { packs.unindexed.map(\.pack.size) }
  }

  @Test(arguments: [1, 2, 3, 8, 12]) func everyPackIsNamedByItsHash(workers: Int) throws {
    let fixture = try Fixture(workers: workers)
    try fixture.append(400, seed: 51)
    try fixture.settle()
    try fixture.expectRightNames()
    #expect(fixture.sizes.count > 20)
  }

  @Test(arguments: [1, 2]) func smallRunMakesOnePack(workers: Int) throws {
    let fixture = try Fixture(workers: workers)
    try fixture.append(8, seed: 52)
    #expect(fixture.gathered == 0)
    try fixture.settle()
    #expect(fixture.sizes.count == 1)
    try fixture.expectRightNames()
  }

  /// Once the first pack is full, four are open, whatever the number of workers, and receive equal
  /// shares.
  @Test(arguments: [1, 2]) func fourPacksAreOpenAfterTheFirstIsFull(workers: Int) throws {
    let fixture = try Fixture(workers: workers, room: (64, 1000))
    let frame = PackFrame(stored: [UInt8](repeating: 1, count: 1000), plain: 1, blobs: [])
    for _ in 0..<40 { try fixture.lanes.append(frame) }
    #expect(fixture.lanes.active.count == 4 && fixture.gathered == 0)
    for _ in 0..<8 { try fixture.lanes.append(frame) }
    #expect(fixture.gathered == 8000)
    #expect(fixture.lanes.active.map(\.sharedBytes) == [2000, 2000, 2000, 2000])
    try fixture.settle()
    #expect(fixture.sizes.count == 5)
    try fixture.expectRightNames()
  }

  /// The packs become full one after another, even after a checkpoint.
  @Test func packsAreFilledOneAfterAnother() throws {
    let fixture = try Fixture(workers: 2)
    let frame = PackFrame(stored: [UInt8](repeating: 1, count: 1000), plain: 1, blobs: [])
    for _ in 0..<40 { try fixture.lanes.append(frame) }
    try fixture.settle()
    for _ in 0..<2 {
      let before = fixture.packs.unindexed.count
      for _ in 0..<(4 * 40) { try fixture.lanes.append(frame) }
      try fixture.packs.wait()
      let full = fixture.sizes[before...].map { ($0 + 500) / 1000 }
      #expect(full.sorted() == [10, 20, 30, 40])
      try fixture.settle()
    }
    try fixture.expectRightNames()
  }

  /// If hashing together is not faster, no additional packs are open.
  @Test func withoutVectorLanesTwoWorkersShareAPacker() throws {
    let fixture = try Fixture(workers: 2, shares: false)
    try fixture.append(100, seed: 53)
    #expect(fixture.lanes.active.count == 2 && fixture.lanes.all.count == 2)
    try fixture.settle()
    try fixture.expectRightNames()
  }

  /// Some threads append while another makes checkpoints: no data is lost.
  @Test func checkpointsWhileOthersAppend() throws {
    let fixture = try Fixture(workers: 6)
    let threads = try Workers(count: 5, capacity: 5, name: "test")
    let done = Atomic<Int>(0)
    for number in 0..<4 {
      threads.submit {
        #expect(throws: Never.self) { try fixture.append(300, seed: 60 + UInt64(number)) }
        done.add(1, ordering: .sequentiallyConsistent)
      }
    }
    threads.submit {
      while done.load(ordering: .sequentiallyConsistent) < 4 {
        #expect(throws: Never.self) { try fixture.settle() }
      }
    }
    threads.finish()
    try fixture.settle()
    try fixture.expectRightNames()
    #expect(fixture.packs.counts.packs > 60)
  }

  /// A storage failure while bytes are buffered for hashing ends the run with that error, and frees
  /// the buffer.
  @Test(arguments: [30, 45, 46, 47, 48, 49, 60, 90]) func storageFailureEndsTheRun(call: Int) throws
  {
    let fixture = try Fixture(workers: 2)
    fixture.storage.fail(at: call)
    let error = storeError {
      try fixture.append(150, seed: 54)
      try fixture.settle()
    }
    #expect(error?.code == .system && error?.reason == "the test says so")
    fixture.status.end()
    fixture.lanes.discard()
    try? fixture.packs.wait()
    #expect(fixture.gathered == 0)
  }

  /// A write to a pack has failed, but its thread has not ended the run yet: a checkpoint by
  /// another thread must not close the pack.
  @Test func tornPackIsNotClosed() throws {
    let fixture = try Fixture(workers: 1)
    let pack = try PackWriter(number: 1, lease: fixture.lease, isReadSoon: false)
    let frame = PackFrame(stored: [1, 2, 3], plain: 3, blobs: [])
    _ = try pack.append(frame)
    fixture.storage.fail(at: 1)
    #expect(storeError { _ = try pack.append(frame) }?.code == .system)
    #expect(storeError { _ = try pack.close() }?.code == .invalid)
    let events = fixture.storage.state.withLock(\.events)
    #expect(!events.contains { $0.hasPrefix("commit packs/") })
    pack.discard()
  }
}

/// The same in a session.
struct SharingSessionTests {
  private static let files = (0..<24).map {
    SeededBytes.some(seed: UInt64(70 + $0), count: 60_000 + $0)
  }

  private let storage = WatchedStorage(MemoryStorage())

  private func begin(_ repository: Repository) throws -> WritingSession {
    try WritingSession(
      repository, workers: 2, cache: nil, packTarget: 300_000,
      hasher: { MultiStreamHasher(count: 16, size: 8 << 10) })
  }

  /// Stores some of the files, each in its own frame.
  private func store(_ numbers: Range<Int>, in session: WritingSession) throws -> [TreeEntry] {
    let writer = try session.makeWriter()
    return try numbers.map { number in
      let content = try writer.storeFile(
        logicalPath: ByteString("folders/x/\(number)"), bytes: Self.files[number])
      try writer.flush()
      return TreeEntry(name: ByteString("\(number)"), node: .file(content))
    }
  }

  @Test func snapshotOfSharedPacksIsComplete() throws {
    let repository = try Repository.create(in: storage, program: "test")
    let session = try begin(repository)
    var entries = try store(0..<14, in: session)
    #expect(session.packers.active.count == 4)
    try session.checkpoint()
    entries += try store(14..<24, in: session)
    let snapshot = try session.finish(
      repository.makeSnapshot(try session.storeTree(entries)))
    let reader = try repository.beginReading()
    for (number, bytes) in Self.files.enumerated() {
      #expect(try reader.bytes(at: ByteString("\(number)"), in: snapshot) == bytes)
    }
    #expect(session.indexedPacks.count > 8)
    for id in session.indexedPacks {
      let bytes = try storage.load(RepositoryLayout.tested.pack(id), limit: .max)
      #expect(Blake2b.hash(bytes) == id)
    }
  }

  @Test func abandonedSessionLeavesNothing() throws {
    let repository = try Repository.create(in: storage, program: "test")
    let session = try begin(repository)
    _ = try store(0..<20, in: session)
    #expect(session.packers.active.count == 4)
    session.abandon()
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
    #expect(try storage.list(RepositoryLayout.indexes).isEmpty)
  }

  /// Each storage call fails in turn. If the run fails, it leaves neither a snapshot nor an
  /// unfinished object.
  @Test func everyFailedStorageCallLeavesNothing() throws {
    for number in 1... {
      let storage = WatchedStorage(MemoryStorage())
      let repository = try Repository.create(in: storage, program: "test")
      let session = try begin(repository)
      storage.fail(at: number)
      let error = storeError {
        let entries = try store(0..<18, in: session)
        try session.checkpoint()
        _ = try session.finish(repository.makeSnapshot(try session.storeTree(entries)))
      }
      let hasFailed = storage.hasFailed
      storage.fail(at: nil)
      if !hasFailed {
        #expect(error == nil && number > 40)
        return
      }
      guard error != nil else { continue }
      session.abandon()
      #expect(try storage.list(RepositoryLayout.leases).isEmpty, "call \(number)")
      #expect(try repository.snapshots().snapshots.isEmpty, "call \(number)")
    }
  }
}
