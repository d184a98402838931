import ArchiveStore
import Backup
import DeviceScan
import DeviceTransaction
import Restore
import SystemIO
import TestSupport
import Testing

@testable import Backup
@testable import DeviceScan

/// Rare metadata: flags, inherited access control lists, devices, foreign owners. Each test needs a
/// file system or privileges that support it, and prints a message if they are missing.
@Suite(.spreadScans) struct OddEntryTests {
  let fixture: Fixture

  // On a disk: a file system in memory supports few flags.
  init() throws { fixture = try Fixture() }

  private func tree() throws -> Directory {
    try Directory.open(path: fixture.directory.path("tree"))
  }

  private static let (immutable, appendOnly, noDump, noAccessTimes):
    (UInt32, UInt32, UInt32, UInt32) =
      (0x10, 0x20, 0x40, 0x80)

  private func skip(_ what: String, _ error: any Error) { print("skipped: \(what): \(error)") }

  /// Sets the flags of entries below a directory; clearing them allows the directory to be removed.
  private func setFlags(_ flags: [(ByteString, UInt32)], below name: ByteString) throws {
    let top = try Directory.open(path: fixture.directory.path(name))
    for (path, flags) in flags { try top.file(path).setFlags(flags) }
  }

  private func expectBack(_ what: String) throws {
    let report = try fixture.backup()
    #expect(report.isComplete && report.warnings.isEmpty, "\(what): \(report.warnings)")
    #expect(try fixture.restore(report).isComplete, "\(what)")
    #expect(try fixture.records("back") == fixture.records("tree"), "\(what)")
    // Then into an existing directory.
    _ = try Directory.make(path: fixture.directory.path("into"))
    try fixture.directory.write("mine", at: "into/mine")
    #expect(try fixture.merge(report, into: "into", .always, deletes: true).isComplete, "\(what)")
    #expect(try fixture.records("into") == fixture.records("tree"), "\(what)")
  }

  @Test func flagsAreRestored() throws {
    var flags: [(ByteString, UInt32)] = [
      ("a", Self.noDump), ("b", Self.noDump | Self.noAccessTimes),
    ]
    if Host.userID == 0 { flags += [("c", Self.immutable), ("d", Self.appendOnly)] }
    for (path, _) in flags {
      try fixture.directory.write("text", at: ByteString("tree").appending(path))
    }
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
    #expect(try fixture.records("tree")["a"]?.flags == Self.noDump)
    try expectBack("flags")
  }

  /// A file or directory that differs only in its flags has changed, whether it has other flags,
  /// too few or too many.
  @Test func differingFlagsAreRestored() throws {
    let stored: [(ByteString, UInt32)] = [
      ("file", Self.noDump), ("folder", Self.noDump), ("plain", 0), ("open", 0), ("same", 0x40),
    ]
    let present: [(ByteString, UInt32)] = [
      ("file", 0), ("folder", Self.noAccessTimes), ("plain", Self.noDump), ("open", Self.noDump),
    ]
    for name: ByteString in ["file", "folder/in it", "plain", "open/in it", "same"] {
      try fixture.directory.write("text", at: ByteString("tree").appending(name))
    }
    try setTimes(["file", "folder", "plain", "open", "same"], below: "tree")
    do {
      try setFlags(stored, below: "tree")
    } catch {
      return skip("flags", error)
    }
    let report = try fixture.backup()
    try fixture.copy("tree", to: "into")
    try setFlags(present + [("same", 0x40)], below: "into")
    let file = try fixture.directory.directory.directory("into").status("same").identity
    let plan = try fixture.plan(report, into: "into", .ifChanged)
    #expect(plan.replaces.entries == 4, "\(plan.replaces)")
    #expect(try fixture.merge(report, into: "into", .ifChanged).isComplete)
    #expect(try fixture.records("into") == fixture.records("tree"))
    #expect(try fixture.directory.directory.directory("into").status("same").identity == file)
    #expect(try fixture.plan(report, into: "into", .ifChanged).replaces.entries == 0)
  }

  private func setTimes(_ names: [ByteString], below top: ByteString) throws {
    for name in names { try fixture.setTime(top.appending(name), 5) }
  }

  /// Restored entries do not inherit the flags of the target directory.
  @Test func flagsOfTheTargetAreNotInherited() throws {
    try fixture.directory.write("text", at: "tree/folder/file")
    let report = try fixture.backup()
    do {
      _ = try Directory.make(path: fixture.directory.path("into"))
      try setFlags([("into", Self.noDump | Self.noAccessTimes)], below: "")
    } catch {
      return skip("flags", error)
    }
    #expect(try fixture.merge(report, into: "into", .ifChanged).isComplete)
    #expect(try fixture.records("into") == fixture.records("tree"))
  }

  /// Each single property in which an existing file can differ from the stored one.
  @Test(arguments: [
    "chmod 600", "chown 12345", "chgrp 12345", "setfattr -n user.more -v x",
    "setfattr -x user.mark", "setfattr -n user.mark -v other", "touch -d @1000000006",
    "setfattr -n system.posix_acl_access -v \(Self.accessList)", "chmod u+s",
  ]) func eachDifferenceIsRestored(_ change: String) throws {
    if Host.userID != 0, change.hasPrefix("ch"), change.contains("12345") { return }
    for name: ByteString in ["tree/file", "tree/folder/other"] {
      try fixture.directory.write("text", at: name)
    }
    try shell("setfattr -n user.mark -v mark tree/file tree/folder")
    try setTimes(["file", "folder"], below: "tree")
    let report = try fixture.backup()
    for name in ["file", "folder"] {
      try fixture.copy("tree", to: "into")
      try shell("\(change) into/\(name)")
      if !change.hasPrefix("touch") { try setTimes([ByteString(name)], below: "into") }
      #expect(try fixture.records("into") != fixture.records("tree"), "\(change) of a \(name)")
      let plan = try fixture.plan(report, into: "into", .ifChanged)
      #expect(plan.replaces.entries == 1, "\(change) of a \(name)")
      #expect(try fixture.merge(report, into: "into", .ifChanged).isComplete)
      #expect(try fixture.records("into") == fixture.records("tree"), "\(change) of a \(name)")
      try fixture.directory.directory.removeTree("into")
    }
  }

  /// `u::rwx,u:1234:r-x,g::r-x,m::r-x,o::---`, in the encoding of setfattr(1).
  private static let accessList = "0sAgAAAAEABwD/////AgAFANIEAAAEAAUA/////xAABQD/////IAAAAP////8="

  /// Sizes whose sum exceeds 64 bits, and the earliest and latest times of file systems.
  @Test func theLargestSizesAndTimesAreRestored() throws {
    let fixture = try Fixture(inMemory: true)
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    for name: ByteString in ["a", "b", "c"] {
      do {
        let file = try tree.create(name, permissions: 0o644)
        try file.truncate(to: UInt64(Int64.max))
      } catch { return skip("files of 8 EiB", error) }
    }
    for (name, seconds) in [("first", Int64.min), ("last", .max)] {
      try fixture.directory.write(name, at: ByteString("tree/\(name)"))
      try tree.setModified(Timestamp(seconds: seconds), of: ByteString(name))
    }
    let found = { () throws in
      try ["a", "b", "c", "first", "last"].map { name in try tree.status(ByteString(name)) }
    }
    let report = try fixture.backup()
    #expect(report.isComplete && report.bytes == .max, "\(report.warnings) \(report.bytes)")
    #expect(try fixture.restore(report).isComplete)
    let back = try Directory.open(path: fixture.directory.path("back"))
    for (name, wanted) in zip(["a", "b", "c", "first", "last"], try found()) {
      let status = try back.status(ByteString(name))
      #expect(status.size == wanted.size && status.modified == wanted.modified, "\(name)")
    }
  }

  private func shell(_ command: String) throws {
    let outcome = try Program.run("/bin/sh", ["-c", command], in: fixture.directory.url)
    if outcome.code != 0 { throw Program.Failure(description: outcome.errors) }
  }

  /// An immutable file in the target is reported and kept; everything else is restored.
  @Test func anImmutableFileInTheTargetIsReported() throws {
    for name: ByteString in ["tree/a", "tree/b", "tree/c"] {
      try fixture.directory.write("stored", at: name)
    }
    let report = try fixture.backup()
    for name: ByteString in ["into/a", "into/b", "into/extra"] {
      try fixture.directory.write("mine", at: name)
    }
    let fixed: [(ByteString, UInt32)] = [("b", Self.immutable), ("extra", Self.immutable)]
    do {
      try setFlags(fixed, below: "into")
    } catch {
      return skip("immutable files", error)
    }
    defer { try? setFlags(fixed.map { ($0.0, 0) }, below: "into") }
    let merged = try fixture.merge(report, into: "into", .always, deletes: true)
    #expect(merged.failed.map(\.path).sorted() == [".", "b"], "\(merged.failed)")
    #expect(merged.failed.contains { $0.remark.contains("cannot remove 'extra': not permitted") })
    #expect(merged.deleted.entries == 0)
    #expect(try fixture.text("into/a") == "stored" && fixture.text("into/c") == "stored")
    #expect(try fixture.text("into/b") == "mine" && fixture.text("into/extra") == "mine")
    #expect(try fixture.names("into") == ["a", "b", "c", "extra"])
  }

  /// btrfs ignores the flag for a file that already has content.
  @Test func filesWithoutCopyOnWriteAreRestored() throws {
    guard Mount.isPermitted(new: "btrfs") else { return }
    try fixture.directory.directory.removeDirectory("tree")
    let mount = try Mount(new: "btrfs", mebibytes: 310, in: fixture.directory, "tree")
    let sizes: [ByteString: Int] = ["empty": 0, "small": 10, "large": 9_000_000]
    for (name, size) in sizes {
      let file = try tree().create(name)
      try file.setFlags(FileFlags.noCopyOnWrite)
      try file.write([UInt8](repeating: 1, count: size))
    }
    #expect(try fixture.restore(fixture.backup(), to: "tree/back").isComplete)
    let back = try tree().directory("back")
    for name in sizes.keys {
      #expect(try back.file(name).flags() == FileFlags.noCopyOnWrite, "\(name)")
    }
    withExtendedLifetime(mount) {}
  }

  @Test func accessControlListsAreRestored() throws {
    let list: [UInt8] = [
      2, 0, 0, 0, 1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 5, 0, 0xd2, 4, 0, 0,
      4, 0, 5, 0, 0xff, 0xff, 0xff, 0xff, 0x10, 0, 5, 0, 0xff, 0xff, 0xff, 0xff,
      0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    ]
    try fixture.directory.write("before", at: "tree/folder/before")
    let tree = try tree()
    do {
      try tree.attributes(of: "folder").set("system.posix_acl_default", to: list)
      try tree.attributes(of: "folder").set("system.posix_acl_access", to: list)
    } catch {
      return skip("lists of access", error)
    }
    // Entries created in the directory have their own lists.
    try fixture.directory.write("after", at: "tree/folder/after")
    try fixture.directory.write("deeper", at: "tree/folder/deeper/file")
    let records = try fixture.records("tree")
    #expect(records["folder"]?.attributes["system.posix_acl_default"] == list)
    #expect(records["folder/after"]?.attributes["system.posix_acl_access"] != nil)
    #expect(records["folder/before"]?.attributes.isEmpty == true)
    try expectBack("lists of access")
  }

  @Test func specialFilesAndOwnersAreRestored() throws {
    let tree = try tree()
    try tree.createSpecial("fifo", kind: .fifo, permissions: 0o640)
    try tree.createSpecial("socket", kind: .socket, permissions: 0o755)
    try tree.createLink("link", to: "nowhere")
    if Host.userID == 0 {
      for name: ByteString in ["fifo", "link"] {
        try tree.setOwner(user: 1234, group: 4321, of: name)
      }
      try fixture.directory.write("theirs", at: "tree/folder/theirs")
      try tree.directory("folder").setOwner(user: 4000, group: 5000, of: "theirs")
      try tree.setOwner(user: 4000, group: 5000, of: "folder")
      do {
        try tree.createSpecial("null", kind: .characterDevice, permissions: 0o666, device: 0x103)
        try tree.createSpecial("disk", kind: .blockDevice, permissions: 0o660, device: 0x801)
      } catch {
        skip("devices", error)
      }
    }
    let records = try fixture.records("tree")
    if let null = records["null"] { #expect(null.device == 0x103) }
    try expectBack("special files")
  }

  /// A tree deeper than the limit of open files, with paths longer than the kernel accepts.
  @Test func aDeepPathIsRestored() throws {
    var directory = try tree()
    let name = ByteString([UInt8](repeating: 0x78, count: 60))
    for _ in 0..<200 { directory = try directory.makeDirectory(name) }
    try directory.create("bottom").write([1, 2, 3])
    #expect(try fixture.records("tree").count == 201)
    try expectBack("a deep path")
  }

  /// Directories that no snapshot can contain are reported, and all others are restored. The limit
  /// is either their depth or the length of their paths; `make test` tests one of the two.
  @Test(arguments: Sampling.some(of: [(1, 4_100, 4_093), (250, 300, 260)], 2, "deep directories"))
  func directoriesThatAreTooDeepAreReported(_ length: Int, _ levels: Int, _ held: Int) throws {
    var directory = try tree()
    let name = ByteString([UInt8](repeating: UInt8(ascii: "d"), count: length))
    for level in 1...levels {
      directory = try directory.makeDirectory(name)
      if level > held - 10 { try directory.create("f").write([1]) }
    }
    let report = try fixture.backup()
    let unreadable = report.unreadable.map(\.path)
    // The path includes the two directories above the tree.
    #expect(unreadable.map(\.components.count) == [held + 3])
    #expect(report.unreadable.first?.remark.contains("no snapshot can hold it") == true)
    let back = try fixture.restore(report)
    #expect(back.isComplete && back.restored.files == 10)
    let check = RepositoryCheck(fixture.repository, reading: .everything, workers: 2)
    let checked = try check.run().forEachFinding { _ in }
    #expect(checked.damaged == 0)
  }

  /// A file system mounted in the tree is not entered: the snapshot has an empty directory, and a
  /// note.
  @Test func aMountedVolumeIsNotEntered() throws {
    try fixture.directory.write("near", at: "tree/near")
    guard try Mount.isPermitted() else { return }
    let mount = try Mount(on: tree(), at: fixture.directory.path("tree"), "disk")
    try fixture.directory.write("far", at: "tree/disk/far/file")
    let report = try fixture.backup()
    #expect(report.snapshot?.snapshot.mounts == ["folders/tree/disk"])
    let back = try fixture.restore(report)
    #expect(back.isComplete)
    #expect(try fixture.records("back").keys.sorted() == ["disk", "near"])
    #expect(try fixture.names("back/disk").isEmpty)
    withExtendedLifetime(mount) {}
  }

  /// A mount point that the user asked to include is stored like any directory, with any number of
  /// threads.
  @Test(arguments: [1, 4]) func aMountedVolumeIsEnteredOnRequest(workers: Int) throws {
    guard try Mount.isPermitted() else { return }
    let mount = try Mount(on: tree(), at: fixture.directory.path("tree"), "disk")
    try fixture.directory.write("far", at: "tree/disk/far/file")
    try fixture.directory.write("near", at: "tree/near")
    let inner = try Mount(
      on: Directory.open(path: fixture.directory.path("tree/disk")),
      at: fixture.directory.path("tree/disk"), "inner"
    )
    try fixture.directory.write("farther", at: "tree/disk/inner/file")
    var options = ScanOptions()
    (options.crossesMounts, options.workers) = (true, workers)
    let scan = try fixture.scan(options: options)
    #expect(scan.containers.flatMap(\.crossedMounts).sorted() == ["disk", "disk/inner"])
    let report = try fixture.backup(scan)
    #expect(report.isComplete && report.snapshot?.snapshot.mounts == [])
    #expect(try fixture.restore(report).isComplete)
    #expect(try fixture.text("back/disk/inner/file") == "farther")
    #expect(try fixture.records("back") == fixture.records("tree"))
    withExtendedLifetime((mount, inner)) {}
  }

  /// The repository is also excluded from the backup if it is on a mounted volume.
  @Test func exclusionsApplyOnAMountedVolume() throws {
    guard try Mount.isPermitted() else { return }
    let mount = try Mount(on: tree(), at: fixture.directory.path("tree"), "disk")
    try fixture.directory.write("far", at: "tree/disk/far/file")
    let disk = try Directory.open(path: fixture.directory.path("tree/disk"))
    var options = ScanOptions(excluded: [try disk.status().identity])
    options.crossesMounts = true
    let report = try fixture.backup(fixture.scan(options: options))
    #expect(try fixture.restore(report).isComplete)
    #expect(try fixture.names("back").isEmpty)
    withExtendedLifetime(mount) {}
  }

  /// A store through a mapping does not update the times of a file in memory, so such files are
  /// read each time.
  @Test(arguments: [VolumeTimes?.none, .exact]) func aFileInMemoryIsReadAgain(times: VolumeTimes?)
    throws
  {
    guard try Mount.isPermitted() else { return }
    let mount = try Mount(inMemory: "size=16m", on: fixture.directory.path("tree"))
    try fixture.directory.write("one", at: "tree/file")
    for isFirst in [true, false] {
      let counters = ProgressCounters()
      let report = try fixture.backup(keeping: "cache") { request in
        (request.counters, request.times) = (counters, times)
      }
      #expect(report.isComplete)
      #expect(counters.progress.opened == (isFirst || times == nil ? 1 : 0))
    }
    withExtendedLifetime(mount) {}
  }
}
