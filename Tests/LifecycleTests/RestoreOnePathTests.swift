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

/// A path of a plain directory is restored in place at the cost of that path only.
@Suite(.spreadScans) struct RestoreOnePathTests {
  /// A directory with 40 others, backed up completely.
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
}
