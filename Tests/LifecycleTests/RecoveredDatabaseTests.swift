import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// A restore that was interrupted while it gave a database its place, of which not all can come any more:
/// the recovery takes back what came, so that the database stays with its own log.
@Suite(.spreadScans) struct RecoveredDatabaseTests {
  private static let older = ["db": "older", "db-wal": "log of older", "db-journal": "of older"]
  private let rig: Fixture
  private let record: JournalRecord

  /// Interrupted before the first of three steps: what was there of the log goes to the trash, then log
  /// and database come; a further file stands alone.
  init() throws {
    rig = try Fixture(inMemory: true)
    for (name, text) in Self.older {
      try rig.directory.write(text, at: ByteString("tree/\(name)"))
    }
    try rig.directory.write("stored", at: "tree/.sandboxctl-restore-1/tree/db")
    try rig.directory.write("log of stored", at: "tree/.sandboxctl-restore-1/tree/db-wal")
    try rig.directory.write("other", at: "tree/.sandboxctl-restore-1/tree/other")
    try rig.directory.write("", at: "tree/.sandboxctl-restore-1/lock")
    let root = rig.directory.path("tree")
    let staging = root.appending(".sandboxctl-restore-1/tree")
    var record = JournalRecord(
      operation: "restore", time: Host.now(), subjects: ["folders/tree"],
      containers: ["folders/tree"])
    (record.state, record.staging) = (.moving, [root])
    record.roots = [
      JournalRecord.Root(path: root, inode: try Directory.open(path: root).status().identity.inode),
      JournalRecord.Root(
        path: staging, inode: try Directory.open(path: staging).status().identity.inode),
      JournalRecord.Root(path: rig.directory.path(Self.kept(record)), inode: nil),
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

  /// Where its operation keeps what gives way.
  private static func kept(_ record: JournalRecord) -> ByteString {
    ByteString("tree/.sandboxctl/trash/\(record.id)/folders/tree")
  }

  private func recover(_ record: JournalRecord) throws -> RecoveryReport {
    let root = rig.directory.path("tree")
    let directory = try ControlDirectory.make(ControlDirectory.journal, root: root)
    try OperationJournal.write(record, in: directory)
    return try Recovery(
      Device.find(root: root, layout: .folder), policy: Fixture.policy(.folder)
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
    let paths = ["db-journal", "db-wal", "db"].map { rig.directory.path("tree").appending($0) }
    #expect(report.blocked.isEmpty && done.isFinished)
    #expect(done.failed.map(\.path) == paths)
    #expect(done.failed.map(\.remark).count { $0 == PlannedDatabase.brokenReason } == 2)
    #expect(try found() == Self.older)
    #expect(try rig.text("tree/other") == "other")
  }

  /// All of the database had come, and then the app wrote to it: its new log is not taken for the old one.
  @Test func whatTheAppWroteSinceStays() throws {
    var record = record
    record.steps.keepThird(in: 2)
    let runner = StepRunner(record.roots)
    for step in record.steps.prefix(3) { #expect(try runner.take(step)) }
    try rig.directory.write("of what came", at: "tree/db-journal")
    try rig.directory.write("log of what came", at: "tree/db-wal")
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.isEmpty && done.steps == 1)
    #expect(
      try found() == [
        "db": "stored", "db-wal": "log of what came", "db-journal": "of what came",
      ])
  }

  /// Of a database only another one's log had to go, and went; then the app wrote to it.
  @Test func aLogThatWentDoesNotGoTwice() throws {
    var record = record
    record.steps = [JournalStep(path: "db-journal", kept: 2, unit: 0), record.steps[3]]
    #expect(try StepRunner(record.roots).take(record.steps[0]))
    try rig.directory.write("of later", at: "tree/db-journal")
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.isEmpty && done.steps == 1)
    #expect(try rig.text("tree/db-journal") == "of later")
  }

  /// What came cannot go back: what went stays where it is kept, and the recovery takes back all of it.
  @Test func whatCannotBeTakenBackIsLeftToTheRecovery() throws {
    // Two renames give log and journal their places, and the third would take the log back.
    let faults = Faults.Plan(failing: [.rename], at: 3, number: 5, staysBroken: true)
    let failure = #expect(throws: UnitFailure.self) {
      try Faults.inject(faults) {
        try StepRunner(record.roots, isFresh: true).takeAll(record.steps.prefix(3))
      }
    }
    #expect(failure?.step == 2 && failure?.left?.step.path == "db-wal")
    #expect(try found() == ["db": "older", "db-wal": "log of stored"])
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.count == 3)
    #expect(try found() == Self.older)
  }

  /// A name at which something would be kept is taken: what is there already is not brought back for it.
  @Test func whatIsKeptUnderANumberComesBack() throws {
    try rig.directory.write("another one's", at: Self.kept(record).appending("db-wal"))
    let runner = StepRunner(record.roots, isFresh: true)
    let failure = #expect(throws: UnitFailure.self) {
      try runner.takeAll(record.steps.prefix(3))
    }
    #expect(failure?.step == 2 && failure?.left == nil)
    #expect(try found() == Self.older)
    #expect(try rig.text(Self.kept(record).appending("db-wal")) == "another one's")
  }

  /// Of what was staged something is missing: the database that is there is not taken for it.
  @Test func whatIsNotStagedAnyMoreTakesNothingAway() throws {
    var record = record
    record.steps.keepThird(in: 2)
    try Directory.open(path: rig.directory.path("tree/.sandboxctl-restore-1/tree")).remove("db")
    let failure = #expect(throws: UnitFailure.self) {
      try StepRunner(record.roots, isFresh: true).takeAll(record.steps.prefix(3))
    }
    #expect(failure?.step == 2 && failure?.error.isStale == true)
    #expect(try found() == Self.older)
  }

  /// Once all steps are taken the journal says so, before anything of the staging goes.
  @Test func stepsAreSettledBeforeTheStagingGoes() throws {
    let settled = record.settled
    #expect(settled.steps.isEmpty && settled.roots.isEmpty && settled.state == .moving)
    // Of what is staged the log is gone already, and the database is not.
    try Directory.open(path: rig.directory.path("tree/.sandboxctl-restore-1/tree")).remove("db-wal")
    let done = try #require(try recover(settled).done.first)
    #expect(done.isFinished && done.steps == 0 && done.failed.isEmpty)
    #expect(try found() == Self.older)
  }

  /// The same with nothing in the way: all of it comes.
  @Test(arguments: 0...2) func aDatabaseThatCanComeDoes(_ taken: Int) throws {
    var record = record
    record.steps.keepThird(in: 2)
    let runner = StepRunner(record.roots)
    for step in record.steps.prefix(taken) { #expect(try runner.take(step)) }
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.isEmpty && done.steps == 4 - taken)
    #expect(try found() == ["db": "stored", "db-wal": "log of stored"])
  }

  /// What could not be recovered by the version that wrote no units is recovered step by step.
  @Test func aJournalWithoutUnitsIsTakenStepByStep() throws {
    let steps = record.steps.map { JournalStep(path: $0.path, source: $0.source, kept: $0.kept) }
    #expect(JournalSteps(steps).units.map(\.count) == [1, 1, 1, 1])
    #expect(record.steps.units.map(\.count) == [3, 1])
    let record = try #require(JournalRecord(reading: self.record.bytes))
    #expect(record.steps == self.record.steps)
  }
}

extension JournalSteps {
  /// Has the third step keep what gives way below a root.
  fileprivate mutating func keepThird(in root: Int) {
    var steps = Array(self)
    steps[2].kept = root
    self = JournalSteps(steps)
  }
}
