import DeviceDiscovery
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// The recovery of a restore that was interrupted while it replaced a database, and that can no
/// longer be finished, rolls the database back, so that it stays with its own log.
@Suite(.spreadScans) struct RecoveredDatabaseTests {
  private static let older = ["db": "older", "db-wal": "log of older", "db-journal": "of older"]
  private let fixture: Fixture
  private let record: JournalRecord

  /// Interrupts before the first of three steps: the existing log goes to the trash, then the new
  /// log and database are put in place; a further file is independent.
  init() throws {
    fixture = try Fixture(inMemory: true)
    for (name, text) in Self.older {
      try fixture.directory.write(text, at: ByteString("tree/\(name)"))
    }
    try fixture.directory.write("stored", at: "tree/.sandboxctl-restore-1/tree/db")
    try fixture.directory.write("log of stored", at: "tree/.sandboxctl-restore-1/tree/db-wal")
    try fixture.directory.write("other", at: "tree/.sandboxctl-restore-1/tree/other")
    try fixture.directory.write("", at: "tree/.sandboxctl-restore-1/lock")
    let root = fixture.directory.path("tree")
    let staging = root.appending(".sandboxctl-restore-1/tree")
    var record = JournalRecord(
      operation: "restore", time: Host.now(), subjects: ["folders/tree"],
      containers: ["folders/tree"])
    (record.state, record.staging) = (.moving, [root])
    record.roots = [
      JournalRecord.Root(path: root, inode: try Directory.open(path: root).status().identity.inode),
      JournalRecord.Root(
        path: staging, inode: try Directory.open(path: staging).status().identity.inode),
      JournalRecord.Root(path: fixture.directory.path(Self.kept(record)), inode: nil),
    ]
    record.steps = [
      JournalStep(path: "db-journal", kept: 2, item: 0),
      JournalStep(path: "db-wal", source: 1, kept: 2, item: 0),
      // It did not exist when the restore was planned, so no file is kept.
      JournalStep(path: "db", source: 1, item: 0),
      JournalStep(path: "other", source: 1),
    ]
    self.record = record
  }

  /// Where the operation keeps replaced files.
  private static func kept(_ record: JournalRecord) -> ByteString {
    ByteString("tree/.sandboxctl/trash/\(record.id)/folders/tree")
  }

  private func recover(_ record: JournalRecord) throws -> RecoveryReport {
    let root = fixture.directory.path("tree")
    let directory = try ControlDirectory.make(ControlDirectory.journal, root: root)
    try OperationJournal.write(record, in: directory)
    return try Recovery(
      Device.find(root: root, layout: .folder), policy: Fixture.policy(.folder)
    ).run()
  }

  private func found() throws -> [String: String] {
    var found: [String: String] = [:]
    for name in try fixture.names("tree") where name.description.hasPrefix("db") {
      found[name.description] = try fixture.text(ByteString("tree").appending(name))
    }
    return found
  }

  /// The number of steps taken before the interruption.
  @Test(arguments: 0...2) func aDatabaseThatCannotBeRestoredIsUnchanged(_ taken: Int) throws {
    let runner = StepRunner(record.roots)
    for step in record.steps.prefix(taken) { #expect(try runner.apply(step)) }
    let report = try recover(record)
    let done = try #require(report.done.first)
    let paths = ["db-journal", "db-wal", "db"].map { fixture.directory.path("tree").appending($0) }
    #expect(report.blocked.isEmpty && done.isFinished)
    #expect(done.failed.map(\.path) == paths)
    #expect(done.failed.map(\.remark).count { $0 == JournalStep.brokenItemReason } == 2)
    #expect(try found() == Self.older)
    #expect(try fixture.text("tree/other") == "other")
  }

  /// The database was restored completely, and then the app wrote to it: its new log is not
  /// mistaken for the old one.
  @Test func filesThatTheAppWroteSinceAreKept() throws {
    var record = record
    record.steps.keepThird(in: 2)
    let runner = StepRunner(record.roots)
    for step in record.steps.prefix(3) { #expect(try runner.apply(step)) }
    try fixture.directory.write("of what came", at: "tree/db-journal")
    try fixture.directory.write("log of what came", at: "tree/db-wal")
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.isEmpty && done.steps == 1)
    #expect(
      try found() == [
        "db": "stored", "db-wal": "log of what came", "db-journal": "of what came",
      ])
  }

  /// Only an orphaned journal of a database had to be moved, and was moved; then the app wrote to
  /// the database.
  @Test func aMovedLogIsNotMovedAgain() throws {
    var record = record
    record.steps = [JournalStep(path: "db-journal", kept: 2, item: 0), record.steps[3]]
    #expect(try StepRunner(record.roots).apply(record.steps[0]))
    try fixture.directory.write("of later", at: "tree/db-journal")
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.isEmpty && done.steps == 1)
    #expect(try fixture.text("tree/db-journal") == "of later")
  }

  /// The new files cannot be moved back: the old ones stay in the trash, and the recovery rolls
  /// back everything.
  @Test func aFailedRollbackIsLeftToTheRecovery() throws {
    // Two renames put log and journal in place, and the third would move the log back.
    let faults = Faults.Plan(failing: [.rename], at: 3, number: 5, failsRepeatedly: true)
    let failure = #expect(throws: StepRunner.Failure.self) {
      try Faults.inject(faults) {
        try StepRunner(record.roots, isFresh: true).applyAll(record.steps.prefix(3))
      }
    }
    #expect(failure?.step == 2 && failure?.remaining?.step.path == "db-wal")
    #expect(try found() == ["db": "older", "db-wal": "log of stored"])
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.count == 3)
    #expect(try found() == Self.older)
  }

  /// The name under which a file would be kept is occupied: the file of that name is not restored
  /// in its place.
  @Test func aFileKeptUnderANumberedNameIsRestored() throws {
    try fixture.directory.write("another one's", at: Self.kept(record).appending("db-wal"))
    let runner = StepRunner(record.roots, isFresh: true)
    let failure = #expect(throws: StepRunner.Failure.self) {
      try runner.applyAll(record.steps.prefix(3))
    }
    #expect(failure?.step == 2 && failure?.remaining == nil)
    #expect(try found() == Self.older)
    #expect(try fixture.text(Self.kept(record).appending("db-wal")) == "another one's")
  }

  /// A staged file is missing: the existing database is not mistaken for it.
  @Test func aMissingStagedFileReplacesNothing() throws {
    var record = record
    record.steps.keepThird(in: 2)
    try Directory.open(path: fixture.directory.path("tree/.sandboxctl-restore-1/tree")).remove("db")
    let failure = #expect(throws: StepRunner.Failure.self) {
      try StepRunner(record.roots, isFresh: true).applyAll(record.steps.prefix(3))
    }
    #expect(failure?.step == 2 && failure?.error.isStale == true)
    #expect(try found() == Self.older)
  }

  /// The journal records that all steps were executed before any staged file is deleted.
  @Test func stepsAreSettledBeforeTheStagingIsDeleted() throws {
    let settled = record.settled
    #expect(settled.steps.isEmpty && settled.roots.isEmpty && settled.state == .moving)
    // The staged log is deleted already, the database is not.
    try Directory.open(path: fixture.directory.path("tree/.sandboxctl-restore-1/tree")).remove(
      "db-wal")
    let done = try #require(try recover(settled).done.first)
    #expect(done.isFinished && done.steps == 0 && done.failed.isEmpty)
    #expect(try found() == Self.older)
  }

  /// The same without a conflict: the whole database is restored.
  @Test(arguments: 0...2) func aDatabaseThatCanBeRestoredIsRestored(_ taken: Int) throws {
    var record = record
    record.steps.keepThird(in: 2)
    let runner = StepRunner(record.roots)
    for step in record.steps.prefix(taken) { #expect(try runner.apply(step)) }
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.isEmpty && done.steps == 4 - taken)
    #expect(try found() == ["db": "stored", "db-wal": "log of stored"])
  }

  // MARK: - Programs that open the database before the recovery

  /// The steps of a restore that moves the existing database away before anything is put in place.
  private var clearing: JournalRecord {
    var record = record
    record.steps = JournalSteps(
      [JournalStep(path: "db", kept: 2, item: 0)] + record.steps.prefix(3) + record.steps.suffix(1))
    return record
  }

  /// Writes a file as a program that runs after the interruption.
  private func writeLater(_ text: String, at path: ByteString) throws {
    try fixture.directory.write(text, at: path)
    let above = try Directory.open(path: fixture.directory.path(path.parent))
    let now = Host.now()
    try above.setModified(
      Timestamp(seconds: now.seconds + 1, nanoseconds: now.nanoseconds),
      of: path.lastComponent ?? "")
  }

  private func trash(_ record: JournalRecord) throws -> Set<String> {
    let path = Self.kept(record)
    return Set(try fixture.names(path).map { try fixture.text(path.appending($0)) })
  }

  @Test(arguments: 0...4) func aDatabaseThatWasMovedAwayIsRestored(_ taken: Int) throws {
    let runner = StepRunner(clearing.roots)
    for step in clearing.steps.prefix(taken) { #expect(try runner.apply(step)) }
    let done = try #require(try recover(clearing).done.first)
    #expect(done.isFinished && done.failed.isEmpty && done.steps == 5 - taken)
    #expect(try found() == ["db": "stored", "db-wal": "log of stored"])
    #expect(try trash(record) == Set(Self.older.values))
  }

  /// SQLite deletes a log that has no database, and creates both.
  @Test(arguments: 1...3) func aDatabaseThatAProgramCreatedInBetweenIsKept(_ taken: Int) throws {
    let runner = StepRunner(clearing.roots)
    for step in clearing.steps.prefix(taken) { #expect(try runner.apply(step)) }
    let tree = try fixture.tree()
    for name in ["db-wal", "db-journal"] as [ByteString] { try? tree.remove(name) }
    try writeLater("of the program", at: "tree/db")
    let done = try #require(try recover(clearing).done.first)
    if taken < 3 {
      #expect(done.failed.isEmpty)
      #expect(try found() == ["db": "stored", "db-wal": "log of stored"])
    } else {
      // The restored log is gone, so the previous state returns.
      #expect(done.failed.map(\.path.lastComponent) == ["db", "db-journal", "db-wal"])
      #expect(try found() == Self.older)
    }
    #expect(try trash(record).contains("of the program"))
  }

  /// All files of the database have their second names in the trash before any of them is moved
  /// away.
  @Test func aLogThatIsDeletedInBetweenIsInTheTrash() throws {
    let tree = fixture.directory.path("tree")
    // The first step removes the name of the database; a program then deletes the log.
    let deletes = Faults.Plan(before: [.rename], at: 2) {
      guard let tree = try? Directory.open(path: tree) else { return }
      if (try? tree.status("db")) == nil { try? tree.remove("db-wal") }
    }
    let runner = StepRunner(clearing.roots, isFresh: true)
    _ = try Faults.inject(deletes) { try runner.applyAll(clearing.steps.prefix(4)) }
    #expect(deletes.hasFired)
    #expect(try found() == ["db": "stored", "db-wal": "log of stored"])
    #expect(try trash(record) == Set(Self.older.values))
  }

  /// In a journal of an older version, which left the database at its path, SQLite has written the
  /// new log into the database. The restored database is not put in place without its log.
  @Test(arguments: [true, false]) func aLogThatWasUsedBeforeTheRecoveryIsReported(
    isGone: Bool
  ) throws {
    var record = record
    record.steps.keepThird(in: 2)
    let runner = StepRunner(record.roots)
    for step in record.steps.prefix(2) { #expect(try runner.apply(step)) }
    if isGone {
      try fixture.tree().remove("db-wal")
    } else {
      try writeLater("written since", at: "tree/db-wal")
    }
    let done = try #require(try recover(record).done.first)
    #expect(done.isFinished && done.failed.count == 3, "\(done.failed)")
    #expect(done.failed.contains { $0.remark == JournalStep.changedItemReason })
    #expect(try found() == Self.older)
    #expect(try isGone || trash(record).contains("written since"))
    #expect(try fixture.text("tree/other") == "other")
  }

  /// A program has written a log next to a file that is still to be replaced.
  @Test func aLogThatAppearsBeforeTheRecoveryKeepsItsDatabase() throws {
    try writeLater("log of the present one", at: "tree/other-wal")
    try fixture.directory.write("present", at: "tree/other")
    var record = record
    record.steps = [JournalStep(path: "other", source: 1, kept: 2)]
    let done = try #require(try recover(record).done.first)
    #expect(done.failed.map(\.path.lastComponent) == ["other"])
    #expect(try fixture.text("tree/other") == "present")
    #expect(try fixture.text("tree/other-wal") == "log of the present one")
  }

  /// A journal of an older version, which does not group steps into units, is recovered step by
  /// step.
  @Test func aJournalWithoutUnitsIsTakenStepByStep() throws {
    let steps = record.steps.map { JournalStep(path: $0.path, source: $0.source, kept: $0.kept) }
    #expect(JournalSteps(steps).items.map(\.count) == [1, 1, 1, 1])
    #expect(record.steps.items.map(\.count) == [3, 1])
    let record = try #require(JournalRecord(reading: self.record.bytes))
    #expect(record.steps == self.record.steps)
  }
}

extension JournalSteps {
  /// Makes the third step keep the replaced file below a root.
  fileprivate mutating func keepThird(in root: Int) {
    var steps = Array(self)
    steps[2].kept = root
    self = JournalSteps(steps)
  }
}
