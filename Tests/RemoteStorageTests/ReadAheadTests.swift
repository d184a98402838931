import Codecs
import RemoteStorage
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Read-ahead in packs, and the number of requests to a repository on another host.
struct ReadAheadTests {
  private let directory: TemporaryDirectory
  private let counts = TransferCounts()

  init() throws { directory = try TemporaryDirectory("ahead") }

  /// A storage on another host.
  private final class Elsewhere: ForwardingStorage {
    let base: any Storage
    init(_ base: any Storage) { self.base = base }
    func directoryIdentity() throws(StoreError) -> FileIdentity? { nil }
  }

  private func storage() throws -> any Storage {
    let base = try LocalStorage.create(path: directory.path.appending("repo"))
    return ReadAheadStorage(TransferStorage(Elsewhere(base), counts: counts))
  }

  /// Returns the number of requests that `body` makes.
  private func requests(_ body: () throws -> Void) rethrows -> Int {
    let before = counts.state.requests
    try body()
    return counts.state.requests - before
  }

  /// A pack of 1 MiB of varied bytes, in a storage.
  private func pack(in storage: any Storage) throws -> (path: ObjectPath, bytes: [UInt8]) {
    let bytes = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ ($0 >> 8)) }
    try storage.makeDirectories(["packs"], in: .root)
    let path = try #require(ObjectPath("packs/p"))
    try storage.save(bytes, as: path, by: .root)
    return (path, bytes)
  }

  @Test func neighbouringRangesOfAPackAreOneRequest() throws {
    let storage = try storage()
    let (path, bytes) = try pack(in: storage)
    let forward = try requests {
      for start in stride(from: 0, to: 256 << 10, by: 8 << 10) {
        let read = try storage.load(path, offset: UInt64(start), count: 8 << 10)
        #expect(read == Array(bytes[start..<(start + (8 << 10))]))
      }
    }
    // The requests: the first range, the size, and the rest.
    #expect(forward == 3)
  }

  @Test func rangesFromTheEndToTheBeginningAreReadAhead() throws {
    let storage = try storage()
    let (path, bytes) = try pack(in: storage)
    let backward = try requests {
      for start in stride(from: (1 << 20) - (4 << 10), through: 0, by: -(4 << 10)) {
        let read = try storage.load(path, offset: UInt64(start), count: 4 << 10)
        #expect(read == Array(bytes[start..<(start + (4 << 10))]))
      }
    }
    // The requests: the last range, and the rest.
    #expect(backward == 2)
  }

  /// Trees are read from the end of a pack to its beginning, but not always in strict order.
  @Test func aRangeAtTheBeginningIsReadAheadToTheLastOne() throws {
    let storage = try storage()
    let (path, bytes) = try pack(in: storage)
    let made = try requests {
      for start in [(1 << 20) - 100, 0, 600_000, 300_000] {
        let read = try storage.load(path, offset: UInt64(start), count: 100)
        #expect(read == Array(bytes[start..<(start + 100)]))
      }
    }
    #expect(made == 2)
  }

  /// If a pack has been truncated in the meantime, the ranges that still exist can be read.
  @Test func aTruncatedPackReturnsTheRangesThatItHas() throws {
    let storage = try storage()
    let (path, bytes) = try pack(in: storage)
    _ = try storage.load(path, offset: (1 << 20) - 100, count: 100)
    let base = try LocalStorage(path: directory.path.appending("repo"))
    try base.remove(path)
    try base.save(Array(bytes.prefix(5000)), as: path, by: .root)
    #expect(try storage.load(path, offset: 0, count: 4000) == Array(bytes.prefix(4000)))
  }

  @Test func aSingleRangeIsReadAlone() throws {
    let storage = try storage()
    let (path, _) = try pack(in: storage)
    _ = try storage.load(path, offset: 100, count: 200)
    #expect(counts.state.received == 200)
    // A range beyond the end of the pack is damage, even if it would be read ahead.
    #expect(throws: StoreError.self) { try storage.load(path, offset: (1 << 20) - 5, count: 6) }
    let other = try #require(ObjectPath("repository"))
    try storage.save([1, 2, 3], as: other, by: .root)
    #expect(try storage.load(other, offset: 0, count: 1) == [1])
    #expect(try storage.load(other, offset: 1, count: 1) == [2])
    #expect(counts.state.received == 202)
  }

  @Test func aReplacedPackIsReadAgain() throws {
    let storage = try storage()
    let (path, _) = try pack(in: storage)
    for _ in 0..<2 { _ = try storage.load(path, offset: 0, count: 10) }
    try storage.remove(path)
    #expect(throws: StoreError.self) { try storage.load(path, offset: 0, count: 10) }
    try storage.save([UInt8](repeating: 9, count: 100), as: path, by: .root)
    try storage.rename(path, to: #require(ObjectPath("packs/q")))
    #expect(throws: StoreError.self) { try storage.load(path, offset: 0, count: 10) }
  }

  /// After bytes turn out to be wrong, they are requested again.
  @Test func forgottenReadsAreMadeAgain() throws {
    let storage = try storage()
    let (path, bytes) = try pack(in: storage)
    for offset: UInt64 in [0, 100] { _ = try storage.load(path, offset: offset, count: 100) }
    let kept = try requests { _ = try storage.load(path, offset: 200, count: 100) }
    #expect(kept == 0)
    storage.forgetReads(of: path)
    let again = try requests { () throws in
      let read = try storage.load(path, offset: 200, count: 100)
      #expect(read == Array(bytes[200..<300]))
    }
    #expect(again == 1)
    storage.expect([
      ObjectRange(path: path, range: 600_000..<600_100),
      ObjectRange(path: path, range: 601_000..<601_100),
    ])
    _ = try storage.load(path, offset: 600_000, count: 100)
    storage.forgetReads(of: path)
    let expected = try requests { _ = try storage.load(path, offset: 601_000, count: 100) }
    #expect(expected == 1)
  }

  /// A directory with three objects.
  private func directory(in storage: any Storage) throws -> ObjectPath {
    try storage.makeDirectories(["index"], in: .root)
    let index = ObjectPath.root.appending("index")
    for name: ByteString in ["a", "b", "c"] {
      try storage.save([1, 2], as: index.appending(name), by: .root)
    }
    return index
  }

  private func names(below directory: ObjectPath, _ storage: any Storage) throws -> [ByteString] {
    var names: [ByteString] = []
    try storage.forEachObject(below: directory) { path, status in
      if status.size == 2 { names.append(path.name) }
    }
    return names.sorted()
  }

  @Test func aListingAheadIsUsedOnce() throws {
    let storage = try #require(try storage() as? ReadAheadStorage)
    let index = try directory(in: storage)
    let made = try requests { () throws in
      storage.listAhead([index, .root.appending("missing")])
      let found = try names(below: index, storage)
      #expect(found == ["a", "b", "c"])
      #expect(throws: StoreError.self) { try storage.list(.root.appending("missing")) }
    }
    #expect(made == 2)
    let again = try requests { _ = try names(below: index, storage) }
    #expect(again == 1)
    storage.listAhead([index])
    #expect(try storage.list(index) == ["a", "b", "c"])
  }

  /// A writer must not rely on a listing that was made before its lease.
  @Test func aListingAheadIsNotUsedAfterAChange() throws {
    let storage = try #require(try storage() as? ReadAheadStorage)
    let index = try directory(in: storage)
    let new = index.appending("d")
    let changes: [(ReadAheadStorage) throws -> Void] = [
      { try $0.save([1, 2], as: new, by: .root) }, { try $0.touch(new) }, { try $0.touch([new]) },
      { try $0.rename(new, to: index.appending("e")) },
      { try $0.remove([index.appending("e")]) }, { try $0.makeDirectories(["x"], in: .root) },
      { try $0.remove(index.appending("c")) },
    ]
    for change in changes {
      let before = counts.state.requests
      storage.listAhead([index])
      // On a busy machine, the thread that lists ahead may start late.
      for _ in 0..<10_000 where counts.state.requests == before { Host.pause(seconds: 0.001) }
      #expect(counts.state.requests == before + 1)
      try change(storage)
      let made = try requests { _ = try names(below: index, storage) }
      #expect(made == 1)
    }
    #expect(try names(below: index, storage) == ["a", "b"])
  }

  private func snapshot(of tree: TreeReference, _ run: Int, in repository: Repository) -> Snapshot {
    Snapshot(
      repository: repository.id, source: Blake2b.hash([]), sequence: UInt64(run),
      time: Timestamp(seconds: 1_793_529_000 + Int64(run)), host: "host", user: "user",
      device: DeviceRecord(identity: "device", platform: "linux", layout: "folder", root: "/x"),
      policy: PolicyRecord(name: "everything", digest: Blake2b.hash([])), tree: tree,
      program: "test")
  }

  /// Stores directories with many long names, in two runs that write a pack of them each. Returns
  /// the tree of all directories.
  private func manyTrees(in storage: any Storage) throws -> TreeReference {
    var random = Seeded(11)
    var directories: [TreeEntry] = []
    for run in 0..<2 {
      let session = try Repository.open(storage).beginWriting()
      let empty = try session.storeTree([])
      for number in 0..<12 {
        let names = Set((0..<400).map { _ in ByteString(Hex.encode(random.bytes(50))) }).sorted()
        let entries = names.map { TreeEntry(name: $0, node: .directory(empty)) }
        let name = ByteString("d\(run)-\(10 + number)")
        directories.append(
          TreeEntry(name: name, node: .directory(try session.storeTree(entries))))
      }
      let tree = try session.storeTree(directories)
      _ = try session.finish(snapshot(of: tree, run + 1, in: Repository.open(storage)))
      if run == 1 { return tree }
    }
    return TreeReference(Blake2b.hash([]))
  }

  private func walk(_ tree: TreeReference, _ reader: RepositoryReader) throws -> Int {
    var entries = 0
    try reader.walkPastDamage(tree) { _, finding in
      if case .entry = finding { entries += 1 }
      return .enter
    }
    return entries
  }

  /// All trees are in two packs and are fetched with one request for each. If the trees exceed the
  /// limit, they are not prefetched.
  @Test func treesThatAreExpectedAreFetchedAtOnce() throws {
    let storage = try storage()
    _ = try Repository.create(in: storage, program: "test")
    let tree = try manyTrees(in: storage)
    let reader = try Repository.open(storage).beginReading()
    let made = try requests { () throws in
      reader.expectTrees()
      reader.expectTrees()
      let entries = try walk(tree, reader)
      #expect(entries == 24 + 24 * 400)
    }
    #expect(made == 2)
    let other = try Repository.open(
      ReadAheadStorage(try #require(storage as? ReadAheadStorage).base)
    )
    .beginReading()
    let unexpected = try requests { _ = try walk(tree, other) }
    #expect(unexpected > 2)
    let set = reader.index.set
    let size = try #require(set.treeFrames(limit: .max)).reduce(0) { $0 + $1.content.count }
    #expect(size > 300_000 && set.treeFrames(limit: UInt64(size - 1)) == nil)
    #expect(set.treeFrames(limit: UInt64(size))?.count ?? 0 > 4)
  }

  /// The requests of the steps of commands, with the host's caches.
  @Test func aRepositoryOnAnotherHostNeedsFewRequests() throws {
    let storage = try storage()
    _ = try Repository.create(in: storage, program: "test")
    let (indexes, heads) = (
      IndexCache(directory: directory.path.appending("indexes"), isEncrypted: false),
      SnapshotHeadCache(directory: directory.path.appending("heads"))
    )
    // Twelve runs leave twelve index objects and snapshots, and packs in several directories.
    for run in 0..<12 {
      let repository = try Repository.open(storage)
      let session = try repository.beginWriting(cache: indexes)
      let writer = try session.makeWriter()
      _ = try writer.storeBytes([UInt8]("content \(run)".utf8), kind: BlobKind.data)
      try writer.flush()
      let tree = try session.storeTree([])
      _ = try session.finish(snapshot(of: tree, run + 1, in: repository))
      _ = try repository.beginReading(cache: indexes)
    }
    let opened = try requests { _ = try Repository.open(storage) }
    #expect(opened == 1)
    let repository = try Repository.open(storage)
    // The host caches the heads of its own snapshots, and of those that it has listed before.
    _ = try repository.heads(cache: heads)
    let listed = try requests { _ = try repository.heads(cache: heads) }
    #expect(opened + listed <= 3)
    let reading = try requests {
      _ = try repository.beginReading(cache: indexes)
    }
    #expect(reading <= 2)
    let writing = try requests {
      let session = try repository.beginWriting(cache: indexes)
      session.abandon()
    }
    #expect(writing <= 16)
  }
}
