import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

/// What real connections can do, and what they hold, while this program has its locks.
@Suite struct LocksTests {
  let rig: Fixture
  let shelf = Shelf()
  init() throws { rig = try Fixture("locks") }

  private func connect(_ statements: String...) throws -> SQLiteProcess {
    try SQLiteProcess(statements: statements, on: rig.database)
  }

  private func takeLocks() throws -> DatabaseLocks {
    guard let locks = try DatabaseLocks.take(rig.unit, in: rig.source) else {
      throw Program.Failure(description: "someone holds the locks")
    }
    return locks
  }

  /// Makes watching fail: each reading of the database finds it changed.
  private func disturbReading(_ other: Shelf? = nil) {
    (other ?? shelf).beforeReading = { [rig] member, times in
      if member == .database && times < 3 {
        try rig.source.setPermissions(times % 2 == 0 ? 0o600 : 0o644, of: "db")
        Host.pause(seconds: 0.01)
      }
    }
  }

  @Test func aWriterInARollbackModeWaitsAtItsCommit() throws {
    let connection = try connect("PRAGMA journal_mode=delete", "CREATE TABLE t (a)")
    let locks = try takeLocks()
    #expect(try connection.tell("SELECT count(*) FROM t") == "[(0,)]")
    try connection.tell("BEGIN")
    #expect(try connection.tell("INSERT INTO t VALUES (1)") == "[]")
    #expect(try connection.tell("COMMIT") == "database is locked")
    locks.release()
    #expect(try connection.tell("COMMIT") == "[]")
    #expect(connection.end() == 0)
  }

  @Test func whoeverWritesKeepsTheLocksAway() throws {
    let connection = try connect("PRAGMA journal_mode=delete", "CREATE TABLE t (a)")
    for (begin, isFree) in [("BEGIN IMMEDIATE", true), ("BEGIN EXCLUSIVE", false)] {
      try connection.tell(begin)
      let locks = try DatabaseLocks.take(rig.unit, in: rig.source)
      #expect((locks != nil) == isFree)
      _ = consume locks
      try connection.tell("COMMIT")
    }
    connection.end()
  }

  @Test func aWriterGoesOnWithItsLogButChecksNothingPoint() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t (a)",
      "INSERT INTO t VALUES (zeroblob(10000))")
    let locks = try takeLocks()
    #expect(try connection.tell("INSERT INTO t VALUES (2)") == "[]")
    for kind in ["RESTART", "TRUNCATE", "FULL"] {
      #expect(try connection.tell("PRAGMA wal_checkpoint(\(kind))").hasPrefix("[(1,"))
    }
    // Passive ones do what they can, which is nothing.
    #expect(try connection.tell("PRAGMA wal_checkpoint(PASSIVE)").hasSuffix(", 0)]"))
    locks.release()
    #expect(try connection.tell("PRAGMA wal_checkpoint(TRUNCATE)") == "[(0, 0, 0)]")
    connection.end()
  }

  @Test func aLogThatIsInTheDatabaseIsNotStartedAnew() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "INSERT INTO t VALUES (zeroblob(10000))",
      "PRAGMA wal_checkpoint(FULL)")
    let before = try rig.temporary.read("source/db-wal").prefix(32)
    let locks = try takeLocks()
    #expect(try connection.tell("INSERT INTO t VALUES (2)") == "[]")
    #expect(try rig.temporary.read("source/db-wal").prefix(32) == before)
    locks.release()
    try connection.tell("PRAGMA wal_checkpoint(FULL)")
    try connection.tell("INSERT INTO t VALUES (3)")
    #expect(try rig.temporary.read("source/db-wal").prefix(32) != before)
    connection.end()
  }

  @Test func theByteOfTheUsersIsNeverTaken() throws {
    let connection = try connect("PRAGMA journal_mode=wal", "CREATE TABLE t (a)")
    let locks = try takeLocks()
    let held = try Self.openFileLocks(of: rig.source.status("db-shm"))
    #expect(held == ["READ 123 124"])
    let onDatabase = try Self.openFileLocks(of: rig.source.status("db"))
    #expect(onDatabase == ["READ 1073741826 1073742335"])
    locks.release()
    #expect(try Self.openFileLocks(of: rig.source.status("db-shm")) == [])
    connection.end()
  }

  /// Apps wait while locks are held, some of them two seconds (docs/design.md).
  @Test func locksAreHeldTwoSecondsAtMost() { #expect(LockLimits().blocking == 2) }

  /// Locks of an open file stay as long as any descriptor of it is open: a program that another
  /// thread is just starting has copies of all.
  @Test func locksGoThoughCopiesOfTheirDescriptorsStay() throws {
    let connection = try connect("PRAGMA journal_mode=wal", "CREATE TABLE t (a)")
    for isReleased in [true, false] {
      let locks = try takeLocks()
      let copies = try ["db", "db-shm"].flatMap(duplicates)
      defer { for copy in copies { close(copy) } }
      #expect(copies.count == 2)
      if isReleased { locks.release() } else { _ = consume locks }
      #expect(try Self.openFileLocks(of: rig.source.status("db")) == [])
      #expect(try Self.openFileLocks(of: rig.source.status("db-shm")) == [])
    }
    connection.end()
  }

  /// Copies of all descriptors that this program has of a file of the directory.
  private func duplicates(of name: ByteString) throws -> [Int32] {
    let identity = try rig.source.status(name).identity
    let open = try Directory.open(path: "/proc/self/fd")
    // Other tests open and close descriptors meanwhile.
    let found = try open.names().filter {
      (try? open.statusFollowing($0).identity) == identity
    }
    return found.compactMap { Int32("\($0)") }.map { dup($0) }
  }

  @Test func anIndexThatNobodyUsesIsLeftAlone() throws {
    try rig.write(content(5000, 1), .database)
    try rig.write(content(5000, 2), .sharedMemory)
    let locks = try takeLocks()
    #expect(try Self.openFileLocks(of: rig.source.status("db-shm")) == [])
    locks.release()
  }

  /// The locks of open files on an inode, as the kernel lists them.
  private static func openFileLocks(of status: FileStatus) throws -> [String] {
    let list = try Descriptor.open(path: "/proc/locks").readAll(limit: 1 << 20) ?? []
    return String(decoding: list, as: UTF8.self).split(separator: "\n").compactMap { line in
      let parts = line.split(separator: " ")
      guard parts.count == 8, parts[1] == "OFDLCK",
        parts[5].hasSuffix(":\(status.identity.inode)")
      else { return nil }
      return "\(parts[3]) \(parts[6]) \(parts[7])"
    }
  }

  @Test func whatDoesNotHoldStillIsCopiedUnderLocks() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "INSERT INTO t VALUES (zeroblob(10000))")
    disturbReading()
    let found = try rig.capture(shelf, whenBusy: .deferred, holdingAtMost: Fixture.patientHold)
    let result = try #require(found)
    #expect(result.method == .locks)
    #expect(result.members.map(\.member) == [.database, .log])
    #expect(shelf.contents[.database] == (try rig.temporary.read("source/db")))
    #expect(shelf.contents[.log] == (try rig.temporary.read("source/db-wal")))
    // Nothing of it stays, and no lock.
    #expect(try rig.spool.names() == [])
    #expect(try connection.tell("PRAGMA wal_checkpoint(TRUNCATE)") == "[(0, 0, 0)]")
    connection.end()
  }

  @Test func whatIsLockedIsPutOffOrTakenAsItStands() throws {
    let connection = try connect("PRAGMA journal_mode=delete", "CREATE TABLE t (a)")
    try connection.tell("BEGIN EXCLUSIVE")
    disturbReading()
    #expect(try rig.capture(shelf, whenBusy: .deferred) == nil)
    // Nobody pauses within a transaction for so long.
    try rig.age()
    let start = Host.monotonicSeconds()
    disturbReading()
    let later = try rig.capture(Shelf(), whenBusy: .deferred)
    #expect(later?.method == .watching)
    let again = Shelf()
    again.beforeReading = { [rig] _, times in
      if times < 3 { try rig.source.setPermissions(times == 1 ? 0o600 : 0o644, of: "db") }
      Host.pause(seconds: 0.01)
    }
    let result = try #require(
      try rig.capture(again, whenBusy: .takeAsItStands(after: start + 0.5)))
    #expect(result.method == .asItStood)
    #expect(result.obstacle == .locked)
    #expect(Host.monotonicSeconds() - start > 0.5)
    #expect(again.contents[.database] == (try rig.temporary.read("source/db")))
    connection.end()
  }

  @Test func locksAreWaitedFor() throws {
    let program = """
      import sqlite3, sys, time
      connection = sqlite3.connect(sys.argv[1], isolation_level=None)
      connection.execute("BEGIN EXCLUSIVE")
      print("ready", flush=True)
      time.sleep(0.4)
      connection.execute("COMMIT")
      """
    let connection = try SQLiteProcess(["-c", program, rig.database])
    disturbReading()
    let deadline = Host.monotonicSeconds() + 600
    let found = try rig.capture(
      shelf, whenBusy: .takeAsItStands(after: deadline), holdingAtMost: Fixture.patientHold)
    let result = try #require(found)
    #expect(connection.end() == 0)
    #expect(result.method == .locks)
    #expect(Host.monotonicSeconds() < deadline)
  }

  @Test func whatChangesInSpiteOfLocksIsNotTaken() throws {
    // An app that locks in another way: its writes go on.
    try rig.write(content(3 << 20, 1), .database)
    let over = Flag()
    let workers = try Workers(count: 1, capacity: 1, name: "test")
    let path = rig.temporary.path("source")
    workers.submit {
      guard let file = try? Directory.open(path: path).openOrCreate("db") else { return }
      while !over.isUp {
        try? file.write([1])
        Host.pause(seconds: 0.0002)
      }
    }
    defer {
      over.raise()
      workers.finish()
    }
    // The other thread may be kept from running for long: then it is not seen to write.
    let end = Host.monotonicSeconds() + 300
    while Host.monotonicSeconds() < end {
      let result = try #require(try rig.capture(shelf))
      #expect(result.method != .asItStood || result.obstacle == .locked)
      if result.method == .asItStood { return }
    }
    Issue.record("it was always taken to be still")
  }

  @Test func whatCannotBeCopiedSoonEnoughIsPutOffOrTakenAsItStands() throws {
    try rig.write(content(3 << 20, 1), .database)
    for whenBusy in [WhenBusy.deferred, .takeAsItStands(after: Host.monotonicSeconds() + 600)] {
      let shelf = Shelf()
      disturbReading(shelf)
      // As on a volume without reflinks, which take no time.
      let plan = Faults.Plan(
        failing: [.clone], at: 1, number: EOPNOTSUPP, staysBroken: true)
      let result = try Faults.inject(plan) {
        try rig.capture(shelf, whenBusy: whenBusy, holdingAtMost: -1)
      }
      if case .deferred = whenBusy {
        #expect(result == nil)
      } else {
        #expect(result?.method == .asItStood && result?.obstacle == .tooLarge(seconds: -1))
      }
    }
  }

  @Test func aCopyThatTakesTooLongIsGivenUp() throws {
    try rig.write(content(3 << 20, 1), .database)
    let reader = try #require(try MemberReader(.database, of: rig.unit, in: rig.source))
    let past = Host.monotonicSeconds() - 1
    #expect(throws: TooLate.self) {
      try reader.makeCopy(in: rig.spool, since: past, limit: 0)
    }
    try reader.makeCopy(in: rig.spool, since: past, limit: 100)
    try shelf.store(reader)
    #expect(shelf.contents[.database] == content(3 << 20, 1))
  }

  @Test func copiesKeepHoles() throws {
    let file = try rig.source.openOrCreate("db")
    try file.truncate(to: 8 << 20)
    try file.seek(to: 4 << 20)
    try file.write(content(5000, 6))
    try #require(try file.status().allocated < 1 << 20, "no sparse files on this file system")
    let reader = try #require(try MemberReader(.database, of: rig.unit, in: rig.source))
    try reader.makeCopy(in: rig.spool, since: 0, limit: .infinity)
    var (holes, data): (UInt64, Int) = (0, 0)
    try reader.read(data: { data += $0.count }, hole: { holes += $0 })
    #expect(holes + UInt64(data) == 8 << 20)
    #expect(data < 1 << 20)
    try shelf.store(reader)
    #expect(shelf.contents[.database] == (try rig.temporary.read("source/db")))
  }

  /// A writer in a rollback mode would wait for these locks; one that appends to a log does not.
  @Test func aWriteAheadDatabaseInUseIsReadUnderItsLocksHoweverLongThatTakes() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "PRAGMA wal_autocheckpoint=1",
      "INSERT INTO t VALUES (0)")
    shelf.beforeReading = { member, times in
      guard member == .database else { return }
      // Each commit asks for a checkpoint, which the locks put off; no commit waits.
      if let said = try? connection.tell("INSERT INTO t VALUES (\(times))") {
        #expect(said == "[]")
      }
    }
    // As on a volume without reflinks, which take no time.
    let plan = Faults.Plan(failing: [.clone], at: 1, number: EOPNOTSUPP, staysBroken: true)
    let result = try Faults.inject(plan) { try rig.capture(shelf, holdingAtMost: -1) }
    #expect(result?.method == .locks)
    let log = try #require(shelf.contents[.log])
    #expect(log.count > 4096 * 2)
    connection.end()
  }

  @Test func readingUnderLocksEndsInTime() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "PRAGMA wal_autocheckpoint=1",
      "INSERT INTO t VALUES (0)")
    shelf.beforeReading = { member, times in
      if member == .database { _ = try? connection.tell("INSERT INTO t VALUES (\(times))") }
    }
    let plan = Faults.Plan(failing: [.clone], at: 1, number: EOPNOTSUPP, staysBroken: true)
    let result = try Faults.inject(plan) {
      try rig.capture(shelf, holdingAtMost: -1, readingAtMost: -1)
    }
    #expect(result?.obstacle == .tooLarge(seconds: -1))
    #expect(result?.obstacle.map { "\($0)" }?.contains("took longer") == true)
    connection.end()
  }

  /// Without a journal on the disk nothing undoes what a transaction has written so far.
  @Test(arguments: ["memory", "off"])
  func aWriterThatPausesWithinATransactionIsNotTakenToBeStill(mode: String) throws {
    let connection = try connect(
      "PRAGMA journal_mode=\(mode)", "CREATE TABLE t (a)", "PRAGMA cache_size=1",
      "PRAGMA cache_spill=1", "BEGIN",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 200) "
        + "INSERT INTO t SELECT randomblob(3000) FROM n")
    Host.pause(seconds: 0.05)
    #expect(try rig.capture(shelf, whenBusy: .deferred) == nil)
    #expect(try connection.tell("COMMIT") == "[]")
    Host.pause(seconds: 0.05)
    #expect(try rig.capture(Shelf(), whenBusy: .deferred)?.method == .watching)
    connection.end()
  }

  @Test func aFullSpoolIsAnObstacle() throws {
    try rig.write(content(1000, 1), .database)
    try rig.age()
    disturbReading()
    let plan = Faults.Plan(failing: [.create], at: 1, number: ENOSPC)
    let result = try Faults.inject(plan) { try rig.capture(shelf) }
    #expect(result?.method == .asItStood)
    guard case .failed(let error)? = result?.obstacle else {
      Issue.record("\(String(describing: result?.obstacle))")
      return
    }
    #expect(error.number == ENOSPC && error.operation == .create)
    #expect(shelf.contents[.database] == content(1000, 1))
  }
}

/// Something that one thread tells another.
private final class Flag: Sendable {
  private let state = Mutex(false)

  var isUp: Bool { state.withLock { $0 } }

  func raise() { state.withLock { $0 = true } }
}
