import Glibc
import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

/// Databases with connections that are within a transaction.
struct TransactionTests {
  let fixture: Fixture
  let shelf = Shelf()
  init() throws { fixture = try Fixture("transactions") }

  private func connect(_ statements: String...) throws -> SQLiteProcess {
    try SQLiteProcess(statements: statements, on: fixture.database)
  }

  /// Statements that begin a transaction and write a part of it to the database file.
  private static let half = [
    "PRAGMA cache_size=1", "PRAGMA cache_spill=1", "BEGIN",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 200) "
      + "INSERT INTO t SELECT randomblob(3000) FROM n",
  ]

  /// Without a journal on the disk, a partial transaction cannot be rolled back, however long ago
  /// the last write was. Another program may have left a journal that has ended.
  @Test(arguments: ["memory", "off"], [nil, 0, 3600] as [Int64?])
  func aPauseWithinATransactionIsNotTakenForItsEnd(mode: String, journalAge: Int64?) throws {
    let connection = try connect("PRAGMA journal_mode=\(mode)", "CREATE TABLE t (a)")
    for statement in Self.half { try connection.execute(statement) }
    if let journalAge {
      try fixture.write([UInt8](repeating: 0, count: 512), .journal)
      let old = Timestamp(seconds: 1_700_000_000 - journalAge, nanoseconds: 0)
      try fixture.source.setModified(old, of: "db-journal")
    }
    Host.pause(seconds: 0.05)
    #expect(try fixture.capture(shelf, whenBusy: .deferred) == nil)
    try fixture.age()
    #expect(try fixture.capture(shelf, whenBusy: .deferred) == nil)
    let result = try fixture.capture(shelf, whenBusy: .copyUnlocked(after: 0))
    #expect(result?.method == .unlocked && result?.conflict == .locked)
    #expect(try connection.execute("COMMIT") == "[]")
    Host.pause(seconds: 0.05)
    #expect(try fixture.capture(Shelf(), whenBusy: .deferred)?.method == .watching)
    connection.end()
  }

  /// A transaction that has not written to the database file yet does not affect a copy.
  @Test(arguments: ["memory", "delete"])
  func aTransactionInMemoryDoesNotPreventWatching(mode: String) throws {
    let connection = try connect(
      "PRAGMA journal_mode=\(mode)", "CREATE TABLE t (a)", "BEGIN IMMEDIATE",
      "INSERT INTO t VALUES (1)")
    Host.pause(seconds: 0.05)
    #expect(try fixture.capture(shelf, whenBusy: .deferred)?.method == .watching)
    connection.end()
  }

  /// Programs in exclusive mode hold their locks between transactions, but their journals show when
  /// a transaction has ended.
  @Test(arguments: ["delete", "truncate", "persist"])
  func aDatabaseOfAProgramInExclusiveModeIsCapturedByWatching(mode: String) throws {
    let connection = try connect(
      "PRAGMA locking_mode=exclusive", "PRAGMA journal_mode=\(mode)", "CREATE TABLE t (a)",
      "INSERT INTO t VALUES (1)")
    Host.pause(seconds: 0.05)
    #expect(try fixture.capture(shelf, whenBusy: .deferred)?.method == .watching)
    for statement in Self.half { try connection.execute(statement) }
    Host.pause(seconds: 0.05)
    // The journal in the copy rolls the partial transaction back.
    let result = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(result?.method == .watching)
    #expect(result?.members.map(\.member) == [.database, .journal])
    connection.end()
  }

  /// No program can hold locks on such a volume.
  @Test(arguments: [ENOLCK, EOPNOTSUPP])
  func aVolumeWithoutLocksDoesNotPreventWatching(number: Int32) throws {
    try fixture.write(content(5000, 1), .database)
    try fixture.age()
    let plan = Faults.Plan(failing: [.lock], at: 1, number: number, failsRepeatedly: true)
    let result = try Faults.inject(plan) { try fixture.capture(shelf, whenBusy: .deferred) }
    #expect(plan.hasFired && result?.method == .watching)
  }
}
