import ArchiveStore
import DeviceDiscovery
import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import Backup
@testable import DeviceScan

/// Scanned entries count as read when the scan began, however much later the backup follows.
@Suite(.spreadScans) struct ScanClockTests {
  let fixture: Fixture

  init() throws {
    fixture = try Fixture()
    try fixture.directory.write("file", at: "tree/file")
  }

  /// A second change in the same tick as the scan would not be detected, so the next run reads the
  /// entry again.
  @Test func anEntryChangedAsTheScanBeganIsReadAgain() throws {
    let scan = try fixture.scan()
    wait()
    #expect(try !isRootStable(after: scan))
  }

  @Test func anEntryUnchangedBeforeTheScanIsNotReadAgain() throws {
    wait()
    #expect(try isRootStable(after: fixture.scan()))
  }

  /// Waits until earlier changes no longer count as recent.
  private func wait() { Host.pause(seconds: RunClock.localMargin + 0.3) }

  /// Backs up a scan with the real clock. Returns whether the state file records the root directory
  /// as stable.
  private func isRootStable(after scan: DeviceScan) throws -> Bool {
    var request = fixture.request(keeping: "cache")
    request.now = nil
    let plan = BackupPlan.make(scan)
    let report = try BackupOperation(plan, to: fixture.repository, request).run()
    #expect(report.isComplete)
    let key = StateKey(
      repository: fixture.repository.id, source: SourceIdentity.digest(of: scan.device))
    let state = try SourceState.open(key, in: fixture.directory.path("cache"), program: "test")
    return try #require(state.container("folders/tree")).entry.isStable
  }
}
