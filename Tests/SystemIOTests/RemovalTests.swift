import Glibc
import SystemIO
import TestSupport
import Testing

struct RemovalTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("removal") }

  @Test func removesAFileALinkOrATree() throws {
    try temporary.write("x", at: "tree/a/b/c")
    try temporary.write("x", at: "tree/d")
    try temporary.write("x", at: "file")
    let directory = try Directory.open(path: temporary.path)
    try directory.createLink("link", to: "kept")
    try temporary.write("x", at: "kept/f")
    for name: ByteString in ["tree", "file", "link"] { try directory.removeTree(name) }
    #expect(try directory.names() == ["kept"])
    #expect(try temporary.read("kept/f") == Array("x".utf8))
    #expect(failure { try directory.removeTree("none") }?.isMissing == true)
  }

  @Test func aLinkIsNotFollowed() throws {
    let outside = try TemporaryDirectory("outside")
    try outside.write("x", at: "precious/file")
    let tree = try temporary.directory.makeDirectory("tree")
    try tree.createLink("folder", to: outside.path("precious"))
    try tree.createLink("file", to: outside.path("precious/file"))
    try tree.createLink("loop", to: ".")
    try temporary.directory.removeTree("tree")
    #expect(try temporary.directory.isEmpty())
    #expect(try outside.read("precious/file") == Array("x".utf8))
  }

  @Test func removesAnyNamesAndKinds() throws {
    var random = Seeded.fresh()
    let tree = try temporary.directory.makeDirectory("tree")
    for _ in 0..<200 {
      let name = ByteString(random.fileName())
      if try tree.statusIfPresent(name) != nil { continue }
      try tree.createDirectory(name)
      try tree.directory(name).create(ByteString(random.fileName())).close()
    }
    try tree.createSpecial("fifo", kind: .fifo, permissions: 0)
    try tree.createSpecial("socket", kind: .socket, permissions: 0)
    try temporary.directory.removeTree("tree")
    #expect(try temporary.directory.isEmpty(), "seed \(random.seed)")
  }

  @Test func aFailureIsReportedAndTheRestIsRemoved() throws {
    for path: ByteString in ["tree/a/1", "tree/b/2", "tree/b/3", "tree/c/4"] {
      try temporary.write("x", at: path)
    }
    try temporary.directory.setPermissions(0o777)
    for name: ByteString in ["tree", "tree/a", "tree/b", "tree/c"] {
      try Directory.open(path: temporary.path(name)).setPermissions(
        name == "tree/b" ? 0o555 : 0o777)
    }
    let error = try Unprivileged.run { failure { try temporary.directory.removeTree("tree") } }
    #expect(error?.operation == .remove && error?.number == EACCES)
    #expect(error?.path.isWithin(temporary.path("tree/b")) == true)
    #expect(try temporary.directory.directory("tree").names() == ["b"])
    let left = try Directory.open(path: temporary.path("tree/b"))
    #expect(try left.names() == ["2", "3"])
  }

  /// This applies only to directories that the user owns, and not through links.
  @Test func ownDirectoriesAreMadeWritableOnRequest() throws {
    let outside = try TemporaryDirectory("outside")
    try outside.write("x", at: "closed/file")
    try outside.directory.setPermissions(0o555, of: "closed")
    for path: ByteString in ["tree/a/1", "tree/b/2", "tree/b/c/3"] {
      try temporary.write("x", at: path)
    }
    try temporary.directory.directory("tree").createLink("link", to: outside.path("closed"))
    for name: ByteString in ["tree/b/c", "tree/b", "tree"] {
      try Directory.open(path: temporary.path(name)).setPermissions(0o555)
    }
    _ = try Program.run("chown", ["-R", "nobody", temporary.string, outside.string])
    let watch = RemovalWatch(makesWritable: true)
    _ = try Unprivileged.run { try temporary.directory.removeTree("tree", watch: watch) }
    #expect(try temporary.directory.isEmpty())
    #expect(try outside.directory.status("closed").permissions == 0o555)
    #expect(try outside.read("closed/file") == Array("x".utf8))
  }

  @Test func aFailedCallLeavesOnlyItsEntry() throws {
    for operation: SystemError.Operation in [.remove, .open, .list, .status] {
      for first in 1...60 {
        for path: ByteString in ["tree/a/1", "tree/b/2", "tree/b/c/3", "tree/4"] {
          try temporary.write("x", at: path)
        }
        let plan = Faults.Plan(failing: [operation], at: first, number: EIO)
        let error = Faults.inject(plan) { failure { try temporary.directory.removeTree("tree") } }
        if !plan.hasFired {
          #expect(error == nil)
          break
        }
        #expect(error?.number == EIO && error?.operation == operation)
        if try temporary.directory.isEmpty() { continue }
        try temporary.directory.removeTree("tree")
      }
    }
    #expect(try temporary.directory.isEmpty())
  }

  @Test func anEntryRemovedConcurrentlyIsNotAFailure() throws {
    try temporary.write("x", at: "tree/a/1")
    let plan = Faults.Plan(failing: [.remove], at: 1, number: ENOENT)
    // In this test the file still exists, so its directory cannot be removed and is reported; the
    // file itself is not.
    let error = Faults.inject(plan) { failure { try temporary.directory.removeTree("tree") } }
    #expect(error?.number == ENOTEMPTY)
  }

  @Test func anotherMountIsNotEntered() throws {
    guard try Mount.isPermitted() else { return }
    let tree = try temporary.directory.makeDirectory("tree")
    let mount = try Mount(on: tree, at: temporary.path("tree"), "volume")
    try temporary.write("x", at: "tree/volume/precious")
    try temporary.write("x", at: "tree/goes")
    let error = failure { try temporary.directory.removeTree("tree") }
    #expect(error?.number == EBUSY && error?.path == temporary.path("tree/volume"))
    #expect(error?.reason == "it is in use, or another volume is mounted there")
    #expect(try tree.names() == ["volume"])
    #expect(try temporary.read("tree/volume/precious") == Array("x".utf8))
    #expect(failure { try tree.removeTree("volume") }?.number == EBUSY)
    withExtendedLifetime(mount) {}
  }

  @Test func aWatchCountsRemovalsAndCanStop() throws {
    for path: ByteString in ["tree/a/1", "tree/b/2", "tree/b/c/3", "tree/4"] {
      try temporary.write("x", at: path)
    }
    var count = 0
    let two = RemovalWatch(didRemove: { count += 1 }, isStopping: { count >= 2 })
    #expect(try !temporary.directory.removeTree("tree", watch: two))
    #expect(count == 2)
    #expect(try temporary.directory.names() == ["tree"])
    let rest = RemovalWatch(didRemove: { count += 1 })
    #expect(try temporary.directory.removeTree("tree", watch: rest))
    #expect(try count == 4 && temporary.directory.isEmpty())
    try temporary.write("x", at: "file")
    #expect(try temporary.directory.removeTree("file", watch: rest))
    #expect(count == 5)
  }
}
