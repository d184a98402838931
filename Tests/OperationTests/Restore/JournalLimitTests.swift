import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceScan
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Restore

/// A restore whose steps do not fit in one journal is refused when it is planned.
@Suite(.spreadScans) struct JournalLimitTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture(inMemory: true) }

  /// Backs up two files in a directory, changes one, and plans a restore with a journal of at most
  /// `limit` bytes.
  private func plan(_ name: ByteString = "tree", limit: Int) throws -> DeviceRestorePlan {
    for file: ByteString in ["one", "two"] {
      try fixture.directory.write("text", at: name.appending(file))
    }
    let device = try Device.find(root: fixture.directory.path(name), layout: .folder)
    let policy = try Fixture.policy(.folder)
    let report = try fixture.backup(DeviceScan.run(device, policy: policy))
    try fixture.directory.write("other", at: name.appending("one"))
    let request = DeviceRestoreRequest(device, isInPlace: true, policy: policy)
    let snapshot = try #require(report.snapshot)
    let reader = try fixture.repository.beginReading()
    return try DeviceRestorePlanner.$countedEntries.withValue(1) {
      try DeviceRestorePlanner.$journalLimit.withValue(limit) {
        try DeviceRestorePlan.make(snapshot, request, from: reader)
      }
    }
  }

  @Test func theStepsOfARestoreMustFitInAJournal() throws {
    #expect(try plan(limit: 1 << 20).parts.count == 1)
    let error = #expect(throws: OperationError.self) { _ = try plan(limit: 10) }
    #expect(error?.code == .limitExceeded)
    #expect(error?.description.contains("'folders/tree'") == true)
    #expect(error?.hint?.contains("SNAP:PATH") == true)
    #expect(error?.hint?.contains("'sandboxctl ls SNAP:folders/tree' lists") == true)
    #expect(try fixture.names("tree") == ["one", "two"])
    #expect(try fixture.text("tree/one") == "other")
  }

  /// The path is from the snapshot, and users paste the command into a shell.
  @Test(
    arguments: [
      ("my $(reboot)", "SNAP:'folders/my $(reboot)'"), ("tree\u{1b}[2K", "SNAP:PATH"),
    ] as [(ByteString, String)]
  ) func thePathInTheHintIsQuoted(name: ByteString, argument: String) throws {
    let error = #expect(throws: OperationError.self) { _ = try plan(name, limit: 10) }
    #expect(error?.hint?.contains("'sandboxctl ls \(argument)' lists") == true, "\(error as Any)")
  }
}
