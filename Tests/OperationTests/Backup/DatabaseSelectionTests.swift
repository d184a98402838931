import ArchiveStore
import DeviceScan
import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// A database, its log and its journal are stored together or not at all, whatever a policy decides
/// about each of them.
@Suite(.spreadScans) struct DatabaseSelectionTests {
  private static let magic = "SQLite format 3\0"

  /// Writes a small database with a large log, one with a large journal, a large one with a small
  /// log, and an ordinary file next to a large file with the name of a journal.
  private func write(in fixture: Fixture) throws {
    let (small, large) = ("pages", String(repeating: "x", count: 2000))
    for (name, content) in [
      ("grown", Self.magic + small), ("grown-wal", large), ("hot", Self.magic + small),
      ("hot-journal", large), ("large", Self.magic + large), ("large-wal", small),
      ("travel", small), ("travel-journal", large),
    ] {
      try fixture.directory.write(content, at: ByteString("tree/in/\(name)"))
    }
  }

  /// Backs up the entries that the options select; returns the names of the restored files.
  private func stored(_ fixture: Fixture, _ patterns: [CommandLinePattern]) throws -> [ByteString] {
    let report = try fixture.backup(fixture.scan(patterns))
    #expect(report.isComplete && report.warnings.isEmpty)
    let back = ByteString("back \(try fixture.directory.directory.names().count)")
    _ = try fixture.restore(report, to: back)
    return try fixture.names(back.appending("in"))
  }

  @Test func aSizeConditionIsThatOfTheDatabase() throws {
    let fixture = try Fixture()
    try write(in: fixture)
    #expect(
      try stored(fixture, [.excludeLargerThan(1000)]) == [
        "grown", "grown-wal", "hot", "hot-journal", "travel",
      ])
    let excluded = try fixture.scan([.excludeLargerThan(1000)]).exclusions()
    #expect(excluded.map(\.rule) == ["exclude-larger-than-1"])
    #expect(excluded.map(\.files) == [3])
  }

  @Test func aPatternForALogDoesNotSeparateItFromItsDatabase() throws {
    let fixture = try Fixture()
    try write(in: fixture)
    #expect(
      try stored(fixture, [.exclude("**/*-wal"), .exclude("**/*-journal")]) == [
        "grown", "grown-wal", "hot", "hot-journal", "large", "large-wal", "travel",
      ])
    #expect(
      try stored(fixture, [.exclude("in/*"), .include("**/grown"), .include("**/hot")]) == [
        "grown", "grown-wal", "hot", "hot-journal",
      ])
  }

  @Test func aLogIsNotStoredWithoutItsDatabase() throws {
    let fixture = try Fixture()
    try write(in: fixture)
    #expect(
      try stored(fixture, [.exclude("**/grown"), .exclude("**/hot"), .exclude("**/travel")]) == [
        "large", "large-wal", "travel-journal",
      ])
    #expect(
      try stored(fixture, [.exclude("in/*"), .include("**/*-wal"), .include("in/travel")]) == [
        "travel"
      ])
  }

  /// An encrypted database has no recognizable header.
  @Test func theJournalOfAnEncryptedDatabaseHasItsVerdict() throws {
    let fixture = try Fixture()
    try fixture.directory.write(String(repeating: "x", count: 1024), at: "tree/in/secret")
    try fixture.directory.write([UInt8](repeating: 0, count: 512), at: "tree/in/secret-journal")
    #expect(try stored(fixture, [.exclude("**/*-journal")]) == ["secret", "secret-journal"])
    #expect(try stored(fixture, [.exclude("**/secret")]) == [])
  }

  /// A log without a database, or next to a directory or a link, is an ordinary file.
  @Test func aFileWithTheNameOfALogAloneHasItsOwnVerdict() throws {
    let fixture = try Fixture()
    try fixture.directory.write("text", at: "tree/in/lone-wal")
    try fixture.directory.write("text", at: "tree/in/directory/file")
    try fixture.directory.write("text", at: "tree/in/directory-wal")
    try fixture.directory.write("text", at: "tree/in/other")
    #expect(try stored(fixture, [.exclude("**/*-wal")]) == ["directory", "other"])
  }

  /// If an earlier run stored a database without its log, its state file does not make the next run
  /// omit the log.
  @Test func aLogThatAnEarlierRunExcludedIsStored() throws {
    let fixture = try Fixture()
    try fixture.directory.write(Self.magic + "pages", at: "tree/in/db")
    _ = try fixture.backup(keeping: "cache")
    try fixture.directory.write("log", at: "tree/in/db-wal")
    let report = try fixture.backup(keeping: "cache", [.exclude("**/*-wal")])
    #expect(report.databases.map(\.how) == ["watching"] && report.files == 2)
    _ = try fixture.restore(report)
    #expect(try fixture.names("back/in") == ["db", "db-wal"])
  }
}
