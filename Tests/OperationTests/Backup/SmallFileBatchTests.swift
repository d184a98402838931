import ArchiveStore
import DeviceScan
import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// Small files from several directories are stored in batches.
@Suite(.spreadScans) struct SmallFileBatchTests {
  /// Checks that the restored files equal those of the tree, byte for byte.
  private func expectSame(_ fixture: Fixture, _ directories: [ByteString]) throws {
    for directory in directories {
      let (now, then) = (
        ByteString("tree").appending(directory), ByteString("back").appending(directory)
      )
      #expect(try fixture.names(now) == fixture.names(then), "\(directory)")
      for name in try fixture.names(now) {
        #expect(
          try fixture.directory.read(now.appending(name))
            == fixture.directory.read(then.appending(name)),
          "\(directory)/\(name)")
      }
    }
  }

  /// Tiny, small and larger files in many directories, many of them equal: more than fit into a
  /// batch, in number and in bytes.
  @Test func filesOfManyDirectoriesAreRestored() throws {
    let fixture = try Fixture()
    var random = Seeded(7)
    let directories = (0..<60).map { ByteString("\($0)") }
    for (number, directory) in directories.enumerated() {
      let tree = ByteString("tree").appending(directory)
      for file in 0..<(number % 11) {
        let size = [0, 1, 100, 5_000, 40_000, 200_000, 524_288, 524_289][(number + file) % 8]
        try fixture.directory.write(random.bytes(size), at: tree.appending(ByteString("\(file)")))
      }
      for file in 0..<8 {
        try fixture.directory.write(
          "equal \(file)", at: tree.appending(ByteString("equal \(file)")))
      }
      _ = try Directory.make(path: fixture.directory.path(tree))
    }
    let report = try fixture.backup(keeping: "cache")
    #expect(report.isComplete && report.warnings.isEmpty)
    #expect(try fixture.restore(report).isComplete)
    try expectSame(fixture, directories)
    let again = try fixture.backup(keeping: "cache")
    #expect(again.opened == 0 && again.files == report.files)
  }

  /// The current state of a small file is stored, not the scanned one, if it is now larger than a
  /// batch, empty, a database or a link. A deleted file does not affect the others.
  @Test func filesChangedAfterTheScanAreStoredAsTheyAre() throws {
    let fixture = try Fixture()
    var random = Seeded(8)
    let names = ["a", "emptied", "gone", "grown", "huge", "linked", "shrunk", "sqlite", "z"]
    for name in names {
      try fixture.directory.write(random.bytes(300_000), at: ByteString("tree/x/\(name)"))
    }
    let scan = try fixture.scan()
    let tree = try Directory.open(path: fixture.directory.path("tree/x"))
    try fixture.directory.write("", at: "tree/x/emptied")
    try tree.remove("gone")
    try fixture.directory.write(random.bytes(524_288), at: "tree/x/grown")
    try fixture.directory.write(random.bytes(9_000_000), at: "tree/x/huge")
    try tree.remove("linked")
    try tree.createLink("linked", to: "a")
    try fixture.directory.write("short", at: "tree/x/shrunk")
    try fixture.directory.write("SQLite format 3\0" + "pages", at: "tree/x/sqlite")
    let report = try fixture.backup(scan)
    #expect(report.databases.map(\.path) == ["folders/tree/x/sqlite"])
    #expect(report.isComplete && report.files == 7)
    #expect(try fixture.restore(report).isComplete)
    let back = try Directory.open(path: fixture.directory.path("back/x"))
    #expect(try back.target(of: "linked") == "a")
    for directory in [tree.path, back.path] { try Directory.open(path: directory).remove("linked") }
    try expectSame(fixture, ["x"])
  }

  /// A directory that is replaced while its files are read is stored in its new state, even if
  /// files of the old one were already read.
  @Test func aDirectoryReplacedDuringTheReadIsStoredAsItIs() throws {
    let fixture = try Fixture()
    for name: ByteString in ["a/1", "a/2", "a/3", "z/1", "z/3"] {
      try fixture.directory.write("in \(name)", at: ByteString("tree").appending(name))
    }
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.directory("z").createHardLink("2", to: "2", in: tree.directory("a"))
    // The file is read under the name that the scan finds first, which depends on the file system.
    let scan = try #require(try fixture.scan().containers.first)
    let leader = try #require(
      scan.entries.indices.first { scan.path($0).lastComponent == "2" })
    let isFirst = scan.path(leader).components.first == "a"
    let (replaced, other): (ByteString, ByteString) = isFirst ? ("a", "z") : ("z", "a")
    // The first file of the replaced directory is then read: that of "z" after the two of "a".
    let opened = isFirst ? 1 : 3
    let counters = ProgressCounters()
    let isReplaced = Mutex(false)
    let path = fixture.directory.path("tree")
    let report = try fixture.backup(keeping: "cache") { request in
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
    #expect(try fixture.restore(report).isComplete)
    try expectSame(fixture, [replaced, other])
    let next = try fixture.backup(keeping: "cache")
    #expect(next.isComplete && next.files == 4)
  }

  /// Replaces a directory with another, after removing a name from it.
  private static func replace(_ name: ByteString, in path: ByteString) throws {
    let above = try Directory.open(path: path)
    try above.directory(name).remove("2")
    try above.rename(name, to: "moved", in: above)
    try Directory.make(path: path.appending(name)).openOrCreate("new").write([1])
    try above.removeTree("moved")
  }
}
