import Glibc
import SystemIO
import TestSupport
import Testing

struct DirectoryChangeTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("change") }

  @Test func createRefusesAnExistingName() throws {
    let directory = try Directory.open(path: temporary.path)
    _ = try directory.create("f", permissions: 0o600)
    let error = failure { _ = try directory.create("f") }
    #expect(error?.isExisting == true)
    #expect(error?.operation == .create)
    #expect(try directory.status("f").permissions == 0o600)
    try directory.createDirectory("d", permissions: 0o700)
    #expect(failure { try directory.createDirectory("d") }?.isExisting == true)
    #expect(try directory.makeDirectory("d").names() == [])
    #expect(try directory.status("d").permissions == 0o700)
  }

  @Test func openOrCreateKeepsAnExistingFile() throws {
    try temporary.write("kept", at: "f")
    let file = try temporary.directory.openOrCreate("f")
    #expect(try file.read(count: 9, at: 0) == Array("kept".utf8))
    let new = try temporary.directory.openOrCreate("new", permissions: 0o640)
    #expect(try new.status().permissions == 0o640)
  }

  @Test func aRenameReplacesOnlyOnRequest() throws {
    try temporary.write("one", at: "a")
    try temporary.write("two", at: "b")
    let directory = try Directory.open(path: temporary.path)
    let error = failure { try directory.rename("a", to: "b", in: directory, replacing: false) }
    #expect(error?.number == EEXIST)
    #expect(error?.operation == .rename)
    #expect(try temporary.read("a") == Array("one".utf8))
    #expect(try temporary.read("b") == Array("two".utf8))
    try directory.rename("a", to: "b", in: directory)
    #expect(try directory.names() == ["b"])
    #expect(try temporary.read("b") == Array("one".utf8))
    try directory.rename("b", to: "c", in: directory, replacing: false)
    let other = try directory.makeDirectory("d")
    try directory.rename("c", to: "moved", in: other)
    #expect(try other.names() == ["moved"])
    #expect(failure { try directory.rename("none", to: "x", in: directory) }?.isMissing == true)
    try temporary.write("another file", at: "e/f")
    #expect(failure { try directory.rename("d", to: "e", in: directory) }?.isExisting == true)
  }

  /// NFS and some sandboxes have no rename that refuses to replace.
  @Test(arguments: [EINVAL, ENOSYS]) func withoutSuchARenameNothingIsReplacedEither(
    number: Int32
  ) throws {
    try temporary.write("one", at: "a")
    try temporary.write("two", at: "b")
    let directory = try Directory.open(path: temporary.path)
    func move(to name: ByteString) -> SystemError? {
      let plan = Faults.Plan(failing: [.rename], at: 1, number: number)
      return failure {
        try Faults.inject(plan) {
          try directory.renameWithoutReplacing("a", to: name, in: directory)
        }
      }
    }
    #expect(move(to: "b")?.number == EEXIST)
    #expect(try temporary.read("b") == Array("two".utf8))
    #expect(move(to: "c") == nil)
    #expect(try temporary.read("c") == Array("one".utf8))
  }

  @Test func linkTargetsMayBeAnyBytes() throws {
    let directory = try Directory.open(path: temporary.path)
    let target = ByteString([0x2f, 0xff, 0x0a, 0x2e, 0x2e])
    try directory.createLink("l", to: target)
    #expect(try directory.target(of: "l") == target)
    let long = ByteString(repeatElement(UInt8(ascii: "x"), count: 4095))
    try directory.createLink("long", to: long)
    #expect(try directory.target(of: "long") == long)
    #expect(failure { try directory.createLink("l", to: "other") }?.isExisting == true)
    #expect(failure { _ = try directory.target(of: "none") }?.isMissing == true)
    try temporary.write("x", at: "f")
    #expect(failure { _ = try directory.target(of: "f") }?.number == EINVAL)
  }

  @Test func hardLinksAreTheSameFile() throws {
    try temporary.write("x", at: "a")
    let directory = try Directory.open(path: temporary.path)
    let other = try directory.makeDirectory("d")
    try other.createHardLink("b", to: "a", in: directory)
    #expect(try other.status("b").identity == directory.status("a").identity)
    #expect(try directory.status("a").links == 2)
    #expect(failure { try other.createHardLink("b", to: "a", in: directory) }?.isExisting == true)
    try directory.createLink("l", to: "a")
    // This creates a hard link to the symbolic link, not to its target.
    try other.createHardLink("l2", to: "l", in: directory)
    #expect(try other.status("l2").kind == .symlink)
  }

  @Test func permissionsAreNotSetThroughALink() throws {
    try temporary.write("x", at: "f")
    let directory = try Directory.open(path: temporary.path)
    try directory.setPermissions(0o600, of: "f")
    try directory.createLink("l", to: "f")
    #expect(failure { try directory.setPermissions(0o755, of: "l") }?.operation == .setMode)
    #expect(try directory.status("f").permissions == 0o600)
    try directory.createDirectory("d", permissions: 0o700)
    try directory.setPermissions(0o751, of: "d")
    #expect(try directory.status("d").permissions == 0o751)
  }

  @Test(.enabled(if: Host.userID == 0)) func aDirectoryOfAnotherUserIsNotOwn() throws {
    let directory = try temporary.directory.makeDirectory("d")
    try directory.requireOwn()
    try directory.setOwner(user: 1234, group: 1234)
    #expect(failure { try directory.requireOwn() }?.number == ESTALE)
    #expect(try directory.names() == [])
  }

  @Test(.enabled(if: Host.userID == 0)) func aFileWithAnotherNameIsNotGivenAway() throws {
    try temporary.write("secret", at: "of-root")
    try temporary.write("new", at: "device/new")
    try temporary.write("app", at: "device/app")
    let device = try temporary.directory.directory("device")
    try device.createHardLink("linked", to: "of-root", in: temporary.directory)
    try device.createLink("link", to: "../of-root")
    try device.setOwner(user: 4321, group: 4321, of: "app")
    try device.setOwner(user: 1234, group: 1234)
    #expect(failure { try device.inheritOwner("linked") }?.number == ESTALE)
    for name: ByteString in ["new", "link", "app"] { try device.inheritOwner(name) }
    #expect(try temporary.directory.status("of-root").user == 0)
    #expect(try device.status("new").user == 1234)
    #expect(try device.status("link").user == 1234)
    #expect(try device.status("app").user == 4321, "it is no file of root")
  }

  @Test(.enabled(if: Host.userID == 0)) func onlyNewDirectoriesAreGivenAway() throws {
    try temporary.write("secret", at: "device/of-root/file")
    let device = try temporary.directory.directory("device")
    try device.createDirectory("empty", permissions: 0o700)
    try device.setOwner(user: 1234, group: 1234)
    for name: ByteString in ["of-root", "empty"] {
      #expect(failure { try device.inheritOwner(name) }?.number == ESTALE)
    }
    for (name, owner) in [("of-root", 0), ("empty", 0), ("new", 1234)] as [(ByteString, UInt32)] {
      let opened = try device.makeInherited(name)
      #expect(try opened.status().user == owner, "\(name)")
    }
    let deep = try Directory.makeInherited(resolved: device.path.appending("new/a/b"))
    #expect(try deep.status().user == 1234 && deep.status().permissions == 0o700)
    #expect(try device.status("new").permissions == 0o700)
    try device.createInherited("exact", permissions: 0o777, exactly: true)
    #expect(try device.status("exact").permissions == 0o777)
    #expect(try device.status("exact").user == 1234)
    #expect(failure { try device.createInherited("new") }?.isExisting == true)
    #expect(try Set(device.names()) == ["empty", "exact", "new", "of-root"])
  }

  /// Two commands of root create the same directory at the same moment, and one in it.
  @Test(.enabled(if: Host.userID == 0)) func twoProgramsOfRootCreateADirectoryAtOnce() throws {
    let device = try temporary.directory.makeDirectory("device")
    try device.setOwner(user: 1234, group: 1234)
    let path = device.path
    let plan = Faults.Plan(before: [.setOwner], at: 1) {
      guard let device = try? Directory.open(path: path),
        let own = try? device.makeInherited("own")
      else { return }
      _ = try? own.makeInherited("journal")
    }
    try Faults.inject(plan) { _ = try device.makeInherited("own") }
    let own = try device.directory("own")
    #expect(try plan.hasFired && own.status().user == 1234)
    #expect(try own.status("journal").user == 1234)
    #expect(try device.names() == ["own"])
  }

  /// The owner of the directory puts a directory of root in place of the one that root created.
  @Test(.enabled(if: Host.userID == 0)) func aDirectoryThatReplacesANewOneStaysRoots() throws {
    try temporary.write("secret", at: "device/of-root/file")
    let device = try temporary.directory.directory("device")
    try device.setPermissions(0o700, of: "of-root")
    try device.setOwner(user: 1234, group: 1234)
    let ofRoot = try device.status("of-root").identity
    let path = device.path
    let plan = Faults.Plan(before: [.open], at: 1) {
      guard let device = try? Directory.open(path: path),
        let outer = try? device.names().first(where: AtomicFile.isTemporary)
      else { return }
      try? device.rename(outer, to: "moved", in: device)
      try? device.rename("of-root", to: outer, in: device)
    }
    try Faults.inject(plan) { try device.createInherited("own") }
    #expect(plan.hasFired)
    #expect(try device.status("own").user == 1234)
    let outer = try #require(try device.names().first(where: AtomicFile.isTemporary))
    #expect(try device.status(outer).identity == ofRoot && device.status(outer).user == 0)
    #expect(try device.directory(outer).names() == ["file"])
  }

  @Test(arguments: [FileKind.fifo, .socket, .characterDevice, .blockDevice])
  func specialFilesAreCreated(kind: FileKind) throws {
    let directory = try Directory.open(path: temporary.path)
    let device: UInt64 = kind == .fifo || kind == .socket ? 0 : 0x103
    let error = failure {
      try directory.createSpecial("s", kind: kind, permissions: 0o600, device: device)
    }
    guard error == nil else {
      #expect(error?.number == EPERM, "only devices need privileges")
      #expect(device != 0)
      return
    }
    let status = try directory.status("s")
    #expect(status.kind == kind && status.specialDevice == device && status.permissions == 0o600)
  }

  @Test(arguments: [FileKind.file, .directory, .symlink])
  func otherKindsAreNotSpecialFiles(kind: FileKind) throws {
    let error = failure {
      try temporary.directory.createSpecial("s", kind: kind, permissions: 0o600)
    }
    #expect(error?.number == EINVAL && error?.operation == .createSpecial)
    #expect(try temporary.directory.names() == [])
  }

  @Test func metadataOfALinkIsItsOwn() throws {
    try temporary.write("x", at: "f")
    let directory = try Directory.open(path: temporary.path)
    try directory.createLink("l", to: "f")
    let time = Timestamp(seconds: 5, nanoseconds: 7)
    let before = try directory.status("f")
    try directory.setModified(time, of: "l")
    #expect(try directory.status("l").modified == time)
    #expect(try directory.status("f").modified == before.modified)
    if Host.userID == 0 {
      try directory.setOwner(user: 77, group: 78, of: "l")
      #expect(try directory.status("l").user == 77)
      #expect(try directory.status("f").user == before.user)
    }
    try directory.setPermissions(0o604, of: "f")
    #expect(try directory.status("f").permissions == 0o604)
  }

  @Test func metadataOfTheDirectoryItselfCanBeSet() throws {
    let directory = try temporary.directory.makeDirectory("d")
    try directory.setPermissions(0o1777)
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 1)
    try directory.setModified(time)
    try directory.setOwner(user: Host.userID, group: Host.groupID)
    let status = try temporary.directory.status("d")
    #expect(status.permissions == 0o1777 && status.modified == time)
    try directory.sync()
    try directory.syncVolume()
  }

  @Test func filesAndEmptyDirectoriesAreRemoved() throws {
    try temporary.write("x", at: "d/f")
    let directory = try Directory.open(path: temporary.path)
    #expect(failure { try directory.remove("d") }?.number == EISDIR)
    #expect(failure { try directory.removeDirectory("d") }?.isExisting == true)
    let below = try directory.directory("d")
    #expect(failure { try below.removeDirectory("f") }?.number == ENOTDIR)
    try below.remove("f")
    try directory.removeDirectory("d")
    #expect(failure { try directory.remove("d") }?.isMissing == true)
    #expect(try directory.isEmpty())
  }
}
