import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import Mount

/// A damaged mounted repository, and one with many readers.
struct MountDamageTests {
  private let fixture: MountFixture
  private let data = ByteString("snapshots/2026-11-01T10.30.01Z").appending(MountFixture.data)

  init() throws {
    fixture = try MountFixture()
    try fixture.backUp()
  }

  /// Returns the blobs of the file `large`.
  private func blobs() throws -> [BlobID] {
    let reader = try fixture.repository.beginReading()
    let tree = try #require(try fixture.repository.heads().heads.first).tree
    let entry = try #require(try reader.entry(at: MountFixture.data.appending("large"), in: tree))
    guard case .file(let content) = entry.node else { return [] }
    return content.pieces.compactMap { $0.digest.map { BlobID(kind: .data, digest: $0) } }
  }

  @Test func damagedBlobFailsOnlyItsReads() throws {
    let blobs = try blobs()
    try fixture.damage([try #require(blobs.last)])
    let files = try fixture.files()
    let large = try files.find(data.appending("large"))
    #expect(large.size == 5 << 20)
    let end = large.size - 10
    for _ in 0..<3 {
      #expect(mountError { try files.read(large.number, from: end, count: 5) } == .io)
    }
    #expect(fixture.reports.all.count == 1 && files.damageCount == 1)
    let report = try #require(fixture.reports.all.first)
    #expect(report.hasPrefix("\(data.appending("large")): "), "\(report)")
    let first = try files.read(large.number, from: 0, count: 1000)
    if case .bytes(let slice)? = first.first {
      #expect(slice.bytes == Array(MountFixture.large.prefix(1000)))
    } else {
      Issue.record("no bytes")
    }
  }

  /// Temporary outages of content.
  enum Outage: CaseIterable {
    /// As on a network file system that fails to read.
    case damage
    /// As on one that is not mounted, for the packs or for packs and index.
    case packs, everything
  }

  private func begin(_ outage: Outage, _ blobs: [BlobID]) throws {
    if outage == .damage { return try fixture.damage(blobs) }
    try fixture.storage.rename(RepositoryLayout.packs, to: ObjectPath.root.appending("away-p"))
    guard outage == .everything else { return }
    try fixture.storage.rename(RepositoryLayout.indexes, to: ObjectPath.root.appending("away-i"))
  }

  private func end(_ outage: Outage, _ blobs: [BlobID]) throws {
    // Flips the same bits back.
    if outage == .damage { return try fixture.damage(blobs) }
    try fixture.storage.rename(ObjectPath.root.appending("away-p"), to: RepositoryLayout.packs)
    guard outage == .everything else { return }
    try fixture.storage.rename(ObjectPath.root.appending("away-i"), to: RepositoryLayout.indexes)
  }

  /// Content that is available again can be read a minute later, without a new mount.
  @Test(arguments: Outage.allCases) func contentThatIsAvailableAgainIsRead(outage: Outage) throws {
    let blobs = try blobs()
    let clock = Atomic<Int>(0)
    let reader = try fixture.repository.beginSharedReading(
      clock: { Double(clock.load(ordering: .relaxed)) })
    let files = try SnapshotFileSystem(reader, SnapshotSelection(), interval: 1000) { _ in }
    let large = try files.find(data.appending("large")).number
    try begin(outage, blobs)
    #expect(mountError { try files.bytes(of: large) } == .io)
    try end(outage, blobs)
    // Within a minute, the store is not read again: a damaged disk may take long to report an
    // error.
    clock.store(59, ordering: .relaxed)
    #expect(mountError { try files.bytes(of: large) } == .io)
    clock.store(61, ordering: .relaxed)
    #expect(try files.bytes(of: large) == MountFixture.large)
  }

  @Test func damagedDirectoryFailsWhenItIsOpened() throws {
    let reader = try fixture.repository.beginReading()
    let tree = try #require(try fixture.repository.heads().heads.first).tree
    let entry = try #require(
      try reader.entry(at: MountFixture.data.appending("folder"), in: tree))
    guard case .directory(let folder) = entry.node else { return }
    // Small trees share a frame, so this file is read before the damage.
    let files = try fixture.files()
    let node = try files.find(data.appending("note")).number
    #expect(try files.bytes(of: node) == Array("hello".utf8))
    try fixture.damage([BlobID(kind: .tree, digest: folder.digest)])
    let others = try fixture.files()
    #expect(mountError { try others.find(data) } == .io)
    #expect(try others.names(in: others.find("snapshots").number).count == 3)
    #expect(others.damageCount >= 1)
  }

  @Test func readersShareDecodedFrames() throws {
    let files = try fixture.files()
    let numbers = try ["large", "note", "sparse"].map { try files.find(data.appending($0)).number }
    let wrong = Mutex(0)
    let readers = try Workers(count: 32, capacity: 32, name: "test")
    for _ in 0..<32 {
      readers.submit {
        let large = try? files.bytes(of: numbers[0], step: 131_072)
        let note = try? files.bytes(of: numbers[1])
        let names = (try? files.find(data)).flatMap { try? files.names(in: $0.number, step: 100) }
        if large != MountFixture.large || note != Array("hello".utf8) || names?.count != 10 {
          wrong.withLock { $0 += 1 }
        }
      }
    }
    readers.finish()
    #expect(wrong.withLock { $0 } == 0)
    #expect(files.reader.decodedFrames <= 12, "\(files.reader.decodedFrames)")
    #expect(fixture.reports.all.isEmpty)
  }

  @Test func decodedFramesAreBounded() throws {
    let files = try fixture.files(dataCapacity: 1 << 20)
    let large = try files.find(data.appending("large")).number
    #expect(try files.bytes(of: large) == MountFixture.large)
    #expect(files.reader.heldBytes <= SharedReader.treeCapacity + FormatLimit.frame)
    var cache = CostBoundedCache<Int, Int>(capacity: 100)
    for number in 0..<50 { cache.insert(number, for: number, cost: 10) }
    #expect(cache.cost <= 100 && cache.value(49) == 49 && cache.value(0) == nil)
  }

  /// A directory of several pages is listed and looked up page by page.
  @Test func directoryOfManyPagesIsComplete() throws {
    let session = try fixture.repository.beginWriting()
    let names = (0..<20_000).map { ByteString("file-\($0)") }
    let tree = try session.storeTree(names.map { TreeEntry(name: $0, node: .fifo) })
    let stored = try session.finish(fixture.snapshot(tree, 2))
    let reader = try fixture.repository.beginSharedReading()
    #expect(try reader.directory(tree).count > 1)
    let files = try SnapshotFileSystem(reader, snapshot: SnapshotHead(stored)) { _ in }
    let root = SnapshotFileSystem.root
    #expect(try files.names(in: root, step: 700).dropFirst(2).elementsEqual(names.sorted()))
    #expect(try files.lookUp("file-19999", in: root).kind == .fifo)
    #expect(mountError { try files.lookUp("zzz", in: root) } == .noEntry)
  }
}
