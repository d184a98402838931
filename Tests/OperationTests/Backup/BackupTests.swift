import ArchiveStore
import DeviceScan
import Restore
import SystemIO
import TestSupport
import Testing

@testable import Backup

@Suite(.spreadScans) struct BackupTests {
  @Test func aSnapshotHasTheStartTimeOfItsScan() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("stays", at: "tree/stays")
    let before = Host.now()
    let scan = try fixture.scan()
    let after = Host.now()
    let snapshot = try #require(try fixture.backup(scan).snapshot?.snapshot)
    #expect(snapshot.time == scan.began)
    #expect(before <= scan.began && scan.began <= after)
  }

  @Test func backupDoesNotUpdateAccessTimes() throws {
    // `purge` and other programs take the access time as a sign of use.
    let fixture = try Fixture(inMemory: true)
    try #require(try fixture.directory.directory.notesAccess())
    try fixture.directory.write("small", at: "tree/small")
    try fixture.directory.write([UInt8](repeating: 1, count: 600_000), at: "tree/large")
    let tree = try fixture.directory.directory.directory("tree")
    for name in ["small", "large"] {
      let touch = ["-a", "-d", "2020-01-01T00:00:00Z", "\(tree.path)/\(name)"]
      #expect(try Program.run("touch", touch).code == 0)
    }
    #expect(try fixture.backup().isComplete)
    for name: ByteString in ["small", "large"] {
      #expect(try tree.statusAndAccess(name).accessed == 1_577_836_800)
    }
  }

  @Test func aFileDeletedAfterTheScanIsAWarning() throws {
    let fixture = try Fixture()
    try fixture.directory.write("stays", at: "tree/stays")
    try fixture.directory.write("goes", at: "tree/goes")
    try fixture.directory.write("goes", at: "tree/folder/goes")
    let scan = try fixture.scan()
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.remove("goes")
    try tree.removeTree("folder")
    let report = try fixture.backup(scan)
    #expect(report.isComplete)
    #expect(Set(report.warnings.map(\.path)) == ["folders/tree/goes", "folders/tree/folder"])
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == ["stays"])
  }

  @Test func aLinkThatReplacesAFileIsNotFollowed() throws {
    let fixture = try Fixture()
    try fixture.directory.write("secret", at: "outside")
    try fixture.directory.write("mine", at: "tree/file")
    try fixture.directory.write("mine", at: "tree/folder/file")
    let scan = try fixture.scan()
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.remove("file")
    try tree.createLink("file", to: fixture.directory.path("outside"))
    try tree.removeTree("folder")
    try tree.createLink("folder", to: fixture.directory.path)
    let report = try fixture.backup(scan)
    // The entries that the second scan of the source finds are stored: the links themselves.
    #expect(report.isComplete)
    _ = try fixture.restore(report)
    let back = try Directory.open(path: fixture.directory.path("back"))
    #expect(try back.names() == ["file", "folder"])
    #expect(try back.target(of: "file") == fixture.directory.path("outside"))
    #expect(try back.target(of: "folder") == fixture.directory.path)
  }

  @Test func aFileThatKeepsChangingIsStoredWithAWarning() throws {
    let fixture = try Fixture()
    try fixture.directory.write([UInt8](repeating: 1, count: 4_000_000), at: "tree/busy")
    let busy = try Directory.open(path: fixture.directory.path("tree")).openOrCreate("busy")
    let stop = BoundedQueue<Bool>(capacity: 1)
    let workers = try Workers(count: 1, capacity: 1, name: "writer")
    let writing = Writing(busy, until: stop)
    workers.submit { writing.run() }
    var report = try fixture.backup()
    // If the writer does not run while the file is read, the file is unchanged.
    let end = Host.monotonicSeconds() + 300
    while report.warnings.isEmpty, Host.monotonicSeconds() < end { report = try fixture.backup() }
    stop.close()
    workers.finish()
    #expect(report.warnings.map(\.path) == ["folders/tree/busy"])
    #expect(report.isComplete)
    #expect(try fixture.restore(report).isComplete)
  }

  /// A thread that writes to a file until it is stopped.
  private final class Writing: Sendable {
    private let file: Descriptor
    private let stop: BoundedQueue<Bool>

    init(_ file: consuming Descriptor, until stop: BoundedQueue<Bool>) {
      self.file = file
      self.stop = stop
    }

    func run() {
      while stop.enqueue(true) {
        _ = stop.dequeue()
        try? file.write([1, 2, 3])
      }
    }
  }

  @Test func hardLinksAreRestored() throws {
    let fixture = try Fixture()
    try fixture.directory.write([UInt8](repeating: 5, count: 100_000), at: "tree/b/second")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    let inner = try tree.directory("b")
    try tree.createHardLink("a-first", to: "second", in: inner)
    try tree.createHardLink("z-third", to: "second", in: inner)
    let report = try fixture.backup()
    #expect(try fixture.restore(report).isComplete)
    let back = try Directory.open(path: fixture.directory.path("back"))
    let identity = try back.status("a-first").identity
    #expect(try back.directory("b").status("second").identity == identity)
    #expect(try back.status("z-third").identity == identity)
    #expect(try back.status("z-third").links == 3)
    // A part of the group is restored as a separate file with its content.
    #expect(try fixture.restore(report, "folders/tree/b", to: "part").isComplete)
    #expect(try fixture.directory.read("part/second") == fixture.directory.read("tree/b/second"))
  }

  @Test func aSnapshotRecordsItsParentSourceAndTotals() throws {
    let fixture = try Fixture()
    try fixture.directory.write("12345", at: "tree/folder/file")
    let first = try #require(try fixture.backup().snapshot)
    let second = try #require(try fixture.backup().snapshot).snapshot
    #expect(second.parent == first.id)
    #expect(second.sequence == first.snapshot.sequence + 1)
    #expect(second.source == first.snapshot.source)
    #expect(second.tree == first.snapshot.tree)
    #expect(second.totals.files == 1 && second.totals.bytes == 5 && second.totals.entries == 3)
    #expect(second.classes.map(\.path) == ["folders/tree"])
    #expect(second.classes.map(\.name) == ["user-data"])
    #expect(second.policy.name == "everything")
    #expect(second.users.contains { $0.id == Host.userID })
  }
}
