import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import Mount

/// The file system of snapshots, without a kernel mount.
struct SnapshotFileSystemTests {
  private let fixture: MountFixture
  private let name: ByteString = "2026-11-01T10.30.01Z"

  init() throws {
    fixture = try MountFixture()
    try fixture.backUp()
  }

  private var data: ByteString {
    ByteString("snapshots").appending(name).appending(MountFixture.data)
  }

  @Test func rootHasSnapshotsLatestAndApps() throws {
    let files = try fixture.files()
    let root = SnapshotFileSystem.root
    #expect(try files.names(in: root) == [".", "..", "apps", "latest", "snapshots"])
    #expect(try files.names(in: files.find("snapshots").number).dropFirst(2) == [name])
    let latest = try files.find("latest")
    #expect(latest.kind == .symlink)
    #expect(try files.target(of: latest.number) == ByteString("snapshots").appending(name))
    let apps = try files.find("apps")
    #expect(try files.names(in: apps.number).dropFirst(2) == ["org.example.notes"])
    let part = try files.find("apps/org.example.notes").number
    #expect(try files.names(in: part).dropFirst(2) == [name])
    let view = try files.find(ByteString("apps/org.example.notes").appending(name))
    #expect(view.permissions == 0o750 && view.user == 7 && view.links == 3)
    #expect(try files.names(in: view.number).dropFirst(2) == ["data"])
  }

  @Test func attributesAreTheStoredOnes() throws {
    let files = try fixture.files()
    let note = try files.find(data.appending("note"))
    #expect(note.permissions == 0o4640 && note.user == 3 && note.group == 4 && note.size == 5)
    #expect(note.modified == Timestamp(seconds: -5, nanoseconds: 7) && note.blocks == 1)
    let device = try files.find(data.appending("tty"))
    #expect(device.kind == .characterDevice && device.device == 0x10042c)
    #expect(try files.find(data.appending(ByteString([0xff, 0x0a]))).kind == .socket)
    let folder = try files.find(data.appending("folder"))
    #expect(folder.permissions == 0o700 && folder.links == 2)
    #expect(try files.find(data).links == 3)
    #expect(try files.find(data.appending("folder/inner")).kind == .fifo)
    #expect(try files.target(of: files.find(data.appending("link")).number) == "note")
  }

  @Test func hardLinksAreOneNode() throws {
    let files = try fixture.files()
    let note = try files.find(data.appending("note"))
    let twin = try files.find(data.appending("twin"))
    #expect(note == twin && note.links == 2)
    let part = ByteString("apps/org.example.notes").appending(name).appending("data/note")
    #expect(try files.find(part).number != note.number, "another view has other nodes")
  }

  @Test func numbersAreTheSameInEachMount() throws {
    let paths = ["note", "folder", "folder/inner", "large"].map { data.appending($0) }
    let first = try fixture.files()
    let numbers = try paths.map { try first.find($0).number }
    try fixture.backUp(note: "later", sequence: 2)
    let second = try fixture.files()
    #expect(try paths.reversed().map { try second.find($0).number } == numbers.reversed())
    #expect(Set(numbers).count == numbers.count)
  }

  @Test func bytesAreTheStoredOnes() throws {
    let files = try fixture.files()
    let large = try files.find(data.appending("large"))
    #expect(try files.bytes(of: large.number) == MountFixture.large)
    #expect(try files.read(large.number, from: 5 << 20, count: 10).isEmpty)
    let sparse = try files.find(data.appending("sparse"))
    let wanted =
      Array("begin".utf8) + [UInt8](repeating: 0, count: 1 << 20) + Array("end".utf8)
      + [UInt8](repeating: 0, count: 4096)
    #expect(try files.bytes(of: sparse.number, step: 65_536) == wanted)
    #expect(sparse.size == UInt64(wanted.count) && sparse.blocks == 1)
    #expect(mountError { try files.bytes(of: files.find(data).number) } == .isDirectory)
  }

  @Test func holesAreFound() throws {
    let files = try fixture.files()
    let sparse = try files.find(data.appending("sparse")).number
    func seek(_ offset: UInt64, _ toHole: Bool) throws -> UInt64 {
      try files.seek(sparse, from: offset, toHole: toHole)
    }
    let second: UInt64 = 5 + (1 << 20)
    #expect(try seek(0, false) == 0 && seek(0, true) == 5 && seek(6, true) == 6)
    #expect(try seek(5, false) == second && seek(second, true) == second + 3)
    #expect(mountError { try seek(second + 3, false) } == .noAddress)
    #expect(mountError { try seek(second + 3 + 4096, true) } == .noAddress)
    let large = try files.find(data.appending("large")).number
    #expect(try files.seek(large, from: 9, toHole: true) == 5 << 20)
  }

  @Test func extendedAttributesAreTheStoredOnes() throws {
    let files = try fixture.files()
    let note = try files.find(data.appending("note")).number
    #expect(try files.attributeNames(of: note) == ["user.a", "user.big"])
    #expect(try files.value(of: "user.a", of: note) == [1, 2])
    #expect(try files.value(of: "user.big", of: note) == [UInt8](repeating: 65, count: 3000))
    #expect(mountError { try files.value(of: "user.none", of: note) } == .noData)
    // This error makes programs stop requesting the labels of other files.
    #expect(mountError { try files.value(of: "security.selinux", of: note) } == .unsupported)
    #expect(try files.attributeNames(of: SnapshotFileSystem.root).isEmpty)
  }

  @Test func wrongRequestsAreRefused() throws {
    let files = try fixture.files()
    let note = try files.find(data.appending("note")).number
    #expect(mountError { try files.find(data.appending("none")) } == .noEntry)
    #expect(mountError { try files.find(data.appending("note/below")) } == .notDirectory)
    #expect(mountError { try files.openDirectory(note) } == .notDirectory)
    #expect(mountError { try files.attributes(of: 99) } == .noEntry)
    #expect(mountError { try files.readDirectory(99, from: 0) { _ in true } } == .invalid)
    #expect(mountError { try files.target(of: note) } == .invalid)
    #expect(mountError { try files.find("snapshots/2020-01-01T00.00.00Z") } == .noEntry)
    #expect(mountError { try files.find("apps/../escape") } == .noEntry)
  }

  @Test func forgottenNodesAreReleased() throws {
    let files = try fixture.files()
    let before = files.nodeCount
    let snapshots = try files.lookUp("snapshots", in: SnapshotFileSystem.root).number
    _ = try files.lookUp("snapshots", in: SnapshotFileSystem.root)
    files.forget(snapshots, references: 1)
    #expect(files.nodeCount == before + 1)
    files.forget(snapshots, references: 1)
    files.forget(SnapshotFileSystem.root, references: 100)
    #expect(files.nodeCount == before)
    #expect(mountError { try files.attributes(of: snapshots) } == .noEntry)
  }

  @Test func newSnapshotsAppearAndRemovedOnesDisappear() throws {
    let files = try fixture.files()
    let first = try files.find(data.appending("note")).number
    let later = try fixture.backUp(note: "later", sequence: 2)
    let name: ByteString = "2026-11-01T10.30.02Z"
    let path = ByteString("snapshots").appending(name).appending(MountFixture.data)
    #expect(try files.bytes(of: files.find(path.appending("note")).number) == Array("later".utf8))
    let latest = try files.find("latest").number
    #expect(try files.target(of: latest) == ByteString("snapshots").appending(name))
    let path2 = RepositoryLayout(isEncrypted: false).snapshot(later.id)
    try fixture.storage.remove(path2)
    #expect(mountError { try files.find(path) } == .noEntry)
    #expect(try files.bytes(of: first) == Array("hello".utf8))
    #expect(fixture.reports.all.isEmpty)
  }

  /// Two snapshots made in the same second have different names, which stay the same when one of
  /// the snapshots is removed.
  @Test func snapshotsOfOneSecondHaveTwoNames() throws {
    let heads = try fixture.repository.heads().heads
    let session = try fixture.repository.beginWriting()
    let twin = try session.finish(fixture.snapshot(heads[0].tree, 1).retagged())
    let files = try fixture.files()
    let names = try files.names(in: files.find("snapshots").number).dropFirst(2).sorted()
    #expect(names.count == 2 && names[0] == name)
    #expect(names[1].description.hasPrefix("\(name)-"))
    let first = names[1].description.hasSuffix("\(twin.id.hex.prefix(8))") ? heads[0].id : twin.id
    try fixture.storage.remove(RepositoryLayout(isEncrypted: false).snapshot(first))
    #expect(try files.names(in: files.find("snapshots").number).dropFirst(2) == [names[1]])
  }

  @Test func oneSnapshotCanBeTheRoot() throws {
    let head = try #require(try fixture.repository.heads().heads.first)
    let reader = try fixture.repository.beginSharedReading()
    let path: ByteString = "apps/org.example.notes"
    let files = try SnapshotFileSystem(reader, snapshot: head, path: path) { _ in }
    #expect(try files.attributes(of: SnapshotFileSystem.root).permissions == 0o750)
    #expect(try files.bytes(of: files.find("data/note").number) == Array("hello".utf8))
    #expect(throws: StoreError.self) {
      try SnapshotFileSystem(reader, snapshot: head, path: "apps/none") { _ in }
    }
  }

  /// If two keys have the same preferred number, the second one gets the next number as long as the
  /// first one is in use.
  @Test func nodesWithTheSamePreferredNumberDiffer() throws {
    let root = MountNode(number: 1, key: NodeKey("root"), .fixed(.root))
    let table = NodeTable(root: root) { _ in 5 }
    let first = table.enter(NodeKey("a"), .fixed(.apps), in: 1)
    let second = table.enter(NodeKey("b"), .fixed(.snapshots), in: 1)
    #expect(first.number == 5 && second.number == 6)
    #expect(table.number(of: NodeKey("b")) == 6)
    #expect(table.enter(NodeKey("b"), .fixed(.snapshots), in: 1) === second)
  }
}

extension Snapshot {
  /// Returns the same snapshot with a tag, and therefore with another id.
  fileprivate func retagged() -> Snapshot {
    var snapshot = self
    snapshot.tags = ["again"]
    return snapshot
  }
}
