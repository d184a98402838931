import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

@Suite(.spreadScans) struct BackupTests {
  @Test func aSnapshotIsOfTheTimeAtWhichTheScanBegan() throws {
    let rig = try Fixture(inMemory: true)
    try rig.directory.write("stays", at: "tree/stays")
    let before = Host.now()
    let scan = try rig.scan()
    let after = Host.now()
    let snapshot = try #require(try rig.backup(scan).snapshot?.snapshot)
    #expect(snapshot.time == scan.began)
    #expect(before <= scan.began && scan.began <= after)
  }

  @Test func readingIsNoUse() throws {
    // What purge and others take for a sign of use stays as it was.
    let rig = try Fixture(inMemory: true)
    try #require(try rig.directory.directory.notesAccess())
    try rig.directory.write("small", at: "tree/small")
    try rig.directory.write([UInt8](repeating: 1, count: 600_000), at: "tree/large")
    let tree = try rig.directory.directory.directory("tree")
    for name in ["small", "large"] {
      let touch = ["-a", "-d", "2020-01-01T00:00:00Z", "\(tree.path)/\(name)"]
      #expect(try Program.run("touch", touch).code == 0)
    }
    #expect(try rig.backup().isComplete)
    for name: ByteString in ["small", "large"] {
      #expect(try tree.look(name).accessed == 1_577_836_800)
    }
  }

  @Test func whatGoesAwayBetweenScanAndReadingIsAWarning() throws {
    let rig = try Fixture()
    try rig.directory.write("stays", at: "tree/stays")
    try rig.directory.write("goes", at: "tree/goes")
    try rig.directory.write("goes", at: "tree/folder/goes")
    let scan = try rig.scan()
    let tree = try Directory.open(path: rig.directory.path("tree"))
    try tree.remove("goes")
    try tree.removeTree("folder")
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    #expect(Set(report.warnings.map(\.path)) == ["folders/tree/goes", "folders/tree/folder"])
    _ = try rig.restore(report)
    #expect(try rig.names("back") == ["stays"])
  }

  @Test func aLinkPutInAFilesPlaceIsNotFollowed() throws {
    let rig = try Fixture()
    try rig.directory.write("secret", at: "outside")
    try rig.directory.write("mine", at: "tree/file")
    try rig.directory.write("mine", at: "tree/folder/file")
    let scan = try rig.scan()
    let tree = try Directory.open(path: rig.directory.path("tree"))
    try tree.remove("file")
    try tree.createLink("file", to: rig.directory.path("outside"))
    try tree.removeTree("folder")
    try tree.createLink("folder", to: rig.directory.path)
    let report = try rig.backup(scan)
    // What stands there when the source is looked at again is stored: the links themselves.
    #expect(report.isComplete)
    _ = try rig.restore(report)
    let back = try Directory.open(path: rig.directory.path("back"))
    #expect(try back.names() == ["file", "folder"])
    #expect(try back.target(of: "file") == rig.directory.path("outside"))
    #expect(try back.target(of: "folder") == rig.directory.path)
  }

  @Test func aFileThatNeverStandsStillIsStoredWithAWarning() throws {
    let rig = try Fixture()
    try rig.directory.write([UInt8](repeating: 1, count: 4_000_000), at: "tree/busy")
    let busy = try Directory.open(path: rig.directory.path("tree")).openOrCreate("busy")
    let stop = BoundedQueue<Bool>(capacity: 1)
    let workers = try Workers(count: 1, capacity: 1, name: "writer")
    let writing = Writing(busy, until: stop)
    workers.submit { writing.run() }
    var report = try rig.backup()
    // The writer may be kept from running while the file is read: then it stood still.
    let end = Host.monotonicSeconds() + 300
    while report.warnings.isEmpty, Host.monotonicSeconds() < end { report = try rig.backup() }
    stop.close()
    workers.finish()
    #expect(report.warnings.map(\.path) == ["folders/tree/busy"])
    #expect(report.isComplete)
    #expect(try rig.restore(report).isComplete)
  }

  /// A thread that writes into a file until it is told to stop.
  private final class Writing: Sendable {
    private let file: Descriptor
    private let stop: BoundedQueue<Bool>

    init(_ file: consuming Descriptor, until stop: BoundedQueue<Bool>) {
      self.file = file
      self.stop = stop
    }

    func run() {
      while stop.put(true) {
        _ = stop.take()
        try? file.write([1, 2, 3])
      }
    }
  }

  @Test func namesOfOneFileAreOneFileAgain() throws {
    let rig = try Fixture()
    try rig.directory.write([UInt8](repeating: 5, count: 100_000), at: "tree/b/second")
    let tree = try Directory.open(path: rig.directory.path("tree"))
    let inner = try tree.directory("b")
    try tree.createHardLink("a-first", to: "second", in: inner)
    try tree.createHardLink("z-third", to: "second", in: inner)
    let report = try rig.backup()
    #expect(try rig.restore(report).isComplete)
    let back = try Directory.open(path: rig.directory.path("back"))
    let identity = try back.status("a-first").identity
    #expect(try back.directory("b").status("second").identity == identity)
    #expect(try back.status("z-third").identity == identity)
    #expect(try back.status("z-third").links == 3)
    // A part of the group comes back as a file of its own, with its content.
    #expect(try rig.restore(report, "folders/tree/b", to: "part").isComplete)
    #expect(try rig.directory.read("part/second") == rig.directory.read("tree/b/second"))
  }

  @Test func theSnapshotSaysWhatItHolds() throws {
    let rig = try Fixture()
    try rig.directory.write("12345", at: "tree/folder/file")
    let first = try #require(try rig.backup().snapshot)
    let second = try #require(try rig.backup().snapshot).snapshot
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
