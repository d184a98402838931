import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// A restore that was interrupted while it gave a database its place, of which not all can come any more:
/// the recovery takes back what came, so that the database stays with its own log.
@Suite struct RecoveredDatabaseTests {
  private static let older = ["db": "older", "db-wal": "log of older", "db-journal": "of older"]
  private let rig: Rig
  private let record: JournalRecord

  /// Interrupted before the first of three steps: what was there of the log goes to the trash, then log
  /// and database come; a further file stands alone.
  init() throws {
    rig = try Rig(inMemory: true)
    for (name, text) in Self.older {
      try rig.folder.write(text, at: ByteString("tree/\(name)"))
    }
    try rig.folder.write("stored", at: "tree/.sandboxctl-restore-1/tree/db")
    try rig.folder.write("log of stored", at: "tree/.sandboxctl-restore-1/tree/db-wal")
    try rig.folder.write("other", at: "tree/.sandboxctl-restore-1/tree/other")
    try rig.folder.write("", at: "tree/.sandboxctl-restore-1/lock")
    let root = rig.folder.path("tree")
    let staging = root.appending(".sandboxctl-restore-1/tree")
    var record = JournalRecord(
      operation: "restore", time: Host.now(), subjects: ["folders/tree"],
      containers: ["folders/tree"])
    (record.state, record.staging) = (.moving, [root])
    record.roots = [
      JournalRecord.Root(path: root, inode: try Folder.open(path: root).status().identity.inode),
      JournalRecord.Root(
        path: staging, inode: try Folder.open(path: staging).status().identity.inode),
      JournalRecord.Root(path: rig.folder.path("kept"), inode: nil),
    ]
    record.steps = [
      JournalStep(path: "db-journal", kept: 2, unit: 0),
      JournalStep(path: "db-wal", source: 1, kept: 2, unit: 0),
      // Nothing was there when it was planned, so that nothing is kept.
      JournalStep(path: "db", source: 1, unit: 0),
      JournalStep(path: "other", source: 1),
    ]
    self.record = record
  }

  private func recover(_ record: JournalRecord) throws -> RecoveryReport {
    let root = rig.folder.path("tree")
    let folder = try ControlFolder.make(ControlFolder.journal, root: root)
    try OperationJournal.write(record, in: folder)
    return try Recovery(
      Device.find(root: root, layout: .folder), policy: Rig.policy(.folder)
    ).run()
  }

  private func found() throws -> [String: String] {
    var found: [String: String] = [:]
    for name in try rig.names("tree") where name.description.hasPrefix("db") {
      found[name.description] = try rig.text(ByteString("tree").appending(name))
    }
    return found
  }

  /// How many steps had been taken before the interruption.
  @Test(arguments: 0...2) func aDatabaseThatCannotComeStaysAsItWas(_ taken: Int) throws {
    let runner = StepRunner(record.roots)
    for step in record.steps.prefix(taken) { #expect(try runner.take(step)) }
    let report = try recover(record)
    let done = try #require(report.done.first)
    let paths = ["db-journal", "db-wal", "db"].map { rig.folder.path("tree").appending($0) }
    #expect(report.hindered.isEmpty && done.isFinished)
    #expect(done.failed.map(\.path) == paths)
    #expect(done.failed.map(\.remark).count { $0 == PlannedDatabase.brokenReason } == 2)
    #expect(try found() == Self.older)
    #expect(try rig.text("tree/other") == "other")
  }

  /// The same with nothing in the way: all of it comes.
  @Test(arguments: 0...2) func aDatabaseThatCanComeDoes(_ taken: Int) throws {
    var record = record
    record.steps[2].kept = 2
    let runner = StepRunner(record.roots)
    for step in record.steps.prefix(taken) { #expect(try runner.take(step)) }
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.isEmpty && done.steps == 4 - taken)
    #expect(try found() == ["db": "stored", "db-wal": "log of stored"])
  }

  /// What could not be recovered by the version that wrote no units is recovered step by step.
  @Test func aJournalWithoutUnitsIsTakenStepByStep() throws {
    let steps = record.steps.map { JournalStep(path: $0.path, source: $0.source, kept: $0.kept) }
    #expect(steps.units.map(\.count) == [1, 1, 1, 1])
    #expect(record.steps.units.map(\.count) == [3, 1])
    #expect([JournalStep]().units.isEmpty)
    let record = try #require(JournalRecord(reading: self.record.bytes))
    #expect(record.steps == self.record.steps)
  }
}
