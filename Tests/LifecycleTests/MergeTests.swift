import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// Restores into a directory that holds something.
@Suite(.spreadScans) struct MergeTests {
  let rig: Fixture
  init() throws { rig = try Fixture(inMemory: true) }

  private func write(_ text: String, _ path: ByteString, at seconds: Int64) throws {
    try rig.directory.write(text, at: path)
    try rig.setTime(path, seconds)
  }

  /// Each mode with a file that is missing, one that is older, one that is newer, one that is the
  /// same, and one that only looks the same.
  @Test(arguments: [
    (OverwriteMode.ifChanged, ["stored", "stored", "stored", "stored", "looked"]),
    (.ifNewer, ["stored", "stored", "newer", "stored", "looked"]),
    (.always, ["stored", "stored", "stored", "stored", "stored"]),
    (.never, ["stored", "older", "newer", "stored", "looked"]),
  ])
  func aModeSaysWhatGivesWay(_ mode: OverwriteMode, _ expected: [String]) throws {
    let names: [ByteString] = ["missing", "older", "newer", "same", "looked"]
    for name in names { try write("stored", ByteString("tree").appending(name), at: 100) }
    let report = try rig.backup()
    try write("older", "into/older", at: 50)
    try write("newer", "into/newer", at: 150)
    try write("stored", "into/same", at: 100)
    try write("looked", "into/looked", at: 100)
    try write("mine", "into/mine", at: 1)
    let same = try rig.directory.directory.directory("into").status("same").identity
    let merged = try rig.merge(report, into: "into", mode)
    #expect(merged.isComplete && merged.deleted.entries == 0)
    for (name, text) in zip(names, expected) {
      #expect(try rig.text(ByteString("into").appending(name)) == text, "\(name)")
    }
    #expect(try rig.text("into/mine") == "mine")
    let stays = try rig.directory.directory.directory("into").status("same").identity == same
    #expect(stays == (mode != .always))
    #expect(try rig.names("into").count == 6)
  }

  @Test func whatTheSnapshotLacksGoesOnRequest() throws {
    try rig.directory.write("a", at: "tree/a")
    try rig.directory.write("b", at: "tree/sub/b")
    let report = try rig.backup()
    try rig.directory.write("changed", at: "into/a")
    try rig.directory.write("gone", at: "into/sub/gone")
    try rig.directory.write("gone", at: "into/more/deep/gone")
    let merged = try rig.merge(report, into: "into", .ifChanged, deletes: true)
    #expect(merged.isComplete && merged.spared.isEmpty)
    #expect(merged.deleted.files == 2 && merged.deleted.directories == 2)
    #expect(try rig.records("into") == rig.records("tree"))
  }

  /// A directory in the place of a file, and the reverse: only with deletion goes what is in it.
  @Test func whatIsOfAnotherKindGivesWay() throws {
    try rig.directory.write("file", at: "tree/file")
    try rig.directory.write("in", at: "tree/folder/in")
    try rig.directory.write("other", at: "tree/empty")
    let report = try rig.backup()
    try rig.directory.write("mine", at: "into/file/mine")
    try rig.directory.write("mine", at: "into/folder")
    _ = try Directory.make(path: rig.directory.path("into/empty"))
    let careful = try rig.merge(report, into: "into", .ifChanged)
    #expect(careful.failed.map(\.path) == ["file"])
    #expect(try rig.text("into/file/mine") == "mine")
    #expect(try rig.text("into/folder/in") == "in" && rig.text("into/empty") == "other")
    let merged = try rig.merge(report, into: "into", .ifChanged, deletes: true)
    #expect(merged.isComplete && merged.deleted.files == 1)
    #expect(try rig.records("into") == rig.records("tree"))
  }

  /// A link in the target to a directory elsewhere is replaced, and nothing happens where it points.
  @Test func noLinkInTheTargetIsFollowed() throws {
    try rig.directory.write("in", at: "tree/folder/in")
    let report = try rig.backup()
    try rig.directory.write("outside", at: "outside/in")
    try rig.directory.write("outside", at: "outside/more")
    let into = try Directory.make(path: rig.directory.path("into"))
    try into.createLink("folder", to: rig.directory.path("outside"))
    try into.createLink("other", to: rig.directory.path("outside"))
    #expect(try rig.merge(report, into: "into", .always, deletes: true).isComplete)
    #expect(try rig.records("into") == rig.records("tree"))
    #expect(try rig.text("outside/in") == "outside" && rig.text("outside/more") == "outside")
  }

  @Test func whatIsProtectedStays() throws {
    try rig.directory.write("a", at: "tree/a")
    let report = try rig.backup()
    try rig.directory.write("precious", at: "into/above/kept/precious")
    try rig.directory.write("gone", at: "into/gone")
    let kept = try Directory.open(path: rig.directory.path("into/above/kept")).status().identity
    let merged = try rig.merge(
      report, into: "into", .always, deletes: true, protected: [kept])
    #expect(merged.isComplete)
    #expect(merged.spared.map(\.path) == ["above"])
    #expect(try rig.text("into/above/kept/precious") == "precious")
    #expect(try rig.names("into") == ["a", "above"])
  }

  // MARK: - Hard links

  private func makeLinks() throws -> BackupReport {
    try rig.directory.write([UInt8](repeating: 5, count: 100_000), at: "tree/b/second")
    let tree = try Directory.open(path: rig.directory.path("tree"))
    let inner = try tree.directory("b")
    try tree.createHardLink("a-first", to: "second", in: inner)
    try inner.createHardLink("third", to: "second", in: inner)
    try tree.makeDirectory("c").createHardLink("fourth", to: "second", in: inner)
    return try rig.backup()
  }

  /// What is there in the place of some names of a file becomes that one file again.
  @Test(arguments: [OverwriteMode.ifChanged, .always], ["a-first", "b/third", "c/fourth"])
  func namesOfOneFileBecomeOneAgain(_ mode: OverwriteMode, _ alone: String) throws {
    let report = try makeLinks()
    try rig.copy("tree", to: "into")
    let (wanted, path) = (try rig.records("tree"), ByteString("into/" + alone))
    // A file of its own that looks the same in all but its identity.
    let bytes = try rig.directory.read(path)
    let parts = path.components
    let above = try Directory.open(
      path: parts.dropLast().reduce(rig.directory.path) { $0.appending($1) })
    let status = try above.status(parts[parts.count - 1])
    try above.remove(parts[parts.count - 1])
    try rig.directory.write(bytes, at: path)
    try above.setModified(status.modified, of: parts[parts.count - 1])
    try above.setPermissions(status.permissions, of: parts[parts.count - 1])
    #expect(try rig.records("into") != wanted)
    #expect(try rig.merge(report, into: "into", mode).isComplete)
    #expect(try rig.records("into") == wanted)
  }

  /// A name that is missing is linked to the file that is there.
  @Test func aMissingNameIsAddedToTheFileThatIsThere() throws {
    let report = try makeLinks()
    try rig.copy("tree", to: "into")
    let into = try Directory.open(path: rig.directory.path("into"))
    let identity = try into.status("a-first").identity
    try into.removeTree("c")
    let merged = try rig.merge(report, into: "into", .ifChanged)
    #expect(merged.isComplete && merged.restored.files == 1)
    #expect(try into.directory("c").status("fourth").identity == identity)
    #expect(try rig.records("into") == rig.records("tree"))
  }

  /// Of names whose first is not restored the first that is restored is the file.
  @Test func aPartOfTheNamesIsOneFile() throws {
    let report = try makeLinks()
    #expect(try rig.restore(report, "folders/tree/b", to: "part").isComplete)
    let part = try Directory.open(path: rig.directory.path("part"))
    #expect(try part.status("second").links == 2)
    #expect(try part.status("second").identity == part.status("third").identity)
    #expect(try rig.directory.read("part/third") == rig.directory.read("tree/a-first"))
    #expect(try rig.restore(report, "folders/tree/c/fourth", to: "one").isComplete)
    #expect(try rig.directory.read("one") == rig.directory.read("tree/a-first"))
    #expect(try rig.directory.directory.status("one").links == 1)
    // And into a directory that has another file of the name.
    try rig.directory.write("other", at: "into/third")
    #expect(try rig.merge(report, "folders/tree/b", into: "into", .always).isComplete)
    #expect(try rig.records("into") == rig.records("part"))
  }

  // MARK: - What cannot be listed

  /// A listing of the target that fails, one after another: what is in that directory stays, and the
  /// report says so; everything else is done.
  @Test func aDirectoryThatCannotBeListedLosesNothing() throws {
    try rig.directory.write("a", at: "tree/a")
    for name in ["x", "y"] { try rig.directory.write("b", at: ByteString("tree/\(name)/b")) }
    _ = try Directory.make(path: rig.directory.path("tree/bare"))
    let report = try rig.backup()
    let extras: [ByteString] = ["gone", "x/gone", "y/gone", "bare/gone", "more/deep/gone"]
    var failures = 0
    for call in 1... {
      try? rig.directory.directory.removeTree("into")
      try rig.copy("tree", to: "into")
      for extra in extras {
        try rig.directory.write("extra", at: ByteString("into").appending(extra))
      }
      let reader = try rig.repository.beginReading()
      let snapshot = try #require(report.snapshot)
      let request = RestoreRequest(
        path: "folders/tree", target: rig.directory.path("into"), overwrite: .ifChanged,
        deletes: true)
      let faults = Faults.Plan(failing: [.list], at: call, number: 5)
      let merged: RestoreReport
      do {
        merged = try Faults.inject(faults) {
          let plan = try RestorePlan.make(snapshot, request, from: reader)
          return try RestoreOperation(plan, from: reader).run()
        }
      } catch {
        // Only the target's own directory ends it, before anything is done.
        #expect("\(error)".contains("into"), "\(error)")
        failures += 1
        continue
      }
      let left = try extras.filter {
        try rig.directory.directory.statusIfPresent(ByteString("into").appending($0)) != nil
      }
      #expect(merged.isComplete == left.isEmpty, "call \(call): \(left), \(merged.failed)")
      #expect(merged.deleted.files == extras.count - left.count, "call \(call)")
      for path in left {
        #expect(
          merged.failed.contains { path.isWithin($0.path) || $0.path == "." }, "call \(call)")
      }
      #expect(try rig.text("into/a") == "a" && rig.text("into/x/b") == "b", "call \(call)")
      if !faults.hasFired { break }
      if !left.isEmpty { failures += 1 }
    }
    #expect(failures >= 6, "\(failures)")
  }
}
