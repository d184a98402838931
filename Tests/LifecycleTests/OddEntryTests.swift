import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// What few trees have: flags, lists of access that folders hand on, devices, foreign owners. Each
/// part needs a file system or privileges that have it, and says where they lack.
@Suite struct OddEntryTests {
  let rig: Rig

  // On a disk: a file system in memory has few of the flags.
  init() throws { rig = try Rig() }

  private func tree() throws -> Folder { try Folder.open(path: rig.folder.path("tree")) }

  private static let (immutable, appendOnly, noDump, noAccessTimes):
    (UInt32, UInt32, UInt32, UInt32) =
      (0x10, 0x20, 0x40, 0x80)

  private func skip(_ what: String, _ error: any Error) { print("skipped: \(what): \(error)") }

  /// Sets flags of what is below a folder; none so that it can be removed again.
  private func setFlags(_ flags: [(ByteString, UInt32)], below name: ByteString) throws {
    let top = try Folder.open(path: rig.folder.path(name))
    for (path, flags) in flags { try top.file(path).setFlags(flags) }
  }

  private func expectBack(_ what: String) throws {
    let report = try rig.backup()
    #expect(report.isComplete && report.warnings.isEmpty, "\(what): \(report.warnings)")
    #expect(try rig.restore(report).isComplete, "\(what)")
    #expect(try rig.records("back") == rig.records("tree"), "\(what)")
    // And into a folder that is there.
    _ = try Folder.make(path: rig.folder.path("into"))
    try rig.folder.write("mine", at: "into/mine")
    #expect(try rig.merge(report, into: "into", .always, deletes: true).isComplete, "\(what)")
    #expect(try rig.records("into") == rig.records("tree"), "\(what)")
  }

  @Test func flagsComeBack() throws {
    var flags: [(ByteString, UInt32)] = [
      ("a", Self.noDump), ("b", Self.noDump | Self.noAccessTimes),
    ]
    if Host.userID == 0 { flags += [("c", Self.immutable), ("d", Self.appendOnly)] }
    for (path, _) in flags { try rig.folder.write("text", at: ByteString("tree").appending(path)) }
    do {
      try setFlags(flags, below: "tree")
    } catch {
      return skip("flags", error)
    }
    defer {
      for name: ByteString in ["tree", "back", "into"] {
        try? setFlags(flags.map { ($0.0, 0) }, below: name)
      }
    }
    #expect(try rig.records("tree")["a"]?.flags == Self.noDump)
    try expectBack("flags")
  }

  /// What may not be changed in the target is named, and stays; all else is restored.
  @Test func whatIsImmutableInTheTargetIsNamed() throws {
    for name: ByteString in ["tree/a", "tree/b", "tree/c"] {
      try rig.folder.write("stored", at: name)
    }
    let report = try rig.backup()
    for name: ByteString in ["into/a", "into/b", "into/extra"] {
      try rig.folder.write("mine", at: name)
    }
    let fixed: [(ByteString, UInt32)] = [("b", Self.immutable), ("extra", Self.immutable)]
    do {
      try setFlags(fixed, below: "into")
    } catch {
      return skip("immutable files", error)
    }
    defer { try? setFlags(fixed.map { ($0.0, 0) }, below: "into") }
    let merged = try rig.merge(report, into: "into", .always, deletes: true)
    #expect(merged.failed.map(\.path).sorted() == [".", "b"], "\(merged.failed)")
    #expect(merged.failed.contains { $0.remark.contains("cannot remove 'extra': not permitted") })
    #expect(merged.deleted.entries == 0)
    #expect(try rig.text("into/a") == "stored" && rig.text("into/c") == "stored")
    #expect(try rig.text("into/b") == "mine" && rig.text("into/extra") == "mine")
    #expect(try rig.names("into") == ["a", "b", "c", "extra"])
  }

  @Test func listsOfAccessComeBack() throws {
    let list: [UInt8] = [
      2, 0, 0, 0, 1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 5, 0, 0xd2, 4, 0, 0,
      4, 0, 5, 0, 0xff, 0xff, 0xff, 0xff, 0x10, 0, 5, 0, 0xff, 0xff, 0xff, 0xff,
      0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    ]
    try rig.folder.write("before", at: "tree/folder/before")
    let tree = try tree()
    do {
      try tree.attributes(of: "folder").set("system.posix_acl_default", to: list)
      try tree.attributes(of: "folder").set("system.posix_acl_access", to: list)
    } catch {
      return skip("lists of access", error)
    }
    // What is made in it has a list of its own.
    try rig.folder.write("after", at: "tree/folder/after")
    try rig.folder.write("deeper", at: "tree/folder/deeper/file")
    let records = try rig.records("tree")
    #expect(records["folder"]?.attributes["system.posix_acl_default"] == list)
    #expect(records["folder/after"]?.attributes["system.posix_acl_access"] != nil)
    #expect(records["folder/before"]?.attributes.isEmpty == true)
    try expectBack("lists of access")
  }

  @Test func specialFilesAndOwnersComeBack() throws {
    let tree = try tree()
    try tree.createSpecial("fifo", kind: .fifo, permissions: 0o640)
    try tree.createSpecial("socket", kind: .socket, permissions: 0o755)
    try tree.createLink("link", to: "nowhere")
    if Host.userID == 0 {
      for name: ByteString in ["fifo", "link"] {
        try tree.setOwner(user: 1234, group: 4321, of: name)
      }
      try rig.folder.write("theirs", at: "tree/folder/theirs")
      try tree.folder("folder").setOwner(user: 4000, group: 5000, of: "theirs")
      try tree.setOwner(user: 4000, group: 5000, of: "folder")
      do {
        try tree.createSpecial("null", kind: .characterDevice, permissions: 0o666, device: 0x103)
        try tree.createSpecial("disk", kind: .blockDevice, permissions: 0o660, device: 0x801)
      } catch {
        skip("devices", error)
      }
    }
    let records = try rig.records("tree")
    if let null = records["null"] { #expect(null.device == 0x103) }
    try expectBack("special files")
  }

  /// Deeper than a program may have files open, with paths longer than the kernel takes.
  @Test func aDeepPathComesBack() throws {
    var folder = try tree()
    let name = ByteString([UInt8](repeating: 0x78, count: 60))
    for _ in 0..<200 { folder = try folder.makeFolder(name) }
    try folder.create("bottom").write([1, 2, 3])
    #expect(try rig.records("tree").count == 201)
    try expectBack("a deep path")
  }
}
