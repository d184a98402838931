import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

struct IndexTests {
  private static func digest(_ number: Int) -> Digest { Blake2b.hash(Array("\(number)".utf8)) }

  /// Makes an index of `blobs` data blobs, a tree and a list, in two packs.
  private static func builder(blobs: Int) -> IndexBuilder {
    var builder = IndexBuilder()
    builder.packs = [
      .init(
        id: digest(-1), size: 5000,
        frames: [
          FrameLocation(offset: 0, stored: 2000, plain: 4 << 20),
          FrameLocation(offset: 2000, stored: 1000, plain: 4 << 20),
        ]),
      .init(
        id: digest(-2), size: 900, frames: [FrameLocation(offset: 0, stored: 900, plain: 2 << 20)]),
    ]
    builder.records = (0..<blobs).map { number in
      BlobRecord(
        id: BlobID(kind: .data, digest: digest(number)), pack: 0, frame: UInt16(number % 2),
        offset: UInt32(number * 10), length: 10)
    }
    for (number, kind) in [(0, BlobKind.tree), (1, .list)] {
      builder.records.append(
        BlobRecord(id: BlobID(kind: kind, digest: digest(number)), pack: 1, offset: 0, length: 99))
    }
    return builder
  }

  private func open(_ bytes: [UInt8]) throws -> IndexObject {
    try IndexObject(bytes: bytes)
  }

  @Test(arguments: [0, 1, 20, 3000, 20_000]) func findsEveryBlob(blobs: Int) throws {
    let object = try open(Self.builder(blobs: blobs).encode())
    #expect(object.blobs == blobs + 2)
    #expect(object.packs == 2)
    var missing = 0
    for number in 0..<blobs {
      let record = object.find(BlobID(kind: .data, digest: Self.digest(number)))
      if record?.offset != UInt32(number * 10) || record?.frame != UInt16(number % 2) {
        missing += 1
      }
    }
    #expect(missing == 0)
    for number in blobs..<(blobs + 1000) {
      #expect(object.find(BlobID(kind: .data, digest: Self.digest(number))) == nil)
    }
  }

  /// A file with the bytes of a tree is never found as a tree.
  @Test func blobIsFoundOnlyAsItsKind() throws {
    let object = try open(Self.builder(blobs: 5).encode())
    #expect(object.find(BlobID(kind: .tree, digest: Self.digest(0)))?.length == 99)
    #expect(object.find(BlobID(kind: .data, digest: Self.digest(0)))?.length == 10)
    #expect(object.find(BlobID(kind: .tree, digest: Self.digest(1))) == nil)
    #expect(object.find(BlobID(kind: .list, digest: Self.digest(0))) == nil)
  }

  @Test func setReliesOnlyOnExistingPacks() throws {
    let object = try open(Self.builder(blobs: 5).encode())
    let data = BlobID(kind: .data, digest: Self.digest(3))
    let tree = BlobID(kind: .tree, digest: Self.digest(0))
    let all = IndexSet([object])
    let found = try #require(all.find(data))
    #expect(found.pack == Self.digest(-1))
    #expect(found.frame == FrameLocation(offset: 2000, stored: 1000, plain: 4 << 20))
    #expect(found.offset == 30)
    #expect(all.contains(tree))
    let some = IndexSet([object]) { $0 == Self.digest(-2) }
    #expect(!some.contains(data))
    #expect(some.contains(tree))
  }

  /// The documented layout, byte by byte, of an index with one blob.
  @Test func objectHasTheDocumentedBytes() throws {
    var builder = IndexBuilder()
    builder.packs = [
      .init(
        id: Self.digest(1), size: 700, frames: [FrameLocation(offset: 16, stored: 500, plain: 900)])
    ]
    let blob = BlobID(kind: .tree, digest: Self.digest(2))
    builder.records = [BlobRecord(id: blob, offset: 512, length: 100)]
    var expected = "7362 7869 6e64 6578 01000000 01000000 01000000 01000000"
    expected += "00000000 01000000 00000000 000000 00" + String(repeating: "00", count: 24)
    expected += Self.digest(1).hex + "bc02000000000000 00000000 01000000"
    expected += "1000000000000000 f4010000 84030000"
    expected += "00000000 01000000 00000000"
    expected += Self.digest(2).hex + "00000000 0000 01 00 00020000 64000000"
    #expect(Hex.encode(builder.encode()) == expected.filter { $0 != " " })
  }

  @Test func bytesThatDoNotMatchTheIDAreRefused() throws {
    let storage = MemoryStorage()
    _ = try Repository.create(in: storage, program: "test")
    let path = RepositoryLayout.tested.index(Self.digest(0))
    try storage.save(
      Self.builder(blobs: 5).encode(), as: path, by: RepositoryLayout.leases)
    let error = storeError { try IndexObject.load(Self.digest(0), from: storage) }
    #expect(error?.code == .damaged)
  }

  /// A large object is read in several pieces with the same result, and a damaged one is refused.
  @Test(arguments: [1000, 1 << 20, 4 << 20]) func largeIndexIsReadInPieces(length: Int) throws {
    let storage = MemoryStorage()
    _ = try Repository.create(in: storage, program: "test")
    let bytes = Self.builder(blobs: 2000).encode()
    let stored = try RepositoryStorage(storage).encode(bytes)
    let id = stored.id
    func put(_ bytes: [UInt8]) throws {
      let writer = try storage.startObject(in: RepositoryLayout.tested.index(id).directory)
      try writer.append(bytes)
      try writer.commit(as: RepositoryLayout.tested.index(id), digest: id, isReadSoon: false)
    }
    try put(stored.bytes)
    let object = try IndexObject.load(id, from: storage, by: length)
    #expect(
      object.bytes.withBytes { read in (0..<read.byteCount).map { read.byte(at: $0) } } == bytes)
    #expect(object.find(BlobID(kind: .data, digest: Self.digest(1999)))?.offset == 19_990)
    try put(stored.bytes.dropLast() + [stored.bytes[stored.bytes.count - 1] ^ 1])
    #expect(storeError { try IndexObject.load(id, from: storage, by: length) }?.code == .damaged)
    try storage.remove(RepositoryLayout.tested.index(id))
    #expect(storeError { try IndexObject.load(id, from: storage, by: length) }?.code == .missing)
  }

  /// An attacker may change any byte and recompute the id.
  @Test func everyFlippedByteIsRefusedOrHarmless() throws {
    let bytes = Self.builder(blobs: 20).encode()
    var refused = 0
    for position in bytes.indices {
      var changed = bytes
      changed[position] ^= position.isMultiple(of: 2) ? 1 : 0x80
      guard let object = try? open(changed) else {
        refused += 1
        continue
      }
      for number in 0..<20 {
        let blob = BlobID(kind: .data, digest: Self.digest(number))
        guard let found = IndexSet([object]).find(blob) else { continue }
        #expect(found.offset + found.length <= Int(found.frame.plain))
      }
    }
    #expect(refused > bytes.count / 6)
  }

  @Test func everyTruncationIsRefused() {
    let bytes = Self.builder(blobs: 10).encode()
    for count in 0..<bytes.count {
      #expect(storeError { try open(Array(bytes.prefix(count))) }?.code == .damaged)
    }
    #expect(storeError { try open(bytes + [0]) }?.code == .damaged)
  }

  @Test func inconsistentIndexIsRefused() throws {
    let good = Self.builder(blobs: 3)
    var lies: [String: IndexBuilder] = [:]
    var lie = good
    lie.records[0].pack = 2
    lies["a pack that is not there"] = lie
    lie = good
    lie.records[0].frame = 2
    lies["a frame that is not there"] = lie
    lie = good
    lie.records[0].offset = 4 << 20
    lies["an offset outside of the frame"] = lie
    lie = good
    lie.records[0].length = UInt32(FormatLimit.blob + 1)
    lies["a blob of more than 8 MiB"] = lie
    lie = good
    lie.records[0].length = 0
    lies["a blob of no bytes"] = lie
    lie = good
    lie.records.append(lie.records[0])
    lies["a blob twice"] = lie
    lie = good
    lie.packs[0] = .init(
      id: Self.digest(-1), size: 5000,
      frames: [FrameLocation(offset: 4990, stored: 20, plain: 100)])
    lies["a frame beyond the pack"] = lie
    lie = good
    lie.packs[0] = .init(
      id: Self.digest(-1), size: 5000,
      frames: [
        FrameLocation(offset: 0, stored: 200, plain: 4 << 20),
        FrameLocation(offset: 100, stored: 200, plain: 4 << 20),
      ])
    lies["frames that overlap"] = lie
    lie = good
    lie.packs[1] = .init(
      id: Self.digest(-2), size: 900,
      frames: [FrameLocation(offset: 0, stored: 900, plain: UInt32(FormatLimit.frame + 1))])
    lies["a frame of more than 16 MiB"] = lie
    for (name, builder) in lies {
      #expect(storeError { try open(builder.encode()) }?.code == .damaged, "\(name)")
    }
    #expect(throws: Never.self) { try open(good.encode()) }
  }

  @Test func newerVersionIsRefused() {
    var bytes = Self.builder(blobs: 1).encode()
    bytes[8] = 2
    let error = storeError { try open(bytes) }
    #expect(error?.code == .unsupported)
    #expect(error?.reason.contains("version 2") == true)
  }
}

struct RunBlobsTests {
  @Test func holdsManyBlobs() {
    var blobs = KnownBlobs.RunBlobs()
    let ids = (0..<5000).map { number in
      BlobID(
        kind: number % 2 == 0 ? .data : .tree,
        digest: Blake2b.hash(Array("\(number / 2)".utf8)))
    }
    let inserted = ids.map { blobs.insert($0, length: 5) }
    #expect(inserted.allSatisfy { $0 })
    let again = ids.map { blobs.insert($0, length: 5) }
    #expect(again.allSatisfy { !$0 })
    #expect(blobs.records.count == 5000)
    #expect(blobs.unplaced == 5000)
    #expect(ids.allSatisfy { blobs.contains($0) })
    #expect(!blobs.contains(BlobID(kind: .list, digest: ids[0].digest)))
    blobs.record(ids[7], pack: 1, frame: 2, offset: 3)
    let record = blobs.records[7]
    #expect((record.pack, record.frame, record.offset) == (1, 2, 3))
    #expect(blobs.records[6].pack == KnownBlobs.RunBlobs.unplaced)
    #expect(blobs.unplaced == 4999)
    blobs.remove(packs: [1])
    #expect(blobs.records.count == 4999)
    #expect(ids.filter { blobs.contains($0) } == ids.filter { $0 != ids[7] })
    #expect(blobs.generation == 1)
    let isNew = blobs.insert(ids[7], length: 5)
    #expect(isNew)
  }
}
