import ArchiveStore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// A path of a plain directory comes back in place at the cost of that path.
@Suite(.spreadScans) struct RestoreOnePathTests {
  /// A directory of 40 others, backed up as a whole.
  private let rig: Fixture
  private let stored: StoredSnapshot

  init() throws {
    rig = try Fixture(inMemory: true)
    for directory in 0..<40 {
      for file in 0..<5 {
        try rig.directory.write("\(file)", at: ByteString("tree/d\(directory)/inner/\(file)"))
      }
    }
    stored = try #require(try rig.backup(keeping: "cache").snapshot)
  }

  private func plan(_ path: ByteString, deletes: Bool = false) throws -> DeviceRestorePlan {
    let device = try Device.find(root: rig.directory.path("tree"), layout: .folder)
    var request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Fixture.policy(.folder), time: Host.now())
    request.path = path
    request.deletes = deletes
    return try DeviceRestorePlan.make(stored, request, from: rig.repository.beginReading())
  }

  private func restore(_ plan: DeviceRestorePlan) throws -> DeviceRestoreReport {
    try DeviceRestoreOperation(
      plan, rig.repository, from: rig.repository.beginReading(),
      saving: rig.request(keeping: "cache")
    ).run()
  }

  @Test func onlyThePathIsScanned() throws {
    let plan = try plan("folders/tree/d7")
    let scan = try #require(plan.present.containers.first)
    let paths = Set(scan.entries.indices.map { scan.path($0) })
    #expect(paths.isSuperset(of: ["d7", "d7/inner", "d7/inner/4"]))
    #expect(!paths.contains("d8/inner") && paths.count == 1 + 40 + 1 + 5)
  }

  @Test func aLostDirectoryComesBackWithoutASnapshotOfTheRest() throws {
    try Directory.open(path: rig.directory.path("tree")).removeTree("d7")
    let report = try restore(plan("folders/tree/d7"))
    #expect(report.saved == nil)
    #expect(try rig.text("tree/d7/inner/4") == "4")
  }

  @Test func whereSomethingGivesWayAllIsSavedFirst() throws {
    try rig.directory.write("mine", at: "tree/d7/inner/4")
    try rig.directory.write("new", at: "tree/d7/inner/new")
    let report = try restore(plan("folders/tree/d7", deletes: true))
    #expect(try rig.text("tree/d7/inner/4") == "4")
    #expect(try rig.names("tree/d7/inner").count == 5)
    let saved = try #require(report.saved)
    let reader = try rig.repository.beginReading()
    let source = try RestorePlan.make(
      saved, path: "folders/tree", to: rig.directory.path("back"), from: reader)
    _ = try RestoreOperation(source, from: reader).run()
    #expect(try rig.text("back/d7/inner/4") == "mine" && rig.text("back/d7/inner/new") == "new")
    #expect(try rig.names("back").count == 40, "the snapshot is of the whole directory")
  }
}
