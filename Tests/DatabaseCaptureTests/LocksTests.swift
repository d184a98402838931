import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

/// The statements that real connections can run, and the locks that they see, while this program
/// holds its locks.
struct LocksTests {
  let fixture: Fixture
  let shelf = Shelf()
  init() throws { fixture = try Fixture("locks") }

  private func connect(_ statements: String...) throws -> SQLiteProcess {
    try SQLiteProcess(statements: statements, on: fixture.database)
  }

  private func acquireLocks() throws -> DatabaseCapture.Locks {
    guard let locks = try DatabaseCapture.Locks.acquire(fixture.unit, in: fixture.source) else {
      throw Program.Failure(description: "someone holds the locks")
    }
    return locks
  }

  /// Makes watching fail by changing the database during each read.
  private func disturbReading(_ other: Shelf? = nil) {
    (other ?? shelf).beforeReading = { [fixture] member, times in
      if member == .database && times < 3 {
        try fixture.source.setPermissions(times % 2 == 0 ? 0o600 : 0o644, of: "db")
        Host.pause(seconds: 0.01)
      }
    }
  }

  @Test func aWriterInARollbackModeWaitsAtItsCommit() throws {
    let connection = try connect("PRAGMA journal_mode=delete", "CREATE TABLE t (a)")
    let locks = try acquireLocks()
    #expect(try connection.execute("SELECT count(*) FROM t") == "[(0,)]")
    try connection.execute("BEGIN")
    #expect(try connection.execute("INSERT INTO t VALUES (1)") == "[]")
    #expect(try connection.execute("COMMIT") == "database is locked")
    locks.release()
    #expect(try connection.execute("COMMIT") == "[]")
    #expect(connection.end() == 0)
  }

  @Test func aWriterPreventsTheLocks() throws {
    let connection = try connect("PRAGMA journal_mode=delete", "CREATE TABLE t (a)")
    for (begin, isFree) in [("BEGIN IMMEDIATE", true), ("BEGIN EXCLUSIVE", false)] {
      try connection.execute(begin)
      let locks = try DatabaseCapture.Locks.acquire(fixture.unit, in: fixture.source)
      #expect((locks != nil) == isFree)
      _ = consume locks
      try connection.execute("COMMIT")
    }
    connection.end()
  }

  @Test func aWriterContinuesWithItsLogButCannotCheckpoint() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t (a)",
      "INSERT INTO t VALUES (zeroblob(10000))")
    let locks = try acquireLocks()
    #expect(try connection.execute("INSERT INTO t VALUES (2)") == "[]")
    for kind in ["RESTART", "TRUNCATE", "FULL"] {
      #expect(try connection.execute("PRAGMA wal_checkpoint(\(kind))").hasPrefix("[(1,"))
    }
    // A passive checkpoint copies as much as it can, which is nothing.
    #expect(try connection.execute("PRAGMA wal_checkpoint(PASSIVE)").hasSuffix(", 0)]"))
    locks.release()
    #expect(try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") == "[(0, 0, 0)]")
    connection.end()
  }

  @Test func aCheckpointedLogIsNotRestarted() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "INSERT INTO t VALUES (zeroblob(10000))",
      "PRAGMA wal_checkpoint(FULL)")
    let before = try fixture.temporary.read("source/db-wal").prefix(32)
    let locks = try acquireLocks()
    #expect(try connection.execute("INSERT INTO t VALUES (2)") == "[]")
    #expect(try fixture.temporary.read("source/db-wal").prefix(32) == before)
    locks.release()
    try connection.execute("PRAGMA wal_checkpoint(FULL)")
    try connection.execute("INSERT INTO t VALUES (3)")
    #expect(try fixture.temporary.read("source/db-wal").prefix(32) != before)
    connection.end()
  }

  @Test func theLockBytesOfConnectionsAreNotTaken() throws {
    let connection = try connect("PRAGMA journal_mode=wal", "CREATE TABLE t (a)")
    let locks = try acquireLocks()
    let held = try Self.openFileLocks(of: fixture.source.status("db-shm"))
    #expect(held == ["READ 123 124"])
    let onDatabase = try Self.openFileLocks(of: fixture.source.status("db"))
    #expect(onDatabase == ["READ 1073741826 1073742335"])
    locks.release()
    #expect(try Self.openFileLocks(of: fixture.source.status("db-shm")) == [])
    connection.end()
  }

  /// Apps wait while locks are held, and some of them wait at most two seconds (docs/design.md).
  @Test func locksAreHeldAtMostTwoSeconds() { #expect(DatabaseCapture.LockLimits().blocking == 2) }

  /// An open file's locks last as long as any descriptor refers to it, and a program that another
  /// thread is starting has copies of all descriptors.
  @Test func locksAreReleasedDespiteCopiesOfDescriptors() throws {
    let connection = try connect("PRAGMA journal_mode=wal", "CREATE TABLE t (a)")
    for isReleased in [true, false] {
      let locks = try acquireLocks()
      let copies = try ["db", "db-shm"].flatMap(duplicates)
      defer { for copy in copies { close(copy) } }
      #expect(copies.count == 2)
      if isReleased { locks.release() } else { _ = consume locks }
      #expect(try Self.openFileLocks(of: fixture.source.status("db")) == [])
      #expect(try Self.openFileLocks(of: fixture.source.status("db-shm")) == [])
    }
    connection.end()
  }

  /// Returns copies of all descriptors that this process has for a file in the directory.
  private func duplicates(of name: ByteString) throws -> [Int32] {
    let identity = try fixture.source.status(name).identity
    let open = try Directory.open(path: "/proc/self/fd")
    // Other tests open and close descriptors concurrently.
    let found = try open.names().filter {
      (try? open.statusFollowing($0).identity) == identity
    }
    return found.compactMap { Int32("\($0)") }.map { dup($0) }
  }

  @Test func anUnusedIndexIsNotLocked() throws {
    try fixture.write(content(5000, 1), .database)
    try fixture.write(content(5000, 2), .sharedMemory)
    let locks = try acquireLocks()
    #expect(try Self.openFileLocks(of: fixture.source.status("db-shm")) == [])
    locks.release()
  }

  /// Returns the locks of open files on an inode, as listed by the kernel.
  static func openFileLocks(of status: FileStatus) throws -> [String] {
    let list = try Descriptor.open(path: "/proc/locks").readAll(limit: 1 << 20) ?? []
    return String(decoding: list, as: UTF8.self).split(separator: "\n").compactMap { line in
      let parts = line.split(separator: " ")
      guard parts.count == 8, parts[1] == "OFDLCK",
        parts[5].hasSuffix(":\(status.identity.inode)")
      else { return nil }
      return "\(parts[3]) \(parts[6]) \(parts[7])"
    }
  }

  @Test func aChangingDatabaseIsCopiedUnderLocks() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "INSERT INTO t VALUES (zeroblob(10000))")
    disturbReading()
    let found = try fixture.capture(shelf, whenBusy: .deferred, holdingAtMost: Fixture.patientHold)
    let result = try #require(found)
    #expect(result.method == .locks)
    #expect(result.members.map(\.member) == [.database, .log])
    #expect(shelf.contents[.database] == (try fixture.temporary.read("source/db")))
    #expect(shelf.contents[.log] == (try fixture.temporary.read("source/db-wal")))
    // Neither a copy nor a lock is left behind.
    #expect(try fixture.spool.names() == [])
    #expect(try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") == "[(0, 0, 0)]")
    connection.end()
  }

  @Test func aLockedDatabaseIsDeferredOrCopiedUnlocked() throws {
    let connection = try connect("PRAGMA journal_mode=delete", "CREATE TABLE t (a)")
    try connection.execute("BEGIN EXCLUSIVE")
    disturbReading()
    #expect(try fixture.capture(shelf, whenBusy: .deferred) == nil)
    let start = Host.monotonicSeconds()
    let again = Shelf()
    again.beforeReading = { [fixture] _, times in
      if times < 3 { try fixture.source.setPermissions(times == 1 ? 0o600 : 0o644, of: "db") }
      Host.pause(seconds: 0.01)
    }
    let result = try #require(
      try fixture.capture(again, whenBusy: .copyUnlocked(after: start + 0.5)))
    #expect(result.method == .unlocked)
    #expect(result.conflict == .locked)
    #expect(Host.monotonicSeconds() - start > 0.5)
    #expect(again.contents[.database] == (try fixture.temporary.read("source/db")))
    connection.end()
  }

  @Test func theCaptureWaitsForLocks() throws {
    let program = """
      import sqlite3, sys, time
      connection = sqlite3.connect(sys.argv[1], isolation_level=None)
      connection.execute("BEGIN EXCLUSIVE")
      print("ready", flush=True)
      time.sleep(0.4)
      connection.execute("COMMIT")
      """
    let connection = try SQLiteProcess(["-c", program, fixture.database])
    disturbReading()
    let deadline = Host.monotonicSeconds() + 600
    let found = try fixture.capture(
      shelf, whenBusy: .copyUnlocked(after: deadline), holdingAtMost: Fixture.patientHold)
    let result = try #require(found)
    #expect(connection.end() == 0)
    #expect(result.method == .locks)
    #expect(Host.monotonicSeconds() < deadline)
  }

  @Test func aDatabaseThatChangesDespiteLocksIsNotCaptured() throws {
    // An app that uses another kind of lock, so that its writes continue.
    try fixture.write(content(3 << 20, 1), .database)
    let over = Flag()
    let workers = try Workers(count: 1, capacity: 1, name: "test")
    let path = fixture.temporary.path("source")
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
    // The other thread may not run for a while, and then no write is noticed.
    let end = Host.monotonicSeconds() + 300
    while Host.monotonicSeconds() < end {
      let result = try #require(try fixture.capture(shelf))
      #expect(result.method != .unlocked || result.conflict == .locked)
      if result.method == .unlocked { return }
    }
    Issue.record("no write was seen")
  }

  @Test func aDatabaseThatCannotBeCopiedInTimeIsDeferredOrCopiedUnlocked() throws {
    try fixture.write(content(3 << 20, 1), .database)
    for whenBusy in [
      DatabaseCapture.WhenBusy.deferred, .copyUnlocked(after: Host.monotonicSeconds() + 600),
    ] {
      let shelf = Shelf()
      disturbReading(shelf)
      // As on a file system without reflinks. A clone would take no time.
      let plan = Faults.Plan(
        failing: [.clone], at: 1, number: EOPNOTSUPP, failsRepeatedly: true)
      let result = try Faults.inject(plan) {
        try fixture.capture(shelf, whenBusy: whenBusy, holdingAtMost: -1)
      }
      if case .deferred = whenBusy {
        #expect(result == nil)
      } else {
        #expect(result?.method == .unlocked && result?.conflict == .tooLarge(seconds: -1))
      }
    }
  }

  @Test func aCopyThatTakesTooLongIsAborted() throws {
    try fixture.write(content(3 << 20, 1), .database)
    let reader = try #require(try MemberReader(.database, of: fixture.unit, in: fixture.source))
    let past = Host.monotonicSeconds() - 1
    #expect(throws: MemberReader.TooLate.self) {
      try reader.makeCopy(in: fixture.spool, since: past, limit: 0)
    }
    try reader.makeCopy(in: fixture.spool, since: past, limit: 100)
    try shelf.store(reader)
    #expect(shelf.contents[.database] == content(3 << 20, 1))
  }

  @Test func copiesKeepHoles() throws {
    let file = try fixture.source.openOrCreate("db")
    try file.truncate(to: 8 << 20)
    try file.seek(to: 4 << 20)
    try file.write(content(5000, 6))
    try #require(try file.status().allocated < 1 << 20, "no sparse files on this file system")
    let reader = try #require(try MemberReader(.database, of: fixture.unit, in: fixture.source))
    try reader.makeCopy(in: fixture.spool, since: 0, limit: .infinity)
    var (holes, data): (UInt64, Int) = (0, 0)
    try reader.read(data: { data += $0.count }, hole: { holes += $0 })
    #expect(holes + UInt64(data) == 8 << 20)
    #expect(data < 1 << 20)
    try shelf.store(reader)
    #expect(shelf.contents[.database] == (try fixture.temporary.read("source/db")))
  }

  /// A writer in a rollback mode would have to wait for these locks; one that appends to a log does
  /// not.
  @Test func aWriteAheadDatabaseIsReadUnderLocksForAnyTime() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "PRAGMA wal_autocheckpoint=1",
      "INSERT INTO t VALUES (0)")
    shelf.beforeReading = { member, times in
      guard member == .database else { return }
      // Each commit requests a checkpoint, which the locks defer; no commit has to wait.
      if let answer = try? connection.execute("INSERT INTO t VALUES (\(times))") {
        #expect(answer == "[]")
      }
    }
    // As on a file system without reflinks. A clone would take no time.
    let plan = Faults.Plan(failing: [.clone], at: 1, number: EOPNOTSUPP, failsRepeatedly: true)
    let result = try Faults.inject(plan) { try fixture.capture(shelf, holdingAtMost: -1) }
    #expect(result?.method == .locks)
    let log = try #require(shelf.contents[.log])
    #expect(log.count > 4096 * 2)
    connection.end()
  }

  @Test func readingUnderLocksHasATimeLimit() throws {
    let connection = try connect(
      "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "PRAGMA wal_autocheckpoint=1",
      "INSERT INTO t VALUES (0)")
    shelf.beforeReading = { member, times in
      if member == .database { _ = try? connection.execute("INSERT INTO t VALUES (\(times))") }
    }
    let plan = Faults.Plan(failing: [.clone], at: 1, number: EOPNOTSUPP, failsRepeatedly: true)
    let result = try Faults.inject(plan) {
      try fixture.capture(shelf, holdingAtMost: -1, readingAtMost: -1)
    }
    #expect(result?.conflict == .tooLarge(seconds: -1))
    #expect(result?.conflict.map { "\($0)" }?.contains("took longer") == true)
    connection.end()
  }

  @Test func aFullSpoolIsReported() throws {
    try fixture.write(content(1000, 1), .database)
    try fixture.age()
    disturbReading()
    let plan = Faults.Plan(failing: [.create], at: 1, number: ENOSPC)
    let result = try Faults.inject(plan) { try fixture.capture(shelf) }
    #expect(result?.method == .unlocked)
    guard case .failed(let error)? = result?.conflict else {
      Issue.record("\(String(describing: result?.conflict))")
      return
    }
    #expect(error.number == ENOSPC && error.operation == .create)
    #expect(shelf.contents[.database] == content(1000, 1))
  }
}

/// A flag that one thread sets for another one.
private final class Flag: Sendable {
  private let state = Mutex(false)

  var isUp: Bool { state.withLock { $0 } }

  func raise() { state.withLock { $0 = true } }
}
