import Glibc
import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

/// Captures under locks on volumes that can clone all files, some, or none.
struct CloneTests {
  let shelf = Shelf()

  /// A volume may be able to clone only some files, as Btrfs does for the log of a database without
  /// copy-on-write. The database must not be read again once the locks are released.
  @Test(arguments: [DatabaseMember.database, .log])
  func aMemberWithoutACloneIsReadOnlyUnderLocks(member: DatabaseMember) throws {
    guard Mount.isPermitted(new: "btrfs") else { return }
    let fixture = try Fixture(on: "btrfs")
    let connection = try SQLiteProcess(
      statements: [
        "PRAGMA journal_mode=wal", "CREATE TABLE t (a)", "PRAGMA wal_autocheckpoint=1",
        "INSERT INTO t VALUES (0)",
      ], on: fixture.database)
    var unlocked = 0
    shelf.beforeReading = { member, times in
      guard member == .database else { return }
      if times < 3 { return try Self.disturb(fixture, times) }
      let held = try LocksTests.openFileLocks(of: fixture.source.status("db-shm"))
      if held != ["READ 123 124"] { unlocked += 1 }
    }
    let plan = Faults.Plan(failing: [.clone], at: member == .database ? 1 : 2, number: EINVAL)
    let result = try Faults.inject(plan) { try fixture.capture(shelf) }
    #expect(plan.hasFired && result?.method == .locks)
    #expect(unlocked == 0)
    #expect(shelf.calls.filter { $0 == .database }.count == 4)
    #expect(shelf.contents[.database] == (try fixture.temporary.read("source/db")))
    connection.end()
  }

  /// If all members are cloned, no lock is held while they are stored.
  @Test func clonesAreReadWithoutLocks() throws {
    guard Mount.isPermitted(new: "btrfs") else { return }
    let fixture = try Fixture(on: "btrfs")
    let connection = try SQLiteProcess(
      statements: ["PRAGMA journal_mode=wal", "CREATE TABLE t (a)"], on: fixture.database)
    var held: [[String]] = []
    shelf.beforeReading = { member, times in
      guard member == .database else { return }
      if times < 3 { return try Self.disturb(fixture, times) }
      held.append(try LocksTests.openFileLocks(of: fixture.source.status("db-shm")))
    }
    #expect(try fixture.capture(shelf)?.method == .locks)
    #expect(held == [[]])
    connection.end()
  }

  /// Makes watching fail by changing the database during each read.
  private static func disturb(_ fixture: Fixture, _ times: Int) throws {
    try fixture.source.setPermissions(times % 2 == 0 ? 0o600 : 0o644, of: "db")
    Host.pause(seconds: 0.01)
  }

  /// These errors must not lead to an unlocked copy. OpenZFS, for example, returns EAGAIN for
  /// blocks that have not been written yet.
  @Test(arguments: [EAGAIN, EINVAL, EXDEV, EPERM, ENOSPC, ETXTBSY])
  func aFileThatCannotBeClonedIsCopied(number: Int32) throws {
    let fixture = try Fixture("clones")
    try fixture.write(content(5000, 1), .database)
    shelf.beforeReading = { member, times in
      if member == .database, times < 3 { try Self.disturb(fixture, times) }
    }
    let plan = Faults.Plan(failing: [.clone], at: 1, number: number, failsRepeatedly: true)
    let result = try Faults.inject(plan) {
      try fixture.capture(shelf, holdingAtMost: Fixture.patientHold)
    }
    #expect(plan.hasFired && result?.method == .locks)
    #expect(shelf.contents[.database] == content(5000, 1))
  }
}
