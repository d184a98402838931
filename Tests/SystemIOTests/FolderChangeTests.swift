import Glibc
import SystemIO
import TestSupport
import Testing

@Suite struct FolderChangeTests {
  let temporary: TemporaryFolder
  init() throws { temporary = try TemporaryFolder("change") }

  @Test func createRefusesWhatIsThere() throws {
    let folder = try Folder.open(path: temporary.path)
    _ = try folder.create("f", permissions: 0o600)
    let error = failure { _ = try folder.create("f") }
    #expect(error?.isExisting == true)
    #expect(error?.operation == .create)
    #expect(try folder.status("f").permissions == 0o600)
    try folder.createFolder("d", permissions: 0o700)
    #expect(failure { try folder.createFolder("d") }?.isExisting == true)
    #expect(try folder.makeFolder("d").names() == [])
    #expect(try folder.status("d").permissions == 0o700)
  }

  @Test func openOrCreateKeepsWhatIsThere() throws {
    try temporary.write("kept", at: "f")
    let file = try temporary.folder.openOrCreate("f")
    #expect(try file.read(count: 9, at: 0) == Array("kept".utf8))
    let new = try temporary.folder.openOrCreate("new", permissions: 0o640)
    #expect(try new.status().permissions == 0o640)
  }

  @Test func renameWithAndWithoutReplacing() throws {
    try temporary.write("one", at: "a")
    try temporary.write("two", at: "b")
    let folder = try Folder.open(path: temporary.path)
    let error = failure { try folder.rename("a", to: "b", in: folder, replacing: false) }
    #expect(error?.number == EEXIST)
    #expect(error?.operation == .rename)
    #expect(try temporary.read("a") == Array("one".utf8))
    #expect(try temporary.read("b") == Array("two".utf8))
    try folder.rename("a", to: "b", in: folder)
    #expect(try folder.names() == ["b"])
    #expect(try temporary.read("b") == Array("one".utf8))
    try folder.rename("b", to: "c", in: folder, replacing: false)
    let other = try folder.makeFolder("d")
    try folder.rename("c", to: "moved", in: other)
    #expect(try other.names() == ["moved"])
    #expect(failure { try folder.rename("none", to: "x", in: folder) }?.isMissing == true)
    try temporary.write("in the way", at: "e/f")
    #expect(failure { try folder.rename("d", to: "e", in: folder) }?.isExisting == true)
  }

  @Test func linksKeepTheirTargetsBytes() throws {
    let folder = try Folder.open(path: temporary.path)
    let target = ByteString([0x2f, 0xff, 0x0a, 0x2e, 0x2e])
    try folder.createLink("l", to: target)
    #expect(try folder.target(of: "l") == target)
    let long = ByteString(repeatElement(UInt8(ascii: "x"), count: 4095))
    try folder.createLink("long", to: long)
    #expect(try folder.target(of: "long") == long)
    #expect(failure { try folder.createLink("l", to: "other") }?.isExisting == true)
    #expect(failure { _ = try folder.target(of: "none") }?.isMissing == true)
    try temporary.write("x", at: "f")
    #expect(failure { _ = try folder.target(of: "f") }?.number == EINVAL)
  }

  @Test func hardLinksAreTheSameFile() throws {
    try temporary.write("x", at: "a")
    let folder = try Folder.open(path: temporary.path)
    let other = try folder.makeFolder("d")
    try other.createHardLink("b", to: "a", in: folder)
    #expect(try other.status("b").identity == folder.status("a").identity)
    #expect(try folder.status("a").links == 2)
    #expect(failure { try other.createHardLink("b", to: "a", in: folder) }?.isExisting == true)
    try folder.createLink("l", to: "a")
    // A link's own other name, not its target's.
    try other.createHardLink("l2", to: "l", in: folder)
    #expect(try other.status("l2").kind == .symlink)
  }

  @Test(arguments: [FileKind.fifo, .socket, .characterDevice, .blockDevice])
  func specials(kind: FileKind) throws {
    let folder = try Folder.open(path: temporary.path)
    let device: UInt64 = kind == .fifo || kind == .socket ? 0 : 0x103
    let error = failure {
      try folder.createSpecial("s", kind: kind, permissions: 0o600, device: device)
    }
    guard error == nil else {
      #expect(error?.number == EPERM, "devices need privileges, and only they")
      #expect(device != 0)
      return
    }
    let status = try folder.status("s")
    #expect(status.kind == kind && status.specialDevice == device && status.permissions == 0o600)
  }

  @Test(arguments: [FileKind.file, .directory, .symlink])
  func whatIsNoSpecialIsRefused(kind: FileKind) throws {
    let error = failure {
      try temporary.folder.createSpecial("s", kind: kind, permissions: 0o600)
    }
    #expect(error?.number == EINVAL && error?.operation == .createSpecial)
    #expect(try temporary.folder.names() == [])
  }

  @Test func metadataOfChildrenIsALinksOwn() throws {
    try temporary.write("x", at: "f")
    let folder = try Folder.open(path: temporary.path)
    try folder.createLink("l", to: "f")
    let time = Timestamp(seconds: 5, nanoseconds: 7)
    let before = try folder.status("f")
    try folder.setModified(time, of: "l")
    #expect(try folder.status("l").modified == time)
    #expect(try folder.status("f").modified == before.modified)
    if Host.userID == 0 {
      try folder.setOwner(user: 77, group: 78, of: "l")
      #expect(try folder.status("l").user == 77)
      #expect(try folder.status("f").user == before.user)
    }
    try folder.setPermissions(0o604, of: "f")
    #expect(try folder.status("f").permissions == 0o604)
  }

  @Test func metadataOfTheFolderItself() throws {
    let folder = try temporary.folder.makeFolder("d")
    try folder.setPermissions(0o1777)
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 1)
    try folder.setModified(time)
    try folder.setOwner(user: Host.userID, group: Host.groupID)
    let status = try temporary.folder.status("d")
    #expect(status.permissions == 0o1777 && status.modified == time)
    try folder.sync()
    try folder.syncVolume()
  }

  @Test func removing() throws {
    try temporary.write("x", at: "d/f")
    let folder = try Folder.open(path: temporary.path)
    #expect(failure { try folder.remove("d") }?.number == EISDIR)
    #expect(failure { try folder.removeFolder("d") }?.isExisting == true)
    let below = try folder.folder("d")
    #expect(failure { try below.removeFolder("f") }?.number == ENOTDIR)
    try below.remove("f")
    try folder.removeFolder("d")
    #expect(failure { try folder.remove("d") }?.isMissing == true)
    #expect(try folder.isEmpty())
  }
}
