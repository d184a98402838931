import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceTransaction
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Entries of the target that change while a restore runs are not lost.
@Suite(.spreadScans) struct ChangedEntryTests {
  private let fixture: Fixture

  init() throws {
    fixture = try Fixture(inMemory: true)
    for name in ["a", "b", "folder/c"] {
      try fixture.directory.write("stored", at: ByteString("tree/\(name)"))
    }
  }

  /// Writes the present state of the target: files that differ from the stored ones.
  private func writePresent() throws {
    for (number, name) in ["a", "b", "folder/c"].enumerated() {
      try fixture.directory.write("present", at: ByteString("into/\(name)"))
      try fixture.setTime(ByteString("into/\(name)"), Int64(number))
    }
  }

  private func run(_ plan: RestorePlan) throws -> RestoreReport {
    try RestoreOperation(plan, from: fixture.repository.beginReading(), threads: 2).run()
  }

  @Test(arguments: [OverwriteMode.ifChanged, .ifNewer])
  func entriesThatChangeAfterThePlanAreKeptAndNamed(_ mode: OverwriteMode) throws {
    let report = try fixture.backup()
    try writePresent()
    let plan = try fixture.plan(report, into: "into", mode)
    try fixture.directory.write("written", at: "into/a")
    try fixture.directory.write("another", at: "into/new")
    let into = try Directory.open(path: fixture.directory.path("into"))
    try into.rename("new", to: "folder/c", in: into)
    let restored = try run(plan)
    #expect(Set(restored.failed.map(\.path)) == ["a", "folder/c"], "\(restored.failed)")
    #expect(restored.failed.allSatisfy { $0.remark.contains("changed after") })
    #expect(!restored.isComplete)
    #expect(try fixture.text("into/a") == "written" && fixture.text("into/folder/c") == "another")
    #expect(try fixture.text("into/b") == "stored")
    // The same restore replaces them, unless they are newer.
    let again = try fixture.merge(report, into: "into", mode)
    #expect(again.isComplete)
    #expect(try fixture.text("into/a") == (mode == .ifNewer ? "written" : "stored"))
  }

  @Test func overwriteAlwaysReplacesThem() throws {
    let report = try fixture.backup()
    try writePresent()
    let plan = try fixture.plan(report, into: "into", .always)
    try fixture.directory.write("written", at: "into/a")
    #expect(try run(plan).isComplete)
    #expect(try fixture.text("into/a") == "stored")
  }

  /// The names of a hard-linked file, and files that only got other permissions, are the same.
  @Test func whatARestoreChangesItselfIsNoChange() throws {
    let report = try fixture.backup()
    try fixture.directory.write("present", at: "into/a")
    let into = try Directory.open(path: fixture.directory.path("into"))
    try into.createHardLink("b", to: "a", in: into)
    let plan = try fixture.plan(report, into: "into", .ifChanged)
    try into.setPermissions(0o600, of: "a")
    #expect(try run(plan).isComplete)
    #expect(try fixture.text("into/a") == "stored" && fixture.text("into/b") == "stored")
  }

  @Test func aDirectoryAndAFileInEachOthersPlaceAreKeptIfTheyChange() throws {
    let report = try fixture.backup()
    try fixture.directory.write("present", at: "into/folder")
    try fixture.directory.write("present", at: "into/a/inner")
    let plan = try fixture.plan(report, into: "into", .ifChanged, deletes: true)
    try fixture.directory.write("written since", at: "into/folder")
    try fixture.directory.write("written since", at: "into/a/more")
    let restored = try run(plan)
    #expect(Set(restored.failed.map(\.path)) == ["a", "folder"], "\(restored.failed)")
    #expect(try fixture.names("into/a") == ["inner", "more"])
    #expect(try fixture.text("into/folder") == "written since")
  }

  @Test func aSingleFileIsRefused() throws {
    let report = try fixture.backup()
    try writePresent()
    let plan = try fixture.plan(report, "folders/tree/a", into: "into/a", .ifChanged)
    try fixture.directory.write("written", at: "into/a")
    let error = #expect(throws: OperationError.self) { try run(plan) }
    #expect(error?.description.contains("changed after") == true, "\(error as Any)")
    #expect(try fixture.text("into/a") == "written")
  }

  @Test func aDatabaseWhoseLogChangesIsKept() throws {
    for (name, text) in [("d", "SQLite format 3\0 stored"), ("d-wal", "stored")] {
      try fixture.directory.write(text, at: ByteString("tree/\(name)"))
    }
    let report = try fixture.backup()
    for (name, text) in [("d", "SQLite format 3\0 present"), ("d-wal", "present")] {
      try fixture.directory.write(text, at: ByteString("into/\(name)"))
    }
    let plan = try fixture.plan(report, into: "into", .ifChanged)
    try fixture.directory.write("written since", at: "into/d-wal")
    let restored = try run(plan)
    #expect(Set(restored.failed.map(\.path)) == ["d", "d-wal"], "\(restored.failed)")
    #expect(try fixture.text("into/d-wal") == "written since")
    #expect(try fixture.text("into/d").hasSuffix("present"))
    #expect(try fixture.text("into/a") == "stored")
    #expect(try fixture.names("into") == ["a", "b", "d", "d-wal", "folder"])
  }

  /// In a device another program replaces a file before each examination of a status in turn: its
  /// entry is in place or in the trash.
  @Test func aDeviceKeepsWhatReplacesTheReplacedEntry() throws {
    let stored = try #require(try fixture.backup().snapshot)
    let tree = fixture.directory.path("tree")
    var kept = 0
    for call in 1... {
      try fixture.directory.write("present", at: "tree/a")
      try fixture.directory.write("app \(call)", at: "app/a")
      let swap = Faults.Plan(before: [.status], at: call) { [app = fixture.directory.path("app")] in
        guard let from = try? Directory.open(path: app), let to = try? Directory.open(path: tree)
        else { return }
        try? from.rename("a", to: "a", in: to)
      }
      try restoreInPlace(stored, swap)
      if !swap.hasFired { break }
      let texts = try fixture.records("tree").keys.filter {
        $0.lastComponent?.bytes.first == UInt8(ascii: "a")
      }.compactMap { try? fixture.text(ByteString("tree").appending($0)) }
      #expect(texts.contains("app \(call)"), "call \(call): \(texts)")
      kept += 1
      try? Directory.open(path: tree).removeTree(".sandboxctl")
    }
    #expect(kept > 20)
  }

  private func restoreInPlace(_ stored: StoredSnapshot, _ faults: Faults.Plan) throws {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Fixture.policy(.folder))
    (request.savesFirst, request.isForced) = (false, true)
    let reader = try fixture.repository.beginReading()
    let plan = try DeviceRestorePlan.make(stored, request, from: reader)
    let operation = DeviceRestoreOperation(
      plan, from: reader,
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository))
    _ = try? Faults.inject(faults) { try operation.run() }
  }

  /// An entry that appears after the present one was preserved is preserved as well.
  @Test func whatAppearsAfterThePreservationIsPreserved() throws {
    for name in ["old", "app", "trash/none"] {
      try fixture.directory.write(name, at: ByteString("moves/\(name)"))
    }
    let moves = try Directory.open(path: fixture.directory.path("moves"))
    let trash = try moves.directory("trash")
    var calls = 0
    let isThere = try moves.preservePresent("old", for: .file) { leaving throws(SystemError) in
      #expect(!leaving)
      try trash.createHardLink(ByteString("kept-\(calls)"), to: "old", in: moves)
      if calls == 0 { try moves.rename("app", to: "old", in: moves) }
      calls += 1
    }
    #expect(isThere && calls == 2)
    #expect(try fixture.text("moves/trash/kept-0") == "old")
    #expect(try fixture.text("moves/trash/kept-1") == "app")
    // One that is replaced after each look is not replaced by the restore.
    let error = #expect(throws: SystemError.self) {
      _ = try moves.preservePresent("old", for: .file) { _ throws(SystemError) in
        try moves.remove("old")
        _ = try moves.create("old")
      }
    }
    #expect(error?.isExisting == false)
  }
}
