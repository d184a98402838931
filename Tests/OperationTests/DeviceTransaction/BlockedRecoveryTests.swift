import ArchiveStore
import DeviceDiscovery
import DeviceScan
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// An operation on one app that was interrupted and cannot be recovered now does not block other
/// apps.
@Suite(.spreadScans) struct BlockedRecoveryTests {
  private let fixture: PurgeFixture
  private let subjects: [ByteString]

  init() throws {
    fixture = try PurgeFixture()
    for app in 0..<2 { try fixture.put("Library/Caches/a", in: app) }
    subjects = try fixture.scan().containers.map(\.container.logicalPrefix.subject).sorted()
  }

  private var root: ByteString { fixture.directory.path(fixture.root) }

  private func begin(on subject: ByteString) throws -> OperationJournal {
    try OperationJournal(
      JournalRecord(
        operation: "restore", time: Host.now(), subjects: [subject],
        containers: [subject.appending("data")]), root: root)
  }

  private func interrupt(on subject: ByteString) throws {
    try begin(on: subject).prepare(0, stagingIn: [root])
  }

  private func recover() throws -> RecoveryReport {
    let device = try Device.find(root: root, layout: .coreSimulator)
    return try Recovery(device, policy: PurgeFixture.policy()).run()
  }

  @Test(arguments: 0..<2) func theOtherAppsAreRecovered(_ busy: Int) throws {
    try #require(subjects.count == 2)
    for subject in subjects { try interrupt(on: subject) }
    do {
      let locks = try AppLocks([subjects[busy]], root: root)
      let report = try recover()
      #expect(report.done.map(\.operation.record.subjects) == [[subjects[1 - busy]]])
      #expect(report.blocked.map(\.operation.record.subjects) == [[subjects[busy]]])
      #expect(report.blocked.map(\.error.kind) == [.busy])
      #expect(try InterruptedOperation.all(on: root).count == 1)
      withExtendedLifetime(locks) {}
    }
    let report = try recover()
    #expect(report.done.map(\.operation.record.subjects) == [[subjects[busy]]])
    #expect(report.blocked.isEmpty)
    #expect(try InterruptedOperation.all(on: root).isEmpty)
  }

  /// Operations on several apps stage in one directory. The recovery of one operation, and the
  /// start of another, keep the files that an interrupted one needs.
  @Test(arguments: [true, false]) func stagedEntriesOfOthersAreKept(_ isOldest: Bool) throws {
    let directory = try Directory.open(path: root)
    if !isOldest { try interrupt(on: subjects[0]) }
    try interruptMoving("new", in: directory)
    if isOldest { try interrupt(on: subjects[0]) }
    let journal = try begin(on: "apps/org.example.third")
    let exchange = StagedExchange(
      on: try Device.find(root: root, layout: .coreSimulator), under: journal,
      StagedExchange.Wording(verb: "test", noun: "test", subject: "third"))
    try exchange.prepare(in: [root])
    exchange.abandon()
    try journal.end()
    let report = try recover()
    #expect(report.done.count == 2 && report.blocked.isEmpty)
    #expect(try directory.statusIfPresent("new") != nil)
    let isLeft = StagingDirectory.isAny(in: directory)
    #expect(!isLeft)
  }

  /// Leaves an operation on the second app before its only step, which moves a new file.
  private func interruptMoving(
    _ name: ByteString, in directory: borrowing Directory
  ) throws {
    let journal = try begin(on: subjects[1])
    try journal.prepare(0, stagingIn: [root])
    let staging = try StagingDirectory.make(in: directory)
    try staging.tree.create(name).close()
    try journal.move(
      [JournalStep(path: name, root: 0, source: 1)],
      below: [
        JournalRecord.Root(path: root, inode: try directory.status().identity.inode),
        JournalRecord.Root(
          path: staging.tree.path, inode: try staging.tree.status().identity.inode),
      ])
  }

  /// An operation that acquires the locks of an app checks again whether the app has an interrupted
  /// operation.
  @Test func noOperationBeginsOnAnAppWithAnInterruptedOne() throws {
    try interrupt(on: subjects[0])
    let error = #expect(throws: OperationError.self) { try begin(on: subjects[0]) }
    #expect(error?.kind == .failed && error?.hint?.contains("'sandboxctl recover'") == true)
    #expect(error?.description.contains("'\(subjects[0])'") == true)
    try begin(on: subjects[1]).end()
    _ = try recover()
    try begin(on: subjects[0]).end()
  }
}
