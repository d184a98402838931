import ArchiveStore
import DeviceScan
import DeviceTransaction
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Purge

/// Other operations of this program on the same device.
@Suite(.spreadScans) struct ConcurrentPurgeTests {
  private func makeFixture() throws -> PurgeFixture {
    let fixture = try PurgeFixture()
    for app in 0..<2 { try fixture.put("Library/Caches/a", in: app) }
    return fixture
  }

  private func running(_ fixture: PurgeFixture) throws -> [ByteString: String] {
    try PurgeRequest.now(.everything, level: .critical, for: try fixture.scan()).running
  }

  private func record(_ fixture: PurgeFixture) throws -> (JournalRecord, party: ByteString) {
    let container = try #require(try fixture.scan().containers.first).container
    let record = JournalRecord(
      operation: "restore", time: Host.now(), subjects: [container.logicalPrefix.subject],
      containers: [container.logicalPrefix])
    return (record, PurgePlan.party(of: container))
  }

  @Test func anAppWithACurrentOperationIsSkipped() throws {
    let fixture = try makeFixture()
    let (record, party) = try record(fixture)
    let scan = try fixture.scan()
    #expect(try running(fixture).isEmpty)
    let journal = try OperationJournal(record, root: fixture.directory.path(fixture.root))
    let reported = try running(fixture)
    #expect(reported.keys.sorted() == [party])
    #expect(reported[party]?.contains("another operation on") == true, "\(reported)")
    #expect(RunningParties.sign(of: party, in: scan) == reported[party])
    try journal.end()
    withExtendedLifetime(journal) {}
  }

  @Test func anAppWithAnInterruptedOperationIsSkipped() throws {
    let fixture = try makeFixture()
    let root = fixture.directory.path(fixture.root)
    let (record, party) = try record(fixture)
    do {
      let journal = try OperationJournal(record, root: root)
      try journal.prepare(0, stagingIn: [root])
    }
    let reported = try running(fixture)
    #expect(reported.keys.sorted() == [party])
    #expect(reported[party]?.contains("'sandboxctl recover'") == true, "\(reported)")
    let request = try PurgeRequest.now(.everything, level: .critical, for: try fixture.scan())
    let report = PurgeOperation(PurgePlan.make(try fixture.scan(), request)).run()
    #expect(report.volumes.reduce(0) { $0 + $1.units } == 1)
    #expect(try fixture.files(0).count + fixture.files(1).count == 1)
    // An unreadable journal does not show which apps it concerns.
    try fixture.directory.write("{", at: fixture.root.appending(".sandboxctl/journal/x.json"))
    #expect(try running(fixture).count == 2)
  }
}
