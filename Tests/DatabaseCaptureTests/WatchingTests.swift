import DatabaseCapture
import Glibc
import SystemIO
import TestSupport
import Testing

struct WatchingTests {
  let fixture: Fixture
  let shelf = Shelf()
  init() throws {
    fixture = try Fixture("watching")
    try fixture.write(content(3_000_000, 1), .database)
    try fixture.age()
  }

  @Test func anUnchangedDatabaseIsReadOnce() throws {
    try fixture.write(log(salt: 1, 5000), .log)
    try fixture.write([1, 2, 3], .sharedMemory)
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(result.method == .watching && result.conflict == nil)
    #expect(result.members.map(\.member) == [.database, .log])
    #expect(result.members.map(\.name) == ["db", "db-wal"])
    #expect(shelf.calls == [.database, .log])
    #expect(shelf.contents[.database] == content(3_000_000, 1))
    #expect(shelf.contents[.log] == log(salt: 1, 5000))
    #expect(result.members[0].status == (try fixture.source.status("db")))
    #expect(result.members[1].status.size == 5032)
  }

  @Test func aDatabaseWithoutCompanionsIsRead() throws {
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(result.method == .watching)
    #expect(result.members.map(\.member) == [.database])
  }

  @Test func aChangedDatabaseIsReadAgain() throws {
    shelf.beforeReading = { [fixture] member, times in
      if member == .database && times < 2 {
        try fixture.write(content(2000, UInt64(times)), .database)
      }
      if member == .database && times == 2 { Host.pause(seconds: 0.03) }
    }
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(result.method == .watching)
    #expect(shelf.calls == [.database, .database, .database])
    #expect(shelf.contents[.database] == content(2000, 1))
  }

  @Test func aChangeWithTheSameSizeAndTimeIsFoundByTheChangeTime() throws {
    // The pause makes the change times differ, even with a coarse clock.
    Host.pause(seconds: 0.03)
    shelf.beforeReading = { [fixture] _, times in
      guard times == 0 else { return }
      try fixture.write(content(3_000_000, 2), .database)
      try fixture.age()
    }
    _ = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(shelf.calls == [.database, .database])
    #expect(shelf.contents[.database] == content(3_000_000, 2))
  }

  @Test func aReplacedDatabaseIsReadAgain() throws {
    shelf.beforeReading = { [fixture] _, times in
      guard times == 0 else { return }
      try fixture.temporary.write(content(3_000_000, 3), at: "new")
      let time = try fixture.source.status("db").modified
      try fixture.temporary.directory.setModified(time, of: "new")
      try fixture.temporary.directory.rename("new", to: "db", in: fixture.source)
    }
    _ = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(shelf.calls == [.database, .database])
    #expect(shelf.contents[.database] == content(3_000_000, 3))
  }

  @Test func aGrowingLogIsReadUpToItsFirstSize() throws {
    try fixture.write(log(salt: 1, 5000), .log)
    shelf.beforeReading = { [fixture] member, _ in
      if member == .database { try fixture.write(log(salt: 1, 5000) + [7, 7], .log) }
      if member == .log { try fixture.write(log(salt: 1, 5000) + [7, 7, 8, 8], .log) }
    }
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(result.method == .watching)
    #expect(shelf.calls == [.database, .log])
    // The size is that at the beginning of this read, not of the capture.
    #expect(shelf.contents[.log] == log(salt: 1, 5000) + [7, 7])
  }

  @Test(arguments: [
    [UInt8](), log(salt: 2, 5000), log(salt: 2, 0), log(salt: 1, 100),
  ])
  func aRestartedLogIsReadAgain(_ next: [UInt8]) throws {
    try fixture.write(log(salt: 1, 5000), .log)
    shelf.beforeReading = { [fixture] member, times in
      if member == .log && times == 0 { try fixture.write(next, .log) }
    }
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(result.method == .watching)
    #expect(shelf.calls == [.database, .log, .database, .log])
    #expect(shelf.contents[.log] == next)
  }

  @Test func aNewLogCausesAnotherRead() throws {
    shelf.beforeReading = { [fixture] _, times in
      if times == 0 { try fixture.write(log(salt: 1, 100), .log) }
    }
    _ = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(shelf.calls == [.database, .database, .log])
  }

  @Test func aDeletedLogIsNotPartOfTheResult() throws {
    try fixture.write(log(salt: 1, 5000), .log)
    shelf.beforeReading = { [fixture] member, times in
      if member == .log && times == 0 { try fixture.source.remove("db-wal") }
    }
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(shelf.calls == [.database, .log, .database])
    #expect(result.members.map(\.member) == [.database])
  }

  @Test func journalsAreReadLast() throws {
    for bytes in [journal(500), [UInt8](repeating: 0, count: 28), []] {
      try fixture.write(bytes, .journal)
      let shelf = Shelf()
      let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
      #expect(result.method == .watching)
      #expect(shelf.calls == [.database, .journal])
      #expect(shelf.contents[.journal] == bytes)
    }
  }

  @Test func anEndedJournalCausesAnotherRead() throws {
    try fixture.write(journal(500), .journal)
    shelf.beforeReading = { [fixture] member, times in
      if member == .journal && times == 0 {
        try fixture.write([UInt8](repeating: 0, count: 508), .journal)
      }
    }
    _ = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(shelf.calls == [.database, .journal, .database, .journal])
  }

  @Test func aTransactionOverSeveralDatabasesIsNotWatched() throws {
    try fixture.write(journal(500) + journalMagic, .journal)
    let found = try fixture.capture(shelf, whenBusy: .deferred, holdingAtMost: Fixture.patientHold)
    let result = try #require(found)
    #expect(result.method == .locks)
    #expect(shelf.contents[.journal] == journal(500) + journalMagic)
  }

  @Test func aRecentChangeIsWaitedFor() throws {
    try fixture.write(content(1000, 4), .database)
    let start = Host.monotonicSeconds()
    // On a busy machine, this thread may get here late.
    let before = Host.now().since(try fixture.source.status("db").modified)
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(result.method == .watching)
    #expect(Host.monotonicSeconds() - start >= 0.02 - before - 0.001)
    let age = Host.now().since(try fixture.source.status("db").modified)
    #expect(age >= 0.02)
  }

  /// On a file system that records whole seconds, a second write within the same second does not
  /// change the times.
  @Test func aRecentChangeIsReadUnderLocksIfTimesAreWholeSeconds() throws {
    guard Mount.isPermitted(new: "ext3") else { return }
    let coarse = try Fixture(on: "ext3")
    var method: CaptureResult.Method?
    var start = 0.0
    // Repeated if this thread was delayed until the change was no longer recent.
    repeat {
      try coarse.write(content(1000, 4), .database)
      start = Host.monotonicSeconds()
      method = try coarse.capture(
        shelf, whenBusy: .deferred, holdingAtMost: Fixture.patientHold)?.method
    } while Host.monotonicSeconds() - start > 1
    #expect(method == .locks)
    try coarse.age()
    #expect(try coarse.source.status("db").modified.nanoseconds == 0)
    #expect(try coarse.capture(shelf, whenBusy: .deferred)?.method == .watching)
  }

  @Test func aTimeInTheFutureIsNotWaitedFor() throws {
    let future = Timestamp(seconds: Host.now().seconds + 3600)
    try fixture.source.setModified(future, of: "db")
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(result.method == .watching)
  }

  @Test func aLargeChangingDatabaseIsNotReadToItsEnd() throws {
    let file = try fixture.source.openOrCreate("db")
    for part in 0..<20 { try file.write(content(1 << 20, UInt64(part))) }
    let end = try file.status().size
    var read = 0
    shelf.atPiece = { _ in
      read += 1
      // Each change is a little later than the last check by the capture.
      try file.write([1])
      try file.truncate(to: end)
    }
    let result = try fixture.capture(shelf, whenBusy: .deferred, holdingAtMost: Fixture.patientHold)
    #expect(result?.method == .locks)
    // Three times 16 MiB while watching, and then the whole copy, in pieces of 256 KiB.
    #expect(shelf.calls == [.database, .database, .database, .database])
    #expect(read < 4 * (3 * 17 + 23))
  }

  @Test func holesAreReported() throws {
    let file = try fixture.source.openOrCreate("db")
    try file.truncate(to: 0)
    try file.truncate(to: 8 << 20)
    try file.seek(to: 4 << 20)
    try file.write(content(5000, 6))
    try fixture.age()
    try #require(try file.status().allocated < 1 << 20, "no sparse files on this file system")
    var (holes, data): (UInt64, Int) = (0, 0)
    _ = try DatabaseCapture.capture(
      fixture.unit, in: fixture.source, spool: fixture.spool, whenBusy: .deferred
    ) { reader in
      try reader.read(data: { data += $0.count }, hole: { holes += $0 })
    }
    #expect(holes + UInt64(data) == 8 << 20)
    #expect(data < 1 << 20)
  }

  @Test func theReaderHasTheAttributes() throws {
    try fixture.source.attributes(of: "db").set("user.note", to: [1, 2])
    var value: [UInt8]?
    _ = try DatabaseCapture.capture(
      fixture.unit, in: fixture.source, spool: fixture.spool, whenBusy: .deferred
    ) { value = try $0.attributes.value(of: "user.note") }
    #expect(value == [1, 2])
  }

  @Test func onlyRegularFilesAreMembers() throws {
    try fixture.source.createLink("db-wal", to: "elsewhere")
    try fixture.source.createSpecial("db-journal", kind: .fifo, permissions: 0o600)
    let result = try #require(try fixture.capture(shelf, whenBusy: .deferred))
    #expect(result.method == .watching)
    #expect(result.members.map(\.member) == [.database])
    try fixture.source.remove("db")
    try fixture.source.createSpecial("db", kind: .fifo, permissions: 0o600)
    #expect(throws: SystemError.replaced(fixture.temporary.path("source/db"))) {
      try fixture.capture(shelf)
    }
    try fixture.source.remove("db")
    #expect(throws: SystemError(.status, fixture.temporary.path("source/db"), number: ENOENT)) {
      try fixture.capture(shelf)
    }
  }

  @Test func anUnreadableMemberIsReported() throws {
    try fixture.write(log(salt: 1, 50), .log)
    try fixture.source.setPermissions(0, of: "db-wal")
    let expected = SystemError(.open, fixture.temporary.path("source/db-wal"), number: EACCES)
    try Unprivileged.run {
      let result = try #require(try fixture.capture(shelf))
      #expect(result.method == .unlocked && result.members.map(\.member) == [.database])
      #expect(result.unopened.map(\.name) == ["db-wal"])
      #expect(result.unopened.map(\.error) == [expected])
    }
  }

  @Test func errorsOfTheStorageAreRethrown() throws {
    struct Full: Error {}
    shelf.beforeReading = { _, _ in throw Full() }
    #expect(throws: Full.self) { try fixture.capture(shelf) }
    #expect(shelf.calls == [.database])
  }
}
