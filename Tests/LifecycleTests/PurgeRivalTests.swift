import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// Other operations of this program on the same device.
@Suite(.spreadScans) struct PurgeRivalTests {
  private func rig() throws -> PurgeFixture {
    let rig = try PurgeFixture()
    for app in 0..<2 { try rig.put("Library/Caches/a", in: app) }
    return rig
  }

  private func running(_ rig: PurgeFixture) throws -> [ByteString: String] {
    try PurgeRequest.now(.everything, level: .critical, for: try rig.scan()).running
  }

  private func record(_ rig: PurgeFixture) throws -> (JournalRecord, party: ByteString) {
    let container = try #require(try rig.scan().containers.first).container
    let record = JournalRecord(
      operation: "restore", time: Host.now(), subjects: [container.logicalPrefix.subject],
      containers: [container.logicalPrefix])
    return (record, PurgePlan.party(of: container))
  }

  @Test func whatIsInHandIsLeftAlone() throws {
    let rig = try rig()
    let (record, party) = try record(rig)
    let scan = try rig.scan()
    #expect(try running(rig).isEmpty)
    let journal = try OperationJournal(record, root: rig.directory.path(rig.root))
    let told = try running(rig)
    #expect(told.keys.sorted() == [party])
    #expect(told[party]?.contains("another operation on") == true, "\(told)")
    #expect(PurgeRequest.sign(of: party, in: scan) == told[party])
    try journal.end()
    withExtendedLifetime(journal) {}
  }

  @Test func whatWasInterruptedWaitsForItsEnd() throws {
    let rig = try rig()
    let root = rig.directory.path(rig.root)
    let (record, party) = try record(rig)
    do {
      let journal = try OperationJournal(record, root: root)
      try journal.prepare(0, stagingIn: [root])
    }
    let told = try running(rig)
    #expect(told.keys.sorted() == [party])
    #expect(told[party]?.contains("'sandboxctl recover'") == true, "\(told)")
    let request = try PurgeRequest.now(.everything, level: .critical, for: try rig.scan())
    let report = PurgeOperation(PurgePlan.make(try rig.scan(), request)).run()
    #expect(report.volumes.reduce(0) { $0 + $1.units } == 1)
    #expect(try rig.files(0).count + rig.files(1).count == 1)
    // A journal that cannot be read says nothing of what it is about.
    try rig.directory.write("{", at: rig.root.appending(".sandboxctl/journal/x.json"))
    #expect(try running(rig).count == 2)
  }
}
