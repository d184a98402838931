import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Manipulated repositories: data is either read correctly or refused with an error.
struct HostileRepositoryTests {
  private let storage = MemoryStorage()
  private let repository: Repository
  private let snapshot: StoredSnapshot
  private let files: [(name: String, bytes: [UInt8])]

  init() throws {
    var random = SeededBytes(seed: 31)
    files = [
      ("a", random.bytes(100)), ("b", Array("text text text".utf8)), ("c", random.bytes(40)),
    ]
    repository = try Repository.create(in: storage, program: "test")
    snapshot = try repository.back(up: files)
  }

  private func onlyIndex() throws -> IndexObject {
    let objects = try LoadedIndex.loadAll(from: storage).objects
    #expect(objects.count == 1)
    return try #require(objects.first)
  }

  private func replace(_ path: ObjectPath, with bytes: [UInt8]) throws {
    if try storage.status(RepositoryLayout.leases.appending("x")) == nil {
      try storage.makeDirectories(["x"], in: RepositoryLayout.leases)
    }
    try storage.save(bytes, as: path, by: RepositoryLayout.leases.appending("x"))
  }

  /// Replaces the only index.
  private func forge(_ change: (inout IndexBuilder) -> Void) throws {
    let object = try onlyIndex()
    var builder = IndexBuilder()
    for number in 0..<object.packs {
      let pack = object.pack(number)
      let frames = (0..<pack.frames).map { object.frame(pack.firstFrame + $0) }
      builder.packs.append(.init(id: pack.id, size: pack.size, frames: frames))
    }
    builder.records = (0..<object.blobs).compactMap { object.record($0) }
    change(&builder)
    let bytes = builder.encode()
    try storage.remove(RepositoryLayout.tested.index(object.id))
    try storage.put(bytes, kind: .index)
  }

  /// Reads all files, without cached keys of packs: each file must return its bytes or an error.
  /// Returns the number of errors.
  private func damage() -> Int {
    var errors = 0
    guard let reader = try? Repository.open(storage).beginReading() else { return files.count }
    for file in files {
      do {
        if let bytes = try reader.bytes(at: ByteString(file.name), in: snapshot) {
          #expect(bytes == file.bytes)
        } else {
          Issue.record("\(file.name) is missing without an error")
        }
      } catch {
        #expect(error is StoreError)
        errors += 1
      }
    }
    return errors
  }

  @Test func everyFlippedByteOfAPackIsDetectedOrHarmless() throws {
    let object = try onlyIndex()
    var found = 0
    var bytesInAll = 0
    for number in 0..<object.packs {
      let path = RepositoryLayout.tested.pack(object.pack(number).id)
      let good = try storage.load(path, limit: 1 << 20)
      bytesInAll += good.count
      for position in good.indices {
        var bad = good
        bad[position] ^= UInt8(1 << (position % 8))
        try replace(path, with: bad)
        if damage() > 0 { found += 1 }
      }
      try replace(path, with: good)
    }
    #expect(damage() == 0)
    // A read does not need member headers, frame checksums, contents and the seek table. In an
    // encrypted pack, however, these bytes are authenticated together with those that a read needs.
    #expect(TestEncryption.isOn ? found == bytesInAll : found > bytesInAll / 4, "\(found)")
  }

  @Test func everyTruncationOfAPackIsDetectedOrHarmless() throws {
    let object = try onlyIndex()
    for number in 0..<object.packs {
      let path = RepositoryLayout.tested.pack(object.pack(number).id)
      let good = try storage.load(path, limit: 1 << 20)
      for count in stride(from: 0, to: good.count, by: 7) {
        try replace(path, with: Array(good.prefix(count)))
        // The only piece of a small encrypted pack is authenticated as a whole.
        let end = Int(object.frame(object.pack(number).firstFrame).stored)
        #expect((damage() > 0) == (count < (TestEncryption.isOn ? good.count : end)))
      }
      try replace(path, with: good)
    }
  }

  @Test func lostPackLosesOnlyItsFiles() throws {
    let other = [("d", [UInt8](repeating: 1, count: 99))]
    let second = try repository.back(up: other, sequence: 2)
    for object in try LoadedIndex.loadAll(from: storage).objects {
      let blob = BlobID(kind: .data, digest: Blake2b.hash(other[0].1))
      guard let record = object.find(blob) else { continue }
      try storage.remove(RepositoryLayout.tested.pack(object.pack(Int(record.pack)).id))
    }
    #expect(damage() == 0)
    let reader = try repository.beginReading()
    let error = storeError { try reader.bytes(at: "d", in: second) }
    #expect(error?.kind == .damaged)
  }

  @Test func wrongOffsetsInTheIndexGiveNoWrongBytes() throws {
    try forge { builder in
      for number in builder.records.indices where builder.records[number].kind == .data {
        builder.records[number].offset &+= 1
      }
    }
    #expect(damage() == 3)
  }

  @Test func wrongLengthsInTheIndexGiveNoWrongBytes() throws {
    try forge { builder in
      for number in builder.records.indices where builder.records[number].kind == .data {
        builder.records[number].length -= 1
      }
    }
    #expect(damage() == 3)
  }

  @Test func wrongPacksInTheIndexGiveNoWrongBytes() throws {
    try forge { builder in
      for number in builder.records.indices { builder.records[number].pack ^= 1 }
    }
    // The index object is refused as a whole because of locations outside the frames, so the packs'
    // own tables are used.
    #expect(damage() == 0)
  }

  /// A file may contain the bytes of a tree, but is never read as a tree.
  @Test func fileContentIsNotUsedAsATree() throws {
    let bytes = TreeCoding.encodePage([
      TreeEntryCoding.encode(TreeEntry(name: "evil", node: .symlink(target: "/etc")))
    ])
    _ = try repository.back(up: [("tree", bytes)], sequence: 2)
    let reader = try repository.beginReading()
    let error = storeError { try reader.entries(of: TreeReference(Blake2b.hash(bytes))) }
    #expect(error?.code == .missing)
    #expect(error?.subject.hasPrefix("tree blob") == true)
  }

  /// A frame whose header claims 100 GB, and one that expands to a million times its size.
  @Test(arguments: [100 << 30, 1 << 24]) func oversizedFrameClaimIsRefused(claim: Int) throws {
    var frame: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd, 0xe4]
    for shift in 0..<8 { frame.append(UInt8(truncatingIfNeeded: claim >> (8 * shift))) }
    frame += [0x01, 0x00, 0x00, 1, 2, 3, 4]
    for pack in try onlyIndex().packIDs { try storage.remove(RepositoryLayout.tested.pack(pack)) }
    let object = try RepositoryStorage(storage).encode(frame)
    try replace(RepositoryLayout.tested.pack(object.id), with: object.bytes)
    try forge { builder in
      let stored = UInt32(frame.count)
      let frames = [FrameLocation(offset: 0, stored: stored, plain: 2000)]
      builder.packs = [.init(id: object.id, size: object.size, frames: frames)]
      for number in builder.records.indices {
        builder.records[number].pack = 0
        builder.records[number].frame = 0
        builder.records[number].offset = 0
      }
    }
    let reader = try repository.beginReading()
    let error = storeError { try reader.entries(of: snapshot.snapshot.tree) }
    #expect(error?.code == .damaged)
    #expect(error?.reason.contains("\(claim)") == true)
  }

  @Test func wrongPageOfADirectoryIsRefused() throws {
    let session = try repository.beginWriting()
    let page = { (names: [ByteString]) throws in
      try session.storeTree(names.map { TreeEntry(name: $0, node: .fifo) })
    }
    let (first, second) = (try page(["a", "b"]), try page(["c", "d"]))
    let tables: [[TreeBlob.Page]] = [
      [
        TreeBlob.Page(last: "b", digest: second.digest),
        TreeBlob.Page(last: "d", digest: first.digest),
      ],
      [
        TreeBlob.Page(last: "b", digest: first.digest),
        TreeBlob.Page(last: "e", digest: second.digest),
      ],
      [
        TreeBlob.Page(last: "b", digest: first.digest),
        TreeBlob.Page(last: "c", digest: first.digest),
      ],
    ]
    let stored = try tables.map {
      TreeReference(try session.storeBytes(TreeCoding.encodeTable($0), kind: .tree).digest)
    }
    let inner = TreeCoding.encodeTable([
      TreeBlob.Page(last: "b", digest: stored[0].digest),
      TreeBlob.Page(last: "d", digest: second.digest),
    ])
    let nested = TreeReference(try session.storeBytes(inner, kind: .tree).digest)
    _ = try session.finish(repository.makeSnapshot(first, sequence: 2))
    let reader = try repository.beginReading()
    for tree in stored + [nested] {
      #expect(storeError { try reader.entries(of: tree) }?.code == .damaged)
      #expect(storeError { try reader.walk(tree) { _, _ in .enter } }?.code == .damaged)
    }
  }

  @Test func contentWithWrongPiecesIsRefused() throws {
    let session = try repository.beginWriting()
    let blob = try session.storeBytes([1, 2, 3], kind: .data)
    let list = try session.storeBytes(
      ContentCoding.encodeList(level: 0, pieces: [.blob(blob.digest, length: 3)]), kind: .list)
    _ = try session.finish(repository.makeSnapshot(snapshot.snapshot.tree, sequence: 2))
    let reader = try repository.beginReading()
    let lies = [
      Content(size: 4, level: 0, pieces: [.blob(blob.digest, length: 4)]),
      Content(size: 4, level: 1, pieces: [.blob(list.digest, length: 4)]),
      Content(size: 3, level: 2, pieces: [.blob(list.digest, length: 3)]),
      Content(size: 3, level: 1, pieces: [.blob(blob.digest, length: 3)]),
      Content(size: 3, level: 0, pieces: [.blob(list.digest, length: 3)]),
    ]
    for lie in lies {
      #expect(storeError { try reader.bytes(of: lie) }?.kind == .damaged, "\(lie)")
    }
    let truth = Content(size: 3, level: 1, pieces: [.blob(list.digest, length: 3)])
    #expect(try reader.bytes(of: truth) == [1, 2, 3])
  }

  @Test func pathThatIsTooLongIsRefused() throws {
    let session = try repository.beginWriting()
    let name = ByteString([UInt8](repeating: 0x61, count: 255))
    var tree = try session.storeTree([])
    for _ in 0..<300 {
      tree = try session.storeTree([TreeEntry(name: name, node: .directory(tree))])
    }
    _ = try session.finish(repository.makeSnapshot(tree, sequence: 2))
    let reader = try repository.beginReading()
    let error = storeError { try reader.walk(tree) { _, _ in .enter } }
    #expect(error?.code == .damaged)
    #expect(error?.reason.contains("65536") == true)
  }

  @Test func unknownNamesInDirectoriesAreIgnored() throws {
    for path in [
      "index/x.index", "index/README", "snapshots/\(snapshot.id.hex).json.tmp", "packs/00/x",
    ] {
      try replace(try #require(ObjectPath(path)), with: [1])
    }
    #expect(damage() == 0)
    #expect(try repository.snapshots().snapshots == [snapshot])
    #expect(try repository.back(up: files, sequence: 2).snapshot.totals.stored == 0)
  }
}

struct TwoWritersTests {
  @Test func concurrentWritersMakeCompleteSnapshots() throws {
    let storage = MemoryStorage()
    let repository = try Repository.create(in: storage, program: "test")
    var random = SeededBytes(seed: 41)
    let bytes = random.bytes(2 << 20)
    let sessions = [try repository.beginWriting(), try repository.beginWriting()]
    var stored: [StoredSnapshot] = []
    var contents: [Content] = []
    for session in sessions {
      contents.append(try session.storeFile(logicalPath: "folders/x/a", bytes: bytes))
    }
    for (number, session) in sessions.enumerated() {
      let entry = TreeEntry(name: "a", node: .file(contents[number]))
      let tree = try session.storeTree([entry])
      stored.append(
        try session.finish(repository.makeSnapshot(tree, sequence: UInt64(number + 1))))
    }
    let reader = try repository.beginReading()
    for snapshot in stored { #expect(try reader.bytes(at: "a", in: snapshot) == bytes) }
    #expect(try repository.snapshots().snapshots == stored)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }
}
