import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Damaged or missing index objects: the packs' own tables are used instead.
struct IndexDamageTests {
  private let storage = MemoryStorage()
  private let repository: Repository
  private let first: StoredSnapshot
  private let second: StoredSnapshot
  private let many = (0..<20).map { ("\($0)", SeededBytes.some(seed: UInt64($0), count: 300)) }
  private let few = [("few", SeededBytes.some(seed: 99, count: 700))]

  /// Makes two backups whose sizes are such that their index objects are not merged.
  init() throws {
    repository = try Repository.create(in: storage, program: "test")
    first = try repository.back(up: many)
    second = try repository.back(up: few, sequence: 2)
  }

  private func indexes() throws -> [ObjectPath] {
    try RepositoryListing.indexes(storage).map { RepositoryLayout.tested.index($0) }
  }

  /// Reads every file of both snapshots and returns the reader's remarks.
  private func readAll() throws -> [StoreError] {
    let reader = try repository.beginReading()
    for (name, bytes) in many {
      #expect(try reader.bytes(at: ByteString(name), in: first) == bytes)
    }
    for (name, bytes) in few {
      #expect(try reader.bytes(at: ByteString(name), in: second) == bytes)
    }
    return reader.remarks
  }

  /// Ways to damage an object.
  enum Damage: CaseIterable {
    case removed, empty, cut, flipped, longer, link, newer
  }

  private func damage(_ path: ObjectPath, _ damage: Damage) throws {
    switch damage {
    case .removed: try storage.remove(path)
    case .empty: try storage.put([], path)
    case .cut: try storage.change(path) { $0.removeLast($0.count / 2) }
    case .flipped: try storage.change(path) { $0[$0.count - 20] ^= 1 }
    case .longer: try storage.change(path) { $0.append(0) }
    case .link:
      try storage.remove(path)
      try storage.makeDirectories([path.name], in: path.directory)
    case .newer:
      // An object of a future version, stored under the hash of its bytes.
      var bytes = try storage.load(path, limit: 1 << 20)
      bytes[8] = 2
      try storage.remove(path)
      try storage.put(bytes, RepositoryLayout.tested.index(Blake2b.hash(bytes)))
    }
  }

  @Test(arguments: Damage.allCases) func damagedIndexLosesNothing(_ kind: Damage) throws {
    #expect(try readAll().isEmpty)
    let objects = try indexes()
    #expect(objects.count == 2)
    for path in objects {
      let good = try storage.load(path, limit: 1 << 20)
      let before = Set(try indexes())
      try damage(path, kind)
      let remarks = try readAll()
      let added = Set(try indexes()).subtracting(before)
      let name = kind == .removed ? "index" : "\(added.first ?? path)"
      #expect(remarks.contains { $0.subject == name }, "\(remarks)")
      #expect(remarks.allSatisfy { $0.hint != nil })
      for other in added { try storage.remove(other) }
      if kind != .removed, added.isEmpty { try storage.remove(path) }
      try storage.put(good, path)
    }
    #expect(try readAll().isEmpty)
  }

  @Test func everythingIsReadWithoutAnIndex() throws {
    for path in try indexes() { try storage.remove(path) }
    #expect(try readAll().count == 1)
    try storage.remove(RepositoryLayout.indexes)
    #expect(try readAll().count == 1)
  }

  @Test func everyFlippedByteOfAnIndexIsHarmless() throws {
    let path = try #require(try indexes().max { try size($0) < size($1) })
    let good = try storage.load(path, limit: 1 << 20)
    for position in stride(from: 0, to: good.count, by: 17) {
      var bad = good
      bad[position] ^= 0x20
      try storage.put(bad, path)
      #expect(try readAll().first?.subject == "\(path)")
    }
  }

  private func size(_ path: ObjectPath) throws -> UInt64 { try storage.status(path)?.size ?? 0 }

  /// Without an index, a damaged pack loses only its own contents.
  @Test func damagedPackLosesOnlyItsContents() throws {
    let reader = try repository.beginReading()
    let blob = BlobID(kind: .data, digest: Blake2b.hash(few[0].1))
    let pack = try #require(reader.locate(blob)).pack
    for path in try indexes() { try storage.remove(path) }
    try storage.change(RepositoryLayout.tested.pack(pack)) { $0.removeLast(9) }
    let other = try repository.beginReading()
    #expect(try other.bytes(at: "3", in: first) == many[3].1)
    #expect(storeError { try other.bytes(at: "few", in: second) }?.kind == .damaged)
  }

  /// Blobs that only a damaged index object names are stored again, so that the new snapshot does
  /// not need the old packs.
  @Test(arguments: [Damage.removed, .flipped, .cut])
  func writerDoesNotRelyOnADamagedIndex(_ kind: Damage) throws {
    let old = try RepositoryListing.packs(storage)
    for path in try indexes() { try damage(path, kind) }
    let session = try repository.beginWriting()
    #expect(session.damagedIndexes.count == (kind == .removed ? 0 : 2))
    #expect(session.indexedPacks.isEmpty)
    session.abandon()
    let third = try repository.back(up: many, sequence: 3)
    #expect(third.snapshot.tree == first.snapshot.tree)
    for pack in old { try storage.remove(RepositoryLayout.tested.pack(pack)) }
    let reader = try repository.beginReading()
    for (name, bytes) in many {
      #expect(try reader.bytes(at: ByteString(name), in: third) == bytes)
    }
    let found = try Checked(repository, .everything)
    #expect(found.costs.values.allSatisfy { !$0.contains(third.id) })
    #expect(found.costs.values.contains { $0.contains(second.id) })
  }

  /// A damaged object is not merged, but stays until a repair.
  @Test func damagedIndexIsNotMerged() throws {
    let paths = try indexes()
    for path in paths { try damage(path, .flipped) }
    for number in 3..<12 {
      try repository.back(up: [("x", [UInt8(number)])], sequence: UInt64(number))
    }
    #expect(try Set(indexes()).isSuperset(of: paths))
    _ = try readAll()
  }

  @Test(arguments: Damage.allCases) func checkNamesTheDamagedIndex(_ kind: Damage) throws {
    let path = try #require(try indexes().first)
    try damage(path, kind)
    for reading in [RepositoryCheck.Reading.trees, .everything] {
      let found = try Checked(repository, reading)
      #expect(found.damaged.count == 1, "\(found.findings)")
      #expect(kind == .newer || found.damaged == [kind == .removed ? "index" : "\(path)"])
      #expect(found.costs.isEmpty, "\(found.findings)")
    }
  }

  /// Unused packs do not mean that the index is damaged.
  @Test func packsOfAnInterruptedRunAreNotDamage() throws {
    let before = try indexes().map { ($0, try storage.load($0, limit: 1 << 20)) }
    let session = try repository.beginWriting()
    _ = try session.storeFile(logicalPath: "folders/x/y", bytes: [1, 2, 3])
    try session.checkpoint()
    session.abandon()
    // As if the run had ended after storing its packs and before storing its index.
    for path in try indexes() { try storage.remove(path) }
    for (path, bytes) in before { try storage.put(bytes, path) }
    let found = try Checked(repository, .everything)
    #expect(found.damaged.isEmpty && found.remarks == ["packs"], "\(found.findings)")
  }
}

/// Blobs that are in two packs.
struct SecondCopyTests {
  private let storage = WatchedStorage(MemoryStorage())
  private let repository: Repository
  private let bytes = SeededBytes.some(seed: 3, count: 4000)
  private var blob: BlobID { BlobID(kind: .data, digest: Blake2b.hash(bytes)) }

  /// Two concurrent writers store the same data; their index objects are merged.
  init() throws {
    repository = try Repository.create(in: storage, program: "test")
    let sessions = [try repository.beginWriting(), try repository.beginWriting()]
    for (number, session) in sessions.enumerated() {
      let content = try session.storeFile(logicalPath: "folders/test/twice", bytes: bytes)
      let tree = try session.storeTree([TreeEntry(name: "twice", node: .file(content))])
      _ = try session.finish(repository.makeSnapshot(tree, sequence: UInt64(number + 1)))
    }
  }

  private func positions() throws -> [IndexSet.BlobLocation] {
    let objects = try LoadedIndex.loadAll(from: storage).objects
    #expect(objects.count == 1)
    return IndexSet(objects).findAll(blob)
  }

  private func change(_ path: ObjectPath, _ body: (inout [UInt8]) -> Void) throws {
    var bytes = try storage.load(path, limit: 1 << 20)
    body(&bytes)
    try storage.save(bytes, as: path, by: RepositoryLayout.leases)
  }

  @Test(arguments: [0, 1], ["flipped", "cut", "removed"])
  func intactCopyOfABlobIsUsed(damaged: Int, how: String) throws {
    let positions = try positions()
    #expect(positions.count == 2)
    let path = RepositoryLayout.tested.pack(positions[damaged].pack)
    switch how {
    case "flipped": try change(path) { $0[900] ^= 1 }
    case "cut": try change(path) { $0.removeSubrange(800...) }
    default: try storage.remove(path)
    }
    #expect(try repository.beginReading().readBlob(blob) == bytes)
    let taken = try delivered()
    #expect(taken == (damaged == 0 ? [] : [blob.digest]), "the delivery uses the first location")
    let other = RepositoryLayout.tested.pack(positions[1 - damaged].pack)
    try change(other) { $0[900] ^= 1 }
    #expect(storeError { try repository.beginReading().readBlob(blob) }?.kind == .damaged)
  }

  /// The same without an index.
  @Test func intactCopyOfABlobIsUsedWithoutAnIndex() throws {
    let positions = try positions()
    for id in try RepositoryListing.indexes(storage) {
      try storage.remove(RepositoryLayout.tested.index(id))
    }
    for position in positions {
      let path = RepositoryLayout.tested.pack(position.pack)
      try change(path) { $0[900] ^= 1 }
      #expect(try repository.beginReading().readBlob(blob) == bytes)
      try change(path) { $0[900] ^= 1 }
    }
  }

  private final class Sink: BlobDelivery.Sink {
    let received: Received
    init(_ taken: Received) { self.received = taken }
    func receive(_ blobs: [BlobDelivery.Blob], of frame: [UInt8]) {
      let found = blobs.filter { $0.range != nil }.map(\.use.digest)
      received.digests.withLock { $0 += found }
    }
    func reportMissing(_ uses: [BlobDelivery.Use], _ error: StoreError) {}
  }

  private final class Received: Sendable {
    let digests = Mutex<[Digest]>([])
  }

  private func delivered() throws -> [Digest] {
    let taken = Received()
    let use = BlobDelivery.Use(digest: blob.digest, length: UInt32(bytes.count), item: 0, offset: 0)
    let makeSink = { @Sendable in Sink(taken) }
    try repository.beginReading().deliver(
      [use], threads: 1, isStopping: { false }, to: makeSink)
    return taken.digests.withLock { $0 }
  }
}

/// The cost of a missing pack for a reader.
struct GonePackTests {
  @Test func indexIsListedOnceForAMissingPack() throws {
    let storage = WatchedStorage(MemoryStorage())
    let repository = try Repository.create(in: storage, program: "test")
    let files = (0..<60).map { ("\($0)", SeededBytes.some(seed: UInt64($0), count: 100)) }
    let snapshot = try repository.back(up: files)
    let reader = try repository.beginReading()
    let blobs = files.map { BlobID(kind: .data, digest: Blake2b.hash($0.1)) }
    let packs = Set(blobs.compactMap { reader.locate($0)?.pack })
    #expect(packs.count == 1)
    for pack in packs { try storage.remove(RepositoryLayout.tested.pack(pack)) }
    storage.state.withLock { $0.events = [] }
    for blob in blobs { #expect(storeError { try reader.readBlob(blob) }?.code == .missing) }
    #expect(try reader.entries(of: snapshot.snapshot.tree).count == 60)
    let events = storage.state.withLock(\.events)
    #expect(events.count { $0 == "list index" } == 1)
    #expect(events.count { $0 == "objects packs" } == 1)
    #expect(events.count < 20, "\(events)")
  }
}
