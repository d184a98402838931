import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// What a scan saw counts as read when the scan began, however much later the backup follows.
@Suite(.spreadScans) struct ScanClockTests {
  let rig: Fixture

  init() throws {
    rig = try Fixture()
    try rig.directory.write("file", at: "tree/file")
  }

  /// A second change in the tick in which the scan looked would not show: so the next run looks again.
  @Test func whatChangedAsTheScanBeganIsReadAgain() throws {
    let scan = try rig.scan()
    wait()
    #expect(try !isRootStable(after: scan))
  }

  @Test func whatStoodStillBeforeTheScanIsNot() throws {
    wait()
    #expect(try isRootStable(after: rig.scan()))
  }

  /// Waits until a change of before no longer looks young.
  private func wait() { Host.pause(seconds: ChangeRules.margin + 0.3) }

  /// Backs a scan up by the real clock, and tells what the state notes of the tree's own directory.
  private func isRootStable(after scan: DeviceScan) throws -> Bool {
    var request = rig.request(keeping: "cache")
    request.now = nil
    let plan = BackupPlan.make(scan)
    let report = try BackupOperation(plan, to: rig.repository, request).run()
    #expect(report.isComplete)
    let key = StateKey(
      repository: rig.repository.id, source: SourceIdentity.digest(of: scan.device))
    let state = try SourceState.open(key, in: rig.directory.path("cache"), program: "test")
    return try #require(state.container("folders/tree")).entry.isStable
  }
}
