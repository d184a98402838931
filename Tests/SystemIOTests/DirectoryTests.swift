import Glibc
import SystemIO
import TestSupport
import Testing

struct DirectoryTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("folder") }

  @Test func aLinkInsteadOfADirectoryOrFileIsRefused() throws {
    try temporary.write("secret", at: "real/file")
    let directory = try Directory.open(path: temporary.path)
    try directory.createLink("folder", to: "real")
    try directory.createLink("file", to: "real/file")
    let refusedDirectory = failure { _ = try directory.directory("folder") }
    #expect(refusedDirectory?.number == ELOOP || refusedDirectory?.number == ENOTDIR)
    let refused = failure { _ = try directory.file("file") }
    #expect(refused?.number == ELOOP && refused?.isLink == true)
    #expect(refused?.reason == "it is a symbolic link, which is not followed")
    #expect(failure { _ = try directory.openOrCreate("file") }?.isLink == true)
    #expect(failure { _ = try directory.create("file") }?.number == EEXIST)
    #expect(failure { _ = try directory.makeDirectory("folder") } != nil)
    #expect(try temporary.read("real/file") == Array("secret".utf8))
    // A root directory given by the user may be a link.
    let root = try Directory.open(path: temporary.path("folder"))
    #expect(try root.names() == ["file"])
  }

  @Test func aFileIsNotOpenedAsADirectory() throws {
    try temporary.write("x", at: "f")
    #expect(failure { _ = try Directory.open(path: temporary.path("f")) }?.number == ENOTDIR)
    #expect(failure { _ = try temporary.directory.directory("f") }?.number == ENOTDIR)
    #expect(failure { _ = try temporary.directory.makeDirectory("f") }?.number == ENOTDIR)
  }

  @Test func anUntouchedReadKeepsTheAccessTime() throws {
    let temporary = try TemporaryDirectory("access", inMemory: true)
    try #require(try temporary.directory.notesAccess())
    try temporary.write("x", at: "f")
    let touch = ["-a", "-d", "2020-01-01T00:00:00Z", temporary.string + "/f"]
    #expect(try Program.run("touch", touch).code == 0)
    let before = try temporary.directory.statusAndAccess("f").accessed
    #expect(try temporary.directory.fileUntouched("f").readAll(limit: 10) == Array("x".utf8))
    #expect(try temporary.directory.statusAndAccess("f").accessed == before)
    #expect(try temporary.directory.file("f").readAll(limit: 10) == Array("x".utf8))
    #expect(try temporary.directory.statusAndAccess("f").accessed > before)
  }

  @Test func withoutThePermissionForItAnUntouchedReadSucceeds() throws {
    try temporary.write("x", at: "f")
    let refusal = Faults.Plan(failing: [.open], at: 1, number: EPERM)
    let bytes = try Faults.inject(refusal) {
      try temporary.directory.fileUntouched("f").readAll(limit: 10)
    }
    #expect(bytes == Array("x".utf8))
    #expect(refusal.hasFired)
    let failing = Faults.Plan(failing: [.open], at: 1, number: EACCES)
    let error = failure {
      try Faults.inject(failing) { () throws(SystemError) in
        _ = try temporary.directory.fileUntouched("f")
      }
    }
    #expect(error?.number == EACCES)
  }

  @Test func openingAFifoDoesNotBlock() throws {
    let directory = try Directory.open(path: temporary.path)
    try directory.createSpecial("fifo", kind: .fifo, permissions: 0o600)
    let fifo = try directory.file("fifo")
    #expect(try fifo.status().kind == .fifo)
  }

  @Test func makeCreatesMissingDirectories() throws {
    let path = temporary.path("a/b//c/")
    #expect(try Directory.make(path: path).names() == [])
    #expect(try Directory.make(path: path).names() == [])
    #expect(try temporary.directory.directory("a").directory("b").names() == ["c"])
    let mode = try Directory.make(path: temporary.path("p/q"), permissions: 0o700).status()
    #expect(mode.permissions == 0o700)
    #expect(try temporary.directory.status("p").permissions == 0o700)
    try temporary.write("x", at: "file")
    #expect(failure { _ = try Directory.make(path: temporary.path("file/below")) } != nil)
    #expect(failure { _ = try Directory.make(path: "") }?.number == ENOENT)
  }

  @Test func aDuplicateIsTheSameDirectoryWithItsOwnOffset() throws {
    try temporary.write("x", at: "a/f")
    let directory = try temporary.directory.directory("a")
    let again = try directory.duplicate()
    #expect(try again.status().identity == directory.status().identity)
    #expect(again.path == directory.path)
    try temporary.directory.rename("a", to: "b", in: temporary.directory)
    // An open directory stays valid when it is moved.
    #expect(try again.names() == ["f"])
    #expect(try directory.names() == ["f"])
    #expect(try directory.names() == ["f"])
  }

  @Test func namesAreSortedByBytes() throws {
    let directory = try temporary.directory.makeDirectory("many")
    var random = Seeded.fresh()
    var expected: Set<ByteString> = []
    for _ in 0..<300 { expected.insert(ByteString(random.fileName(longest: 200))) }
    for name in expected { _ = try directory.create(name) }
    #expect(try directory.names() == expected.sorted(), "seed \(random.seed)")
    #expect(try !directory.isEmpty())
    let empty = try temporary.directory.makeDirectory("empty")
    #expect(try empty.isEmpty())
  }

  @Test func statusReportsEveryKind() throws {
    try temporary.write("12345", at: "file")
    let directory = try Directory.open(path: temporary.path)
    try directory.createDirectory("folder")
    try directory.createLink("link", to: "file")
    try directory.createLink("dangling", to: "nowhere")
    try directory.createSpecial("fifo", kind: .fifo, permissions: 0o600)
    try directory.createSpecial("socket", kind: .socket, permissions: 0o600)
    #expect(try directory.status("file").kind == .file)
    #expect(try directory.status("file").size == 5)
    #expect(try directory.status("folder").kind == .directory)
    #expect(try directory.status("link").kind == .symlink)
    #expect(try directory.status("link").size == 4)
    #expect(try directory.status("fifo").kind == .fifo)
    #expect(try directory.status("socket").kind == .socket)
    #expect(try directory.statusFollowing("link").kind == .file)
    #expect(failure { _ = try directory.statusFollowing("dangling") }?.isMissing == true)
    #expect(try directory.statusIfPresent("none") == nil)
    #expect(try directory.statusIfPresent("dangling")?.kind == .symlink)
    #expect(try directory.statusIfPresent("file") == directory.status("file"))
    #expect(failure { _ = try directory.status("none") }?.path == temporary.path("none"))
  }

  @Test func statusMatchesStat() throws {
    try temporary.write("12345", at: "file")
    let directory = try Directory.open(path: temporary.path)
    try directory.createHardLink("other", to: "file", in: directory)
    try directory.setPermissions(0o4751, of: "file")
    try directory.setModified(
      Timestamp(seconds: 1_234_567_890, nanoseconds: 987_654_321), of: "file")
    let status = try directory.status("file")
    let reported = try Program.run(
      "stat", ["-c", "%i %d %h %u %g %a %s %b %Y", temporary.string + "/file"])
    let mine: [String] = [
      "\(status.identity.inode)", "\(status.identity.device)", "\(status.links)", "\(status.user)",
      "\(status.group)", String(status.permissions, radix: 8), "\(status.size)",
      "\(status.allocated / 512)", "\(status.modified.seconds)",
    ]
    #expect(reported.output == mine.joined(separator: " ") + "\n")
    #expect(status.modified.nanoseconds == 987_654_321)
    #expect(status.links == 2)
    #expect(!status.isMountPoint)
    #expect(status.changed >= status.modified)
    if let born = status.born { #expect(born <= status.changed) }
    #expect(try directory.status("other").identity == status.identity)
  }

  @Test func aMountPointIsReported() throws {
    let proc = try Directory.open(path: "/").statusIfPresent("proc")
    #expect(try #require(proc).isMountPoint)
    #expect(try Directory.open(path: "/proc").status().isMountPoint)
    #expect(try !Directory.open(path: "/proc").status("self").isMountPoint)
  }

  @Test func devicesHaveTheirNumbers() throws {
    let null = try Directory.open(path: "/dev").status("null")
    #expect(null.kind == .characterDevice)
    // makedev(1, 3)
    #expect(null.specialDevice == 0x103)
  }

  @Test func spaceIsThatOfTheVolume() throws {
    let space = try temporary.directory.space()
    let reported = try Program.run("stat", ["-f", "-c", "%S %b", temporary.string])
    let parts = reported.output.split(whereSeparator: \.isWhitespace).compactMap { UInt64($0) }
    #expect(parts.count == 2)
    #expect(space.total == parts.reduce(1, *))
    #expect(space.available <= space.total)
  }
}
