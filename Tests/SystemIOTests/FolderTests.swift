import Glibc
import SystemIO
import TestSupport
import Testing

@Suite struct FolderTests {
  let temporary: TemporaryFolder
  init() throws { temporary = try TemporaryFolder("folder") }

  @Test func aLinkInPlaceOfAFolderOrFileIsRefused() throws {
    try temporary.write("secret", at: "real/file")
    let folder = try Folder.open(path: temporary.path)
    try folder.createLink("folder", to: "real")
    try folder.createLink("file", to: "real/file")
    let refusedFolder = failure { _ = try folder.folder("folder") }
    #expect(refusedFolder?.number == ELOOP || refusedFolder?.number == ENOTDIR)
    let refused = failure { _ = try folder.file("file") }
    #expect(refused?.number == ELOOP && refused?.isLink == true)
    #expect(refused?.reason == "a symbolic link stands there, which is not followed")
    #expect(failure { _ = try folder.openOrCreate("file") }?.isLink == true)
    #expect(failure { _ = try folder.create("file") }?.number == EEXIST)
    #expect(failure { _ = try folder.makeFolder("folder") } != nil)
    #expect(try temporary.read("real/file") == Array("secret".utf8))
    // The root that a user names may be a link.
    let root = try Folder.open(path: temporary.path("folder"))
    #expect(try root.names() == ["file"])
  }

  @Test func aFileIsNoFolder() throws {
    try temporary.write("x", at: "f")
    #expect(failure { _ = try Folder.open(path: temporary.path("f")) }?.number == ENOTDIR)
    #expect(failure { _ = try temporary.folder.folder("f") }?.number == ENOTDIR)
    #expect(failure { _ = try temporary.folder.makeFolder("f") }?.number == ENOTDIR)
  }

  @Test func whatIsReadUntouchedKeepsItsTimeOfAccess() throws {
    let temporary = try TemporaryFolder("access", inMemory: true)
    try #require(try temporary.folder.notesAccess())
    try temporary.write("x", at: "f")
    let touch = ["-a", "-d", "2020-01-01T00:00:00Z", temporary.string + "/f"]
    #expect(try Program.run("touch", touch).code == 0)
    let before = try temporary.folder.look("f").accessed
    #expect(try temporary.folder.fileUntouched("f").readAll(limit: 10) == Array("x".utf8))
    #expect(try temporary.folder.look("f").accessed == before)
    #expect(try temporary.folder.file("f").readAll(limit: 10) == Array("x".utf8))
    #expect(try temporary.folder.look("f").accessed > before)
  }

  @Test func whoMayNotHideAReadingReadsAllTheSame() throws {
    try temporary.write("x", at: "f")
    let refusal = Faults.Plan(failing: [.open], at: 1, number: EPERM)
    let bytes = try Faults.inject(refusal) {
      try temporary.folder.fileUntouched("f").readAll(limit: 10)
    }
    #expect(bytes == Array("x".utf8))
    #expect(refusal.hasFired)
    let failing = Faults.Plan(failing: [.open], at: 1, number: EACCES)
    let error = failure {
      try Faults.inject(failing) { () throws(SystemError) in
        _ = try temporary.folder.fileUntouched("f")
      }
    }
    #expect(error?.number == EACCES)
  }

  @Test func openingAFifoDoesNotBlock() throws {
    let folder = try Folder.open(path: temporary.path)
    try folder.createSpecial("fifo", kind: .fifo, permissions: 0o600)
    let fifo = try folder.file("fifo")
    #expect(try fifo.status().kind == .fifo)
  }

  @Test func makeMakesWhatIsMissing() throws {
    let path = temporary.path("a/b//c/")
    #expect(try Folder.make(path: path).names() == [])
    #expect(try Folder.make(path: path).names() == [])
    #expect(try temporary.folder.folder("a").folder("b").names() == ["c"])
    let mode = try Folder.make(path: temporary.path("p/q"), permissions: 0o700).status()
    #expect(mode.permissions == 0o700)
    #expect(try temporary.folder.status("p").permissions == 0o700)
    try temporary.write("x", at: "file")
    #expect(failure { _ = try Folder.make(path: temporary.path("file/below")) } != nil)
    #expect(failure { _ = try Folder.make(path: "") }?.number == ENOENT)
  }

  @Test func aDuplicateIsTheSameFolderWithItsOwnPlace() throws {
    try temporary.write("x", at: "a/f")
    let folder = try temporary.folder.folder("a")
    let again = try folder.duplicate()
    #expect(try again.status().identity == folder.status().identity)
    #expect(again.path == folder.path)
    try temporary.folder.rename("a", to: "b", in: temporary.folder)
    // Moved: an open folder stays the one that it was.
    #expect(try again.names() == ["f"])
    #expect(try folder.names() == ["f"])
    #expect(try folder.names() == ["f"])
  }

  @Test func namesAreSortedByBytes() throws {
    let folder = try temporary.folder.makeFolder("many")
    var random = Seeded.fresh()
    var expected: Set<ByteString> = []
    for _ in 0..<300 { expected.insert(ByteString(random.fileName(longest: 200))) }
    for name in expected { _ = try folder.create(name) }
    #expect(try folder.names() == expected.sorted(), "seed \(random.seed)")
    #expect(try !folder.isEmpty())
    let empty = try temporary.folder.makeFolder("empty")
    #expect(try empty.isEmpty())
  }

  @Test func statusOfEveryKind() throws {
    try temporary.write("12345", at: "file")
    let folder = try Folder.open(path: temporary.path)
    try folder.createFolder("folder")
    try folder.createLink("link", to: "file")
    try folder.createLink("dangling", to: "nowhere")
    try folder.createSpecial("fifo", kind: .fifo, permissions: 0o600)
    try folder.createSpecial("socket", kind: .socket, permissions: 0o600)
    #expect(try folder.status("file").kind == .file)
    #expect(try folder.status("file").size == 5)
    #expect(try folder.status("folder").kind == .directory)
    #expect(try folder.status("link").kind == .symlink)
    #expect(try folder.status("link").size == 4)
    #expect(try folder.status("fifo").kind == .fifo)
    #expect(try folder.status("socket").kind == .socket)
    #expect(try folder.statusFollowing("link").kind == .file)
    #expect(failure { _ = try folder.statusFollowing("dangling") }?.isMissing == true)
    #expect(try folder.statusIfPresent("none") == nil)
    #expect(try folder.statusIfPresent("dangling")?.kind == .symlink)
    #expect(try folder.statusIfPresent("file") == folder.status("file"))
    #expect(failure { _ = try folder.status("none") }?.path == temporary.path("none"))
  }

  @Test func statusSaysWhatStatSays() throws {
    try temporary.write("12345", at: "file")
    let folder = try Folder.open(path: temporary.path)
    try folder.createHardLink("other", to: "file", in: folder)
    try folder.setPermissions(0o4751, of: "file")
    try folder.setModified(Timestamp(seconds: 1_234_567_890, nanoseconds: 987_654_321), of: "file")
    let status = try folder.status("file")
    let told = try Program.run(
      "stat", ["-c", "%i %d %h %u %g %a %s %b %Y", temporary.string + "/file"])
    let mine: [String] = [
      "\(status.identity.inode)", "\(status.identity.device)", "\(status.links)", "\(status.user)",
      "\(status.group)", String(status.permissions, radix: 8), "\(status.size)",
      "\(status.allocated / 512)", "\(status.modified.seconds)",
    ]
    #expect(told.output == mine.joined(separator: " ") + "\n")
    #expect(status.modified.nanoseconds == 987_654_321)
    #expect(status.links == 2)
    #expect(!status.isMountPoint)
    #expect(status.changed >= status.modified)
    if let born = status.born { #expect(born <= status.changed) }
    #expect(try folder.status("other").identity == status.identity)
  }

  @Test func aMountPointIsTold() throws {
    let proc = try Folder.open(path: "/").statusIfPresent("proc")
    #expect(try #require(proc).isMountPoint)
    #expect(try Folder.open(path: "/proc").status().isMountPoint)
    #expect(try !Folder.open(path: "/proc").status("self").isMountPoint)
  }

  @Test func devicesHaveTheirNumbers() throws {
    let null = try Folder.open(path: "/dev").status("null")
    #expect(null.kind == .characterDevice)
    // makedev(1, 3)
    #expect(null.specialDevice == 0x103)
  }

  @Test func spaceIsTheVolumes() throws {
    let space = try temporary.folder.space()
    let told = try Program.run("stat", ["-f", "-c", "%S %b", temporary.string])
    let parts = told.output.split(whereSeparator: \.isWhitespace).compactMap { UInt64($0) }
    #expect(parts.count == 2)
    #expect(space.total == parts.reduce(1, *))
    #expect(space.available <= space.total)
  }
}
