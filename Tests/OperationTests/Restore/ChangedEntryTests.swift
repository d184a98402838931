import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceTransaction
import Restore
import SandboxModel
import Synchronization
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

  /// Writes the current state of the target: files that differ from the stored ones.
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

  /// The last mode of a directory that was seen.
  private final class SeenMode: Sendable {
    private let mode = Mutex<UInt16>(0)
    var last: UInt16 { mode.withLock { $0 } }

    func see(_ path: ByteString) {
      let seen = (try? Directory.open(path: path).status().permissions) ?? 0
      mode.withLock { $0 = seen }
    }
  }

  /// Entries for everyone are not put into a directory that others can still enter.
  @Test func aDirectoryIsClosedBeforeEntriesAreMovedIntoIt() throws {
    try Directory.open(path: fixture.directory.path("tree/folder")).setPermissions(0o700)
    let report = try fixture.backup()
    let (folder, seen) = (fixture.directory.path("into/folder"), SeenMode())
    var renames = 0
    for call in 1...9 {
      try writePresent()
      try Directory.open(path: folder).setPermissions(0o775)
      let plan = try fixture.plan(report, into: "into", .always)
      let move = Faults.Plan(before: [.rename], at: call) { seen.see(folder) }
      #expect(try Faults.inject(move) { try run(plan).isComplete })
      if move.hasFired { renames = call }
      #expect(try Directory.open(path: folder).status().permissions == 0o700)
    }
    #expect(renames > 0 && seen.last == 0o700, "\(renames), \(String(seen.last, radix: 8))")
  }

  /// The names of a hard-linked file, and files of which only the permissions changed, count as
  /// unchanged.
  @Test func changesByTheRestoreItselfAreIgnored() throws {
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

  // MARK: - Logs

  private static let magic = "SQLite format 3\0 "

  /// Stores a database without a log, and writes another state of it into a directory.
  private func storeDatabase(besides name: String, log: String?) throws -> BackupReport {
    try fixture.directory.write(Self.magic + "stored", at: "tree/d")
    let report = try fixture.backup()
    try fixture.directory.write(Self.magic + "present state", at: ByteString("\(name)/d"))
    if let log { try fixture.directory.write(log, at: ByteString("\(name)/d-wal")) }
    return report
  }

  /// In WAL mode a commit changes only the log, which appears or grows after the plan. Both files
  /// are kept, including a log that would have been deleted.
  @Test(arguments: [nil, "present"], [false, true])
  func commitsAfterThePlanAreKept(_ log: String?, deletes: Bool) throws {
    let report = try storeDatabase(besides: "into", log: log)
    let plan = try fixture.plan(report, into: "into", .ifChanged, deletes: deletes)
    try fixture.directory.write("committed since", at: "into/d-wal")
    let restored = try run(plan)
    #expect(restored.failed.map(\.path) == ["d"], "\(restored.failed)")
    #expect(restored.failed.allSatisfy { $0.remark.contains("'d-wal'") })
    #expect(restored.deleted.entries == 0 && restored.setAside.isEmpty)
    #expect(try fixture.names("into") == ["a", "b", "d", "d-wal", "folder"])
    #expect(try fixture.text("into/d").hasSuffix("present state"))
    #expect(try fixture.text("into/d-wal") == "committed since")
    // The same restore decides again by the new state.
    #expect(try fixture.merge(report, into: "into", .ifChanged, deletes: deletes).isComplete)
    #expect(try fixture.text("into/d").hasSuffix("stored"))
    #expect(try !fixture.names("into").contains("d-wal"))
  }

  /// If everything is replaced, the new log does not stay next to the restored database.
  @Test func overwriteAlwaysMovesANewLogAway() throws {
    let report = try storeDatabase(besides: "into", log: nil)
    let plan = try fixture.plan(report, into: "into", .always)
    try fixture.directory.write("committed since", at: "into/d-wal")
    let restored = try run(plan)
    #expect(restored.isComplete && restored.displaced.map(\.path) == ["d-wal"])
    #expect(try fixture.text("into/d").hasSuffix("stored"))
    let names = try fixture.names("into").filter { $0.description.hasPrefix("d-wal") }
    #expect(names.count == 1 && names.first != "d-wal", "\(names)")
  }

  /// At the time of the plan the log is as stored, so only the database would be replaced; or vice
  /// versa.
  @Test(arguments: [("d", "d-wal"), ("d-wal", "d")])
  func aDatabaseIsKeptIfItsUnchangedFileChanges(_ differs: String, _ same: String) throws {
    try fixture.directory.write(Self.magic + "stored", at: "tree/d")
    try fixture.directory.write("log of stored", at: "tree/d-wal")
    let report = try fixture.backup()
    try fixture.copy("tree", to: "into")
    try fixture.directory.write(Self.magic + "present state", at: ByteString("into/\(differs)"))
    let plan = try fixture.plan(report, into: "into", .ifChanged)
    try fixture.directory.write("written since the plan", at: ByteString("into/\(same)"))
    let restored = try run(plan)
    #expect(restored.failed.map(\.path) == [ByteString(differs)], "\(restored.failed)")
    #expect(try fixture.text(ByteString("into/\(differs)")).hasSuffix("present state"))
    #expect(try fixture.text(ByteString("into/\(same)")) == "written since the plan")
  }

  /// In a device a log that appears after the plan is moved to the trash with its database.
  @Test(arguments: ["d-wal", "d-journal", "d-shm"])
  func aDeviceMovesANewLogToTheTrash(_ name: String) throws {
    let stored = try #require(try storeDatabase(besides: "tree", log: nil).snapshot)
    let plan = try devicePlan(stored, isForced: true)
    try fixture.directory.write("committed since", at: ByteString("tree/\(name)"))
    let report = try run(plan)
    #expect(report.remarks(\.failed).isEmpty)
    #expect(report.remarks(\.displaced).map(\.path) == [ByteString("folders/tree/\(name)")])
    #expect(try fixture.text("tree/d").hasSuffix("stored"))
    #expect(try !fixture.names("tree").contains(ByteString(name)))
    let kept = ByteString("tree/.sandboxctl/trash/\(report.trash ?? "")/folders/tree")
    #expect(try fixture.text(kept.appending(ByteString(name))) == "committed since")
    #expect(try fixture.text(kept.appending("d")).hasSuffix("present state"))
  }

  /// A log appears before each status call in turn, while the database is still in place: both are
  /// kept, except that nothing examines the log between the last call and the rename.
  @Test func aLogThatAppearsBeforeTheRenameIsFound() throws {
    let stored = try #require(try storeDatabase(besides: "tree", log: nil).snapshot)
    let tree = fixture.directory.path("tree")
    var (kept, moved, mixed) = (0, 0, 0)
    for call in 1... {
      try fixture.directory.write(Self.magic + "present state", at: "tree/d")
      let plan = try devicePlan(stored, isForced: true)
      let appears = Faults.Plan(before: [.status], at: call) {
        guard let tree = try? Directory.open(path: tree),
          (try? tree.status("d").size) == UInt64(Self.magic.utf8.count + "present state".count)
        else { return }
        try? tree.create("d-wal").write(Array("committed since".utf8))
      }
      let report = try? Faults.inject(appears) { try run(plan) }
      if !appears.hasFired { break }
      let isKept = try fixture.text("tree/d").hasSuffix("present state")
      let hasLog = try fixture.names("tree").contains("d-wal")
      if isKept {
        kept += 1
        #expect(hasLog && report?.remarks(\.failed).map(\.path) == ["folders/tree/d"])
      } else if hasLog {
        mixed += 1
      } else {
        moved += 1
      }
      let opened = try Directory.open(path: tree)
      if hasLog { try opened.remove("d-wal") }
      try? opened.removeTree(".sandboxctl")
    }
    #expect(kept > 0 && moved > 3 && mixed <= 8, "\(kept) kept, \(moved) moved, \(mixed) mixed")
  }

  /// An app that was started after the first check has written a log: the second check finds the
  /// app.
  @Test func anAppThatWroteSinceThePlanIsFoundRunning() throws {
    let stored = try #require(try storeDatabase(besides: "tree", log: nil).snapshot)
    let restore = try operation(devicePlan(stored, isForced: false))
    let (tree, app) = (fixture.directory.path("tree"), StartedApp())
    let start = Faults.Plan(before: [.create], at: 1) {
      try? Directory.open(path: tree).create("d-wal").write(Array("committed since".utf8))
      app.start(tree.appending("d"))
    }
    let error = #expect(throws: OperationError.self) {
      try Faults.inject(start) { try restore.run() }
    }
    app.end()
    #expect(start.hasFired && error?.code == .appRunning, "\(error as Any)")
    #expect(try fixture.text("tree/d").hasSuffix("present state"))
    #expect(try fixture.text("tree/d-wal") == "committed since")
  }

  /// An app that has a database open.
  private final class StartedApp: Sendable {
    private let process = Mutex<BoundProcess?>(nil)

    func start(_ path: ByteString) {
      let program = "import sys; f = open(sys.argv[1], 'r+b'); print('open', flush=True); input()"
      let path = String(decoding: path.bytes, as: UTF8.self)
      process.withLock { $0 = try? BoundProcess("python3", ["-c", program, path]) }
    }

    func end() { process.withLock { $0 = nil } }
  }

  // MARK: - In a device

  /// In a device, another program replaces a file before each status call in turn: its entry is in
  /// place or in the trash.
  @Test func replacementsOfAReplacedEntryAreKeptInADevice() throws {
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

  private func devicePlan(
    _ stored: StoredSnapshot, isForced: Bool
  ) throws -> DeviceRestorePlan {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Fixture.policy(.folder))
    (request.savesFirst, request.isForced) = (false, isForced)
    return try DeviceRestorePlan.make(stored, request, from: fixture.repository.beginReading())
  }

  private func operation(_ plan: DeviceRestorePlan) throws -> DeviceRestoreOperation {
    DeviceRestoreOperation(
      plan, from: try fixture.repository.beginReading(),
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository))
  }

  private func run(_ plan: DeviceRestorePlan) throws -> DeviceRestoreOperation.Report {
    try operation(plan).run()
  }

  private func restoreInPlace(_ stored: StoredSnapshot, _ faults: Faults.Plan) throws {
    let plan = try devicePlan(stored, isForced: true)
    _ = try? Faults.inject(faults) { try run(plan) }
  }

  /// An entry that appears after the present one was preserved is preserved as well.
  @Test func anEntryThatAppearsAfterThePreservationIsPreserved() throws {
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
    // An entry that is replaced after each check is not replaced by the restore.
    let error = #expect(throws: SystemError.self) {
      _ = try moves.preservePresent("old", for: .file) { _ throws(SystemError) in
        try moves.remove("old")
        _ = try moves.create("old")
      }
    }
    #expect(error?.isExisting == false)
  }
}
