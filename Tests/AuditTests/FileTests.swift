import SystemIO
import TestSupport
import Testing

@testable import Audit

/// The rules about the form of files and the way in which they change.
struct FileTests {
  // MARK: log-outgrown

  @Test func logLargerThanItsDatabaseIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/db.sqlite", bytes: 100_000)
    try fixture.put("Library/db.sqlite-wal", bytes: 5_000_000)
    let found = try fixture.audit().findings.filter { $0.rule == .logOutgrown }
    #expect(found.map(\.path.lastComponent) == ["db.sqlite-wal"])
    #expect(found.first?.bytes == 5_000_000)
    #expect(
      found.first?.command
        == "sqlite3 \(ShellWord.text(fixture.real("Library/db.sqlite"))) "
        + "'PRAGMA wal_checkpoint(TRUNCATE)'")
  }

  /// A log of the usual size, one that is smaller than its database, and a file that is not a log.
  @Test func usualLogsAreNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/a", bytes: 4_000)
    try fixture.put("Library/a-wal", bytes: 4_000_000)
    try fixture.put("Library/b", bytes: 6_000_000)
    try fixture.put("Library/b-wal", bytes: 5_000_000)
    try fixture.put("Library/c-wal", bytes: 5_000_000)
    #expect(try fixture.paths(.logOutgrown).isEmpty)
  }

  // MARK: xml-property-list

  private static func list(_ head: String, bytes: Int) -> [UInt8] {
    Array(head.utf8) + [UInt8](repeating: 0x20, count: bytes)
  }

  @Test(arguments: ["<?xml version=\"1.0\"?>", "\u{feff}<?xml ", "\n<plist>", "<!DOCTYPE plist"])
  func largeXMLPropertyListIsFound(head: String) throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/big.plist", content: Self.list(head, bytes: 70_000))
    #expect(try fixture.paths(.xmlPropertyList) == ["Library/big.plist"])
  }

  @Test func otherPropertyListsAreNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/binary.plist", content: Self.list("bplist00", bytes: 70_000))
    try fixture.put("Library/small.plist", content: Self.list("<?xml ", bytes: 1_000))
    try fixture.put("Library/page.xml", content: Self.list("<?xml ", bytes: 70_000))
    try fixture.writeInfo()
    try fixture.putInBundle("data.plist", bytes: 70_000)
    #expect(try fixture.paths(.xmlPropertyList).isEmpty)
  }

  @Test func linkWithTheNameOfAPropertyListIsNotRead() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/real", content: Self.list("<?xml ", bytes: 70_000))
    try Directory.open(path: fixture.real("Documents")).createLink("a.plist", to: "real")
    let report = try fixture.audit()
    #expect(!report.findings.contains { $0.rule == .xmlPropertyList })
    #expect(report.unusable.isEmpty)
  }

  // MARK: churn and flat-file

  /// A history in which the given paths changed in each of some pairs of snapshots, which are a day
  /// apart.
  private static func history(
    _ paths: [ByteString], changed: Int, of intervals: Int = 7, seconds: Int64 = 86_400
  ) -> ChangeHistory {
    var history = ChangeHistory()
    for number in 0..<intervals {
      history.beginInterval(Timestamp(seconds: 1_700_000_000 + Int64(number) * seconds))
      guard number < changed else { continue }
      for path in paths { history.addChange(AuditFixture.prefix.appending(path)) }
    }
    return history
  }

  @Test func fileThatChangesInEverySnapshotIsFound() throws {
    let fixture = try AuditFixture()
    let paths: [ByteString] = ["Library/state.json", "Documents/note", "Library/small"]
    for path in paths { try fixture.put(path, bytes: path == "Library/small" ? 100 : 300_000) }
    let history = Self.history(paths, changed: 6)
    let found = try fixture.audit(history: history).findings.filter { $0.rule == .churn }
    #expect(found.map(\.path.lastComponent) == ["note", "state.json"])
    #expect(found.first?.detail == "changed 6 times in the last 8 daily snapshots")
    // The suggested command excludes neither the user's own data nor the app's.
    let data = AuditFixture.prefix
    #expect(
      found.map(\.command) == [
        "sandboxctl versions \(data)/Documents/note --repo repo",
        "sandboxctl versions \(data)/Library/state.json --repo repo",
      ])
  }

  @Test func fileThatChangesSometimesIsNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/state.json", bytes: 2_000_000)
    try fixture.put("Library/Caches/state.json", bytes: 2_000_000)
    #expect(
      try fixture.paths(.churn, history: Self.history(["Library/state.json"], changed: 4)).isEmpty)
    // Data that no backup contains may change often, and a removed file needs no correction.
    let gone: [ByteString] = ["Library/Caches/state.json", "Library/gone"]
    #expect(try fixture.paths(.churn, history: Self.history(gone, changed: 7)).isEmpty)
  }

  @Test func largeFlatFileThatChangesDailyIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/store.json", bytes: 20_000_001)
    let history = Self.history(["Library/store.json"], changed: 3)
    #expect(try fixture.paths(.flatFile, history: history) == ["Library/store.json"])
    #expect(try fixture.paths(.churn, history: history).isEmpty)
  }

  @Test func databasesAndFilesThatChangeOnOneDayAreNotFlat() throws {
    let fixture = try AuditFixture()
    try fixture.put(
      "Library/db",
      content: Array("SQLite format 3\0".utf8) + [UInt8](repeating: 1, count: 20_000_000))
    try fixture.put("Library/smaller", bytes: 19_000_000)
    let paths: [ByteString] = ["Library/db", "Library/smaller"]
    #expect(try fixture.paths(.flatFile, history: Self.history(paths, changed: 5)).isEmpty)
    try fixture.put("Library/often", bytes: 20_000_001)
    let hourly = Self.history(["Library/often"], changed: 5, seconds: 60)
    #expect(try fixture.paths(.flatFile, history: hourly).isEmpty)
  }

  @Test func rulesAboutChangesNeedFourSnapshots() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/a", bytes: 5_000_000)
    for history in [nil, Self.history(["Library/a"], changed: 2, of: 2)] {
      let report = try fixture.audit(history: history)
      #expect(report.findings.isEmpty)
      #expect(report.skipped.map(\.rule) == [.churn, .flatFile])
      let days = history.map { ", but there are only those of \($0.intervals + 1)" } ?? ""
      #expect(
        report.skipped.first?.reason == "snapshots of the device from 4 days are needed\(days)")
    }
    let enough = try fixture.audit(history: Self.history(["Library/a"], changed: 3, of: 3))
    #expect(enough.findings.map(\.rule) == [.churn] && enough.skipped.isEmpty)
  }

  /// The pairs of snapshots are added from the newest to the oldest: the file was created in the
  /// fourth.
  @Test func snapshotsFromBeforeTheFileDoNotCount() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/new", bytes: 2_000_000)
    let path = AuditFixture.prefix.appending("Library/new")
    var history = ChangeHistory()
    for number in 0..<7 {
      history.beginInterval(Timestamp(seconds: 1_700_000_000 - Int64(number) * 86_400))
      if number < 3 || number == 5 { history.addChange(path) }
      if number == 3 { history.addCreation(path) }
      history.addCreation(AuditFixture.prefix.appending("Library/unchanged"))
    }
    let found = try fixture.audit(history: history).findings.filter { $0.rule == .churn }
    #expect(found.map(\.detail) == ["changed 3 times in the last 4 daily snapshots"])
    #expect(history.files.count == 1)
  }

  /// Of hourly snapshots, the last one of each day in the host's time zone is compared.
  @Test func oneSnapshotOfEachDayIsCompared() throws {
    func time(day: Int, hour: Int) throws -> Timestamp {
      let time = CalendarTime(year: 2026, month: 6, day: day, hour: hour, minute: 30, second: 0)
      return try #require(Timestamp(time))
    }
    let times = try (1...10).flatMap { day in try (0...23).map { try time(day: day, hour: $0) } }
    #expect(ChangeHistory.daily(times) == (2..<10).map { $0 * 24 + 23 })
    #expect(ChangeHistory.daily(Array(times.prefix(20))) == [19])
    #expect(ChangeHistory.daily([]).isEmpty)
    // A week between two snapshots, and a clock that was set back.
    let some = [try time(day: 1, hour: 3), try time(day: 8, hour: 3), try time(day: 1, hour: 5)]
    #expect(ChangeHistory.daily(some) == [1, 2])
  }

  @Test func historyIsBounded() {
    var history = ChangeHistory()
    history.beginInterval(Timestamp(seconds: 0))
    for number in 0...ChangeHistory.limit { history.addChange(ByteString("\(number)")) }
    #expect(history.files.count == ChangeHistory.limit && history.isTruncated)
  }
}
