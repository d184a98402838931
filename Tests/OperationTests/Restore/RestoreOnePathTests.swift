import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceScan
import DeviceTransaction
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The in-place restore of one path of a plain directory or of an app only costs the work for that
/// path.
@Suite(.spreadScans) struct RestoreOnePathTests {
  /// A directory with 40 subdirectories, backed up completely.
  private let fixture: Fixture
  private let stored: StoredSnapshot

  init() throws {
    fixture = try Fixture(inMemory: true)
    for directory in 0..<40 {
      for file in 0..<5 {
        try fixture.directory.write("\(file)", at: ByteString("tree/d\(directory)/inner/\(file)"))
      }
    }
    stored = try #require(try fixture.backup(keeping: "cache").snapshot)
  }

  private func plan(_ path: ByteString, deletes: Bool = false) throws -> DeviceRestorePlan {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Fixture.policy(.folder), time: Host.now())
    request.path = path
    request.deletes = deletes
    return try DeviceRestorePlan.make(stored, request, from: fixture.repository.beginReading())
  }

  private func restore(_ plan: DeviceRestorePlan) throws -> DeviceRestoreOperation.Report {
    try DeviceRestoreOperation(
      plan, from: fixture.repository.beginReading(),
      saving: SafetySnapshotMaker(fixture.request(keeping: "cache"), in: fixture.repository)
    ).run()
  }

  @Test func onlyThePathIsScanned() throws {
    let plan = try plan("folders/tree/d7")
    let scan = try #require(plan.present.containers.first)
    let paths = Set(scan.entries.indices.map { scan.path($0) })
    #expect(paths.isSuperset(of: ["d7", "d7/inner", "d7/inner/4"]))
    #expect(!paths.contains("d8/inner") && paths.count == 1 + 40 + 1 + 5)
  }

  @Test func aLostDirectoryIsRestoredWithoutASnapshotOfTheRest() throws {
    try Directory.open(path: fixture.directory.path("tree")).removeTree("d7")
    let report = try restore(plan("folders/tree/d7"))
    #expect(report.saved == nil)
    #expect(try fixture.text("tree/d7/inner/4") == "4")
  }

  @Test func everythingIsSavedBeforeFilesAreReplaced() throws {
    try fixture.directory.write("mine", at: "tree/d7/inner/4")
    try fixture.directory.write("new", at: "tree/d7/inner/new")
    let report = try restore(plan("folders/tree/d7", deletes: true))
    #expect(try fixture.text("tree/d7/inner/4") == "4")
    #expect(try fixture.names("tree/d7/inner").count == 5)
    let saved = try #require(report.saved)
    let reader = try fixture.repository.beginReading()
    let source = try RestorePlan.make(
      saved, path: "folders/tree", to: fixture.directory.path("back"), from: reader)
    _ = try RestoreOperation(source, from: reader).run()
    #expect(
      try fixture.text("back/d7/inner/4") == "mine" && fixture.text("back/d7/inner/new") == "new")
    #expect(try fixture.names("back").count == 40, "the snapshot has the whole directory")
  }

  @Test func planningEndsEarlyOnRequest() throws {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    let policy = try Fixture.policy(.folder)
    let reader = try fixture.repository.beginReading()
    func result(stoppingAt most: Int) -> (kind: OperationError.Kind?, calls: Int) {
      let counters = ProgressCounters()
      var request = DeviceRestoreRequest(device, isInPlace: true, policy: policy)
      request.isStopping = {
        counters.didHandle(files: 1)
        return counters.progress.filesDone >= most
      }
      do {
        _ = try DeviceRestorePlan.make(stored, request, from: reader)
        return (nil, counters.progress.filesDone)
      } catch { return ((error as? OperationError)?.kind, counters.progress.filesDone) }
    }
    let whole = result(stoppingAt: .max)
    // Both the scan and the walk of the snapshot request every directory.
    #expect(whole.kind == nil && whole.calls >= 2 * 80)
    #expect(result(stoppingAt: 1).kind == .interrupted)
    #expect(result(stoppingAt: whole.calls - 10).kind == .interrupted)
  }
}

/// A path of one container of an app.
@Suite(.spreadScans) struct RestoreOnePathOfAnAppTests {
  private let fixture: UpdateFixture
  private let stored: StoredSnapshot

  init() throws {
    fixture = try UpdateFixture()
    for file in 0..<5 { try fixture.write("\(file)", ByteString("Documents/many/\(file)")) }
    let scan = DeviceScan.run(try fixture.device(), policy: try PurgeFixture.policy())
    let report = try BackupOperation(
      BackupPlan.make(scan), to: fixture.base.repository, fixture.request
    ).run()
    stored = try #require(report.snapshot)
  }

  private func plan(_ path: ByteString) throws -> DeviceRestorePlan {
    var request = DeviceRestoreRequest(
      try fixture.device(), isInPlace: true, policy: try PurgeFixture.policy())
    request.path = path
    return try DeviceRestorePlan.make(
      stored, request, from: fixture.base.repository.beginReading())
  }

  private func restore(_ plan: DeviceRestorePlan) throws -> DeviceRestoreOperation.Report {
    try DeviceRestoreOperation(
      plan, from: fixture.base.repository.beginReading(),
      saving: SafetySnapshotMaker(fixture.request, in: fixture.base.repository)
    ).run()
  }

  private static let path: ByteString = "apps/org.example.one/data/Documents/deep"

  @Test func onlyThePathInItsContainerIsScanned() throws {
    let scans = try plan(Self.path).present.containers
    #expect(scans.map(\.container.logicalPrefix) == ["apps/org.example.one/data"])
    let scan = try #require(scans.first)
    let paths = Set(scan.entries.indices.map { scan.path($0) })
    #expect(paths.isSuperset(of: ["Documents/deep/er/note", "Documents/many", "Library"]))
    #expect(!paths.contains("Documents/many/1") && !paths.contains("Library/Caches"))
    // The whole app is scanned if the whole app is restored.
    #expect(try plan("apps/org.example.one").present.containers.count == 3)
  }

  @Test func aLostDirectoryIsRestoredAndAReplacedFileIsSavedWithTheWholeContainer() throws {
    try Directory.open(path: try fixture.dataDirectory().appending("Documents")).removeTree("deep")
    let restored = try restore(plan(Self.path))
    #expect(restored.saved == nil && restored.parts.count == 1)
    let note = try fixture.dataDirectory().appending("Documents/deep/er/note")
    let text = {
      String(decoding: try Descriptor.open(path: note).readAll(limit: 99) ?? [], as: UTF8.self)
    }
    #expect(try text() == "note")
    try fixture.write("mine", "Documents/deep/er/note")
    let saved = try #require(try restore(plan(Self.path)).saved)
    #expect(try text() == "note")
    let reader = try fixture.base.repository.beginReading()
    let paths: [ByteString] = ["Documents/many/1", "Library/Preferences/org.example.one.plist"]
    for path in paths {
      let whole = ByteString("apps/org.example.one/data").appending(path)
      #expect(try reader.entry(at: whole, in: saved.snapshot.tree) != nil, "\(path)")
    }
  }
}
