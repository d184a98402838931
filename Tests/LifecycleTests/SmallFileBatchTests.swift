import ArchiveStore
import Lifecycle
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Small files of several directories, which wait for one another before they are stored.
@Suite(.spreadScans) struct SmallFileBatchTests {
  /// Whether what was restored has the files of the tree, byte for byte.
  private func expectSame(_ rig: Fixture, _ directories: [ByteString]) throws {
    for directory in directories {
      let (now, then) = (
        ByteString("tree").appending(directory), ByteString("back").appending(directory)
      )
      #expect(try rig.names(now) == rig.names(then), "\(directory)")
      for name in try rig.names(now) {
        #expect(
          try rig.directory.read(now.appending(name)) == rig.directory.read(then.appending(name)),
          "\(directory)/\(name)")
      }
    }
  }

  /// Tiny, small and larger ones in many directories, many of them equal: more than are held at a time, by
  /// their number and by their bytes.
  @Test func filesOfManyDirectoriesComeBack() throws {
    let rig = try Fixture()
    var random = Seeded(7)
    let directories = (0..<60).map { ByteString("\($0)") }
    for (number, directory) in directories.enumerated() {
      let tree = ByteString("tree").appending(directory)
      for file in 0..<(number % 11) {
        let size = [0, 1, 100, 5_000, 40_000, 200_000, 524_288, 524_289][(number + file) % 8]
        try rig.directory.write(random.bytes(size), at: tree.appending(ByteString("\(file)")))
      }
      for file in 0..<8 {
        try rig.directory.write("equal \(file)", at: tree.appending(ByteString("equal \(file)")))
      }
      _ = try Directory.make(path: rig.directory.path(tree))
    }
    let report = try rig.backup(keeping: "cache")
    #expect(report.isComplete && report.warnings.isEmpty)
    #expect(try rig.restore(report).isComplete)
    try expectSame(rig, directories)
    let again = try rig.backup(keeping: "cache")
    #expect(again.opened == 0 && again.files == report.files)
  }

  /// What a small file has become since the scan is what is stored: larger than what is held, empty,
  /// a database, a link; and one that is gone takes no other with it.
  @Test func whatTheyBecameSinceTheScanIsStored() throws {
    let rig = try Fixture()
    var random = Seeded(8)
    let names = ["a", "emptied", "gone", "grown", "huge", "linked", "shrunk", "sqlite", "z"]
    for name in names {
      try rig.directory.write(random.bytes(300_000), at: ByteString("tree/x/\(name)"))
    }
    let scan = try rig.scan()
    let tree = try Directory.open(path: rig.directory.path("tree/x"))
    try rig.directory.write("", at: "tree/x/emptied")
    try tree.remove("gone")
    try rig.directory.write(random.bytes(524_288), at: "tree/x/grown")
    try rig.directory.write(random.bytes(9_000_000), at: "tree/x/huge")
    try tree.remove("linked")
    try tree.createLink("linked", to: "a")
    try rig.directory.write("short", at: "tree/x/shrunk")
    try rig.directory.write("SQLite format 3\0" + "pages", at: "tree/x/sqlite")
    let report = try rig.backup(scan)
    #expect(report.databases.map(\.path) == ["folders/tree/x/sqlite"])
    #expect(report.isComplete && report.files == 7)
    #expect(try rig.restore(report).isComplete)
    let back = try Directory.open(path: rig.directory.path("back/x"))
    #expect(try back.target(of: "linked") == "a")
    for directory in [tree.path, back.path] { try Directory.open(path: directory).remove("linked") }
    try expectSame(rig, ["x"])
  }

  /// A directory that becomes another one while its files are read is stored as it is then; what was held of
  /// the one before is in nobody's way.
  @Test func aDirectoryThatIsReplacedInTheMiddle() throws {
    let rig = try Fixture()
    for name: ByteString in ["a/1", "a/2", "a/3", "z/1", "z/3"] {
      try rig.directory.write("in \(name)", at: ByteString("tree").appending(name))
    }
    let tree = try Directory.open(path: rig.directory.path("tree"))
    try tree.directory("z").createHardLink("2", to: "2", in: tree.directory("a"))
    // The file is read by the name that the scan comes to first, which is a matter of the volume.
    let scan = try #require(try rig.scan().containers.first)
    let leader = try #require(
      scan.entries.indices.first { scan.path($0).lastComponent == "2" })
    let isFirst = scan.path(leader).components.first == "a"
    let (replaced, other): (ByteString, ByteString) = isFirst ? ("a", "z") : ("z", "a")
    // The first file of the directory is read then: that of "z" after the two of "a".
    let opened = isFirst ? 1 : 3
    let counters = ProgressCounters()
    let isReplaced = Mutex(false)
    let path = rig.directory.path("tree")
    let report = try rig.backup(keeping: "cache") { request in
      request.workers = 1
      request.counters = counters
      request.isStopping = {
        guard counters.progress.opened == opened else { return false }
        isReplaced.withLock { isReplaced in
          if !isReplaced { isReplaced = (try? Self.replace(replaced, in: path)) != nil }
        }
        return false
      }
    }
    #expect(isReplaced.withLock { $0 })
    #expect(report.isComplete)
    #expect(try rig.restore(report).isComplete)
    try expectSame(rig, [replaced, other])
    let next = try rig.backup(keeping: "cache")
    #expect(next.isComplete && next.files == 4)
  }

  /// Puts another directory in the place of one, from which a name goes, too.
  private static func replace(_ name: ByteString, in path: ByteString) throws {
    let above = try Directory.open(path: path)
    try above.directory(name).remove("2")
    try above.rename(name, to: "moved", in: above)
    try Directory.make(path: path.appending(name)).openOrCreate("new").write([1])
    try above.removeTree("moved")
  }
}
