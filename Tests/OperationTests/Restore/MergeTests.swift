import ArchiveStore
import Backup
import DeviceTransaction
import Restore
import SystemIO
import TestSupport
import Testing

/// Restores into a directory that is not empty.
@Suite(.spreadScans) struct MergeTests {
  let fixture: Fixture
  init() throws { fixture = try Fixture(inMemory: true) }

  private func write(_ text: String, _ path: ByteString, at seconds: Int64) throws {
    try fixture.directory.write(text, at: path)
    try fixture.setTime(path, seconds)
  }

  /// Each mode with a file that is missing, one that is older, one that is newer, one that is
  /// identical, and one that only looks identical.
  @Test(arguments: [
    (OverwriteMode.ifChanged, ["stored", "stored", "stored", "stored", "looked"]),
    (.ifNewer, ["stored", "stored", "newer", "stored", "looked"]),
    (.always, ["stored", "stored", "stored", "stored", "stored"]),
    (.never, ["stored", "older", "newer", "stored", "looked"]),
  ])
  func eachModeReplacesItsFiles(_ mode: OverwriteMode, _ expected: [String]) throws {
    let names: [ByteString] = ["missing", "older", "newer", "same", "looked"]
    for name in names { try write("stored", ByteString("tree").appending(name), at: 100) }
    let report = try fixture.backup()
    try write("older", "into/older", at: 50)
    try write("newer", "into/newer", at: 150)
    try write("stored", "into/same", at: 100)
    try write("looked", "into/looked", at: 100)
    try write("mine", "into/mine", at: 1)
    let same = try fixture.directory.directory.directory("into").status("same").identity
    let merged = try fixture.merge(report, into: "into", mode)
    #expect(merged.isComplete && merged.deleted.entries == 0)
    for (name, text) in zip(names, expected) {
      #expect(try fixture.text(ByteString("into").appending(name)) == text, "\(name)")
    }
    #expect(try fixture.text("into/mine") == "mine")
    let stays = try fixture.directory.directory.directory("into").status("same").identity == same
    #expect(stays == (mode != .always))
    #expect(try fixture.names("into").count == 6)
  }

  @Test func filesMissingFromTheSnapshotAreDeletedOnRequest() throws {
    try fixture.directory.write("a", at: "tree/a")
    try fixture.directory.write("b", at: "tree/sub/b")
    let report = try fixture.backup()
    try fixture.directory.write("changed", at: "into/a")
    try fixture.directory.write("gone", at: "into/sub/gone")
    try fixture.directory.write("gone", at: "into/more/deep/gone")
    let merged = try fixture.merge(report, into: "into", .ifChanged, deletes: true)
    #expect(merged.isComplete && merged.spared.isEmpty)
    #expect(merged.deleted.files == 2 && merged.deleted.directories == 2)
    #expect(try fixture.records("into") == fixture.records("tree"))
  }

  /// A directory in the place of a file, and vice versa: a directory with content is replaced only
  /// with `--delete`.
  @Test func entriesOfAnotherKindAreReplaced() throws {
    try fixture.directory.write("file", at: "tree/file")
    try fixture.directory.write("in", at: "tree/folder/in")
    try fixture.directory.write("other", at: "tree/empty")
    let report = try fixture.backup()
    try fixture.directory.write("mine", at: "into/file/mine")
    try fixture.directory.write("mine", at: "into/folder")
    _ = try Directory.make(path: fixture.directory.path("into/empty"))
    let careful = try fixture.merge(report, into: "into", .ifChanged)
    #expect(careful.failed.map(\.path) == ["file"])
    #expect(try fixture.text("into/file/mine") == "mine")
    #expect(try fixture.text("into/folder/in") == "in" && fixture.text("into/empty") == "other")
    let merged = try fixture.merge(report, into: "into", .ifChanged, deletes: true)
    #expect(merged.isComplete && merged.deleted.files == 1)
    #expect(try fixture.records("into") == fixture.records("tree"))
  }

  /// A link in the target to a directory elsewhere is replaced, and the directory to which it
  /// points is not changed.
  @Test func noLinkInTheTargetIsFollowed() throws {
    try fixture.directory.write("in", at: "tree/folder/in")
    let report = try fixture.backup()
    try fixture.directory.write("outside", at: "outside/in")
    try fixture.directory.write("outside", at: "outside/more")
    let into = try Directory.make(path: fixture.directory.path("into"))
    try into.createLink("folder", to: fixture.directory.path("outside"))
    try into.createLink("other", to: fixture.directory.path("outside"))
    #expect(try fixture.merge(report, into: "into", .always, deletes: true).isComplete)
    #expect(try fixture.records("into") == fixture.records("tree"))
    #expect(
      try fixture.text("outside/in") == "outside" && fixture.text("outside/more") == "outside")
  }

  @Test func protectedDirectoriesAreKept() throws {
    try fixture.directory.write("a", at: "tree/a")
    let report = try fixture.backup()
    try fixture.directory.write("precious", at: "into/above/kept/precious")
    try fixture.directory.write("gone", at: "into/gone")
    let kept = try Directory.open(path: fixture.directory.path("into/above/kept")).status().identity
    let merged = try fixture.merge(
      report, into: "into", .always, deletes: true, protected: [kept])
    #expect(merged.isComplete)
    #expect(merged.spared.map(\.path) == ["above"])
    #expect(try fixture.text("into/above/kept/precious") == "precious")
    #expect(try fixture.names("into") == ["a", "above"])
  }

  // MARK: - Hard links

  private func makeLinks() throws -> BackupReport {
    try fixture.directory.write([UInt8](repeating: 5, count: 100_000), at: "tree/b/second")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    let inner = try tree.directory("b")
    try tree.createHardLink("a-first", to: "second", in: inner)
    try inner.createHardLink("third", to: "second", in: inner)
    try tree.makeDirectory("c").createHardLink("fourth", to: "second", in: inner)
    return try fixture.backup()
  }

  /// If separate files are in the place of some names of a hard-linked file, they become one file
  /// again.
  @Test(arguments: [OverwriteMode.ifChanged, .always], ["a-first", "b/third", "c/fourth"])
  func hardLinksAreJoinedAgain(_ mode: OverwriteMode, _ alone: String) throws {
    let report = try makeLinks()
    try fixture.copy("tree", to: "into")
    let (wanted, path) = (try fixture.records("tree"), ByteString("into/" + alone))
    // A separate file that differs only in its inode.
    let bytes = try fixture.directory.read(path)
    let parts = path.components
    let above = try Directory.open(
      path: parts.dropLast().reduce(fixture.directory.path) { $0.appending($1) })
    let status = try above.status(parts[parts.count - 1])
    try above.remove(parts[parts.count - 1])
    try fixture.directory.write(bytes, at: path)
    try above.setModified(status.modified, of: parts[parts.count - 1])
    try above.setPermissions(status.permissions, of: parts[parts.count - 1])
    #expect(try fixture.records("into") != wanted)
    #expect(try fixture.merge(report, into: "into", mode).isComplete)
    #expect(try fixture.records("into") == wanted)
  }

  /// A missing name is linked to the existing file.
  @Test func aMissingHardLinkIsAddedToTheExistingFile() throws {
    let report = try makeLinks()
    try fixture.copy("tree", to: "into")
    let into = try Directory.open(path: fixture.directory.path("into"))
    let identity = try into.status("a-first").identity
    try into.removeTree("c")
    let merged = try fixture.merge(report, into: "into", .ifChanged)
    #expect(merged.isComplete && merged.restored.files == 1)
    #expect(try into.directory("c").status("fourth").identity == identity)
    #expect(try fixture.records("into") == fixture.records("tree"))
  }

  /// If the first name of a file is not restored, the next restored name gets the content.
  @Test func someNamesOfAFileAreRestoredAsOneFile() throws {
    let report = try makeLinks()
    #expect(try fixture.restore(report, "folders/tree/b", to: "part").isComplete)
    let part = try Directory.open(path: fixture.directory.path("part"))
    #expect(try part.status("second").links == 2)
    #expect(try part.status("second").identity == part.status("third").identity)
    #expect(try fixture.directory.read("part/third") == fixture.directory.read("tree/a-first"))
    #expect(try fixture.restore(report, "folders/tree/c/fourth", to: "one").isComplete)
    #expect(try fixture.directory.read("one") == fixture.directory.read("tree/a-first"))
    #expect(try fixture.directory.directory.status("one").links == 1)
    // Also into a directory with another file of that name.
    try fixture.directory.write("other", at: "into/third")
    #expect(try fixture.merge(report, "folders/tree/b", into: "into", .always).isComplete)
    #expect(try fixture.records("into") == fixture.records("part"))
  }

  // MARK: - File systems

  /// A read-only subvolume does not prevent the restore of other entries.
  @Test func aReadOnlySubvolumeIsReported() throws {
    guard Mount.isPermitted(new: "btrfs") else { return }
    for path: ByteString in ["a", "sub/b", "sub/more/c", "z"] {
      try fixture.directory.write("stored", at: ByteString("tree").appending(path))
    }
    let report = try fixture.backup()
    let volume = try Mount(new: "btrfs", mebibytes: 310, in: fixture.directory, "volume")
    defer { withExtendedLifetime(volume) {} }
    _ = try Directory.make(path: fixture.directory.path("volume/into"))
    let subvolume = fixture.directory.string + "/volume/into/sub"
    let made = try Program.run("btrfs", ["subvolume", "create", subvolume])
    try #require(made.code == 0, "\(made.errors)")
    try fixture.directory.write("present", at: "volume/into/sub/b")
    let closed = try Program.run("btrfs", ["property", "set", subvolume, "ro", "true"])
    try #require(closed.code == 0, "\(closed.errors)")
    let merged = try fixture.merge(report, into: "volume/into", .always)
    let failed = Set(merged.failed.map(\.path))
    #expect(failed.isSuperset(of: ["sub/b", "sub/more"]), "\(merged.failed)")
    #expect(failed.allSatisfy { $0.isWithin("sub") }, "\(merged.failed)")
    for name: ByteString in ["a", "z"] {
      #expect(try fixture.text(ByteString("volume/into").appending(name)) == "stored")
    }
    #expect(try fixture.text("volume/into/sub/b") == "present")
    #expect(try fixture.names("volume/into").sorted() == ["a", "sub", "z"])
  }

  /// A file system with small inodes stores times in whole seconds, and none after 2038, without an
  /// error.
  @Test func timesThatAFileSystemChangesAreCounted() throws {
    guard Mount.isPermitted(new: "ext3") else { return }
    for name in ["exact", "late", "odd"] { try write("stored", ByteString("tree/\(name)"), at: 5) }
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.setModified(Timestamp(seconds: 1_000_000_000, nanoseconds: 5), of: "odd")
    try tree.setModified(Timestamp(seconds: 2_840_140_800), of: "late")
    try fixture.setTime("tree", 7)
    let report = try fixture.backup()
    let volume = try Mount(new: "ext3", mebibytes: 310, in: fixture.directory, "volume")
    defer { withExtendedLifetime(volume) {} }
    for (place, times) in [("volume/into", 2), ("into", nil)] as [(ByteString, Int?)] {
      _ = try Directory.make(path: fixture.directory.path(place))
      let merged = try fixture.merge(report, into: place, .always)
      #expect(merged.isComplete && merged.unkept?.times == times, "\(place): \(merged)")
      #expect(merged.unkept?.modes ?? 0 == 0)
    }
  }

  // MARK: - Unlistable directories

  /// Each listing of the target fails in turn: the content of that directory is kept, and the
  /// report names it; everything else is done.
  @Test func anUnlistableDirectoryLosesNothing() throws {
    try fixture.directory.write("a", at: "tree/a")
    for name in ["x", "y"] { try fixture.directory.write("b", at: ByteString("tree/\(name)/b")) }
    _ = try Directory.make(path: fixture.directory.path("tree/bare"))
    let report = try fixture.backup()
    let extras: [ByteString] = ["gone", "x/gone", "y/gone", "bare/gone", "more/deep/gone"]
    var failures = 0
    for call in 1... {
      try? fixture.directory.directory.removeTree("into")
      try fixture.copy("tree", to: "into")
      for extra in extras {
        try fixture.directory.write("extra", at: ByteString("into").appending(extra))
      }
      let reader = try fixture.repository.beginReading()
      let snapshot = try #require(report.snapshot)
      let request = RestoreRequest(
        path: "folders/tree", target: fixture.directory.path("into"), overwrite: .ifChanged,
        deletes: true)
      let faults = Faults.Plan(failing: [.list], at: call, number: 5)
      let merged: RestoreReport
      do {
        merged = try Faults.inject(faults) {
          let plan = try RestorePlan.make(snapshot, request, from: reader)
          return try RestoreOperation(plan, from: reader).run()
        }
      } catch {
        // Only a failure in the target directory itself ends the restore, before anything is
        // changed.
        #expect("\(error)".contains("into"), "\(error)")
        failures += 1
        continue
      }
      let left = try extras.filter {
        try fixture.directory.directory.statusIfPresent(ByteString("into").appending($0)) != nil
      }
      #expect(merged.isComplete == left.isEmpty, "call \(call): \(left), \(merged.failed)")
      #expect(merged.deleted.files == extras.count - left.count, "call \(call)")
      for path in left {
        #expect(
          merged.failed.contains { path.isWithin($0.path) || $0.path == "." }, "call \(call)")
      }
      #expect(try fixture.text("into/a") == "a" && fixture.text("into/x/b") == "b", "call \(call)")
      if !faults.hasFired { break }
      if !left.isEmpty { failures += 1 }
    }
    #expect(failures >= 6, "\(failures)")
  }
}
