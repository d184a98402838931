import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import Mount

/// The search for extended attributes in a mounted snapshot.
struct AttributeSearchTests {
  private let fixture: MountFixture

  init() throws { fixture = try MountFixture() }

  /// Stores a snapshot of a directory with a file, and returns a file system for this snapshot
  /// alone.
  private func files(_ attributes: [Attribute] = []) throws -> SnapshotFileSystem {
    let session = try fixture.repository.beginWriting()
    let below = try session.storeTree([
      TreeEntry(name: "file", node: .fifo, attributes: attributes)
    ])
    let root = try session.storeTree([
      TreeEntry(name: "plain", node: .fifo), TreeEntry(name: "z", node: .directory(below)),
    ])
    let stored = try session.finish(fixture.snapshot(root, 1))
    return try SnapshotFileSystem(
      fixture.repository.beginSharedReading(), snapshot: SnapshotHead(stored)
    ) { [fixture] in fixture.reports.add($0) }
  }

  /// Requests the names of an entry's attributes as often as is needed to start a search, and waits
  /// for the search to end.
  private func ask(_ files: SnapshotFileSystem, _ path: ByteString, _ count: Int = 500) throws {
    let number = try files.find(path).number
    for _ in 0..<count { _ = try files.attributeNames(of: number) }
    for _ in 0..<500 where files.attributeSearch?.isSearching == true { Host.pause(seconds: 0.01) }
  }

  @Test func snapshotWithoutAttributesIsFound() throws {
    let files = try files()
    #expect(!files.hasNoAttributes)
    try ask(files, "plain", AttributeSearch.patience - 1)
    #expect(!files.hasNoAttributes, "too early to read all trees")
    try ask(files, "plain", 1)
    #expect(files.hasNoAttributes)
    files.stopSearching()
  }

  @Test func anAttributeAnywhereEndsTheSearch() throws {
    let files = try files([Attribute(name: "user.a", value: .inline([1]))])
    try ask(files, "plain")
    #expect(!files.hasNoAttributes)
    #expect(try files.attributeNames(of: files.find("z/file").number) == ["user.a"])
    files.stopSearching()
  }

  /// Once an attribute has been found, there is no search.
  @Test func foundAttributesPreventTheSearch() throws {
    let search = AttributeSearch { _ in true }
    search.didAsk(hasAttributes: true)
    for _ in 0..<AttributeSearch.patience { search.didAsk(hasAttributes: false) }
    search.finish()
    #expect(!search.foundNone)
  }

  @Test func damageMakesTheSearchInconclusive() throws {
    let session = try fixture.repository.beginWriting()
    let names = (0..<20_000).map { ByteString("file-\($0)") }
    let below = try session.storeTree(names.map { TreeEntry(name: $0, node: .fifo) })
    let root = try session.storeTree([TreeEntry(name: "z", node: .directory(below))])
    let stored = try session.finish(fixture.snapshot(root, 1))
    let view = SnapshotView(key: NodeKey("test"), of: SnapshotHead(stored))
    let repository = fixture.repository
    func isAbsent(isStopped: Bool = false) -> Bool {
      SnapshotFileSystem.hasNoAttributes(
        in: view, { try repository.beginReading() }, isStopped: { isStopped })
    }
    #expect(isAbsent() && !isAbsent(isStopped: true))
    try fixture.damage([BlobID(kind: .tree, digest: below.digest)])
    #expect(!isAbsent())
  }

  /// Otherwise, the kernel would not request the attributes of later snapshots.
  @Test func mountOfAllSnapshotsDoesNotSearch() throws {
    try fixture.backUp()
    #expect(try fixture.files().attributeSearch == nil)
  }
}
