import ArchiveStore
import PolicyEngine
import Restore
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// Databases are stored with their logs and journals, in a consistent state.
@Suite(.spreadScans) struct DatabaseTests {
  private static let magic = "SQLite format 3\0"

  private func how(_ report: BackupReport) -> [ByteString: String] {
    Dictionary(uniqueKeysWithValues: report.databases.map { ($0.path, $0.how) })
  }

  @Test func aDatabaseIsRecognizedByItsHeaderOrItsLog() throws {
    let fixture = try Fixture()
    try fixture.directory.write(Self.magic + "alone", at: "tree/alone")
    try fixture.directory.write(Self.magic + "pages", at: "tree/journaled")
    try fixture.directory.write("old pages", at: "tree/journaled-journal")
    try fixture.directory.write("secret pages", at: "tree/encrypted")
    try fixture.directory.write("secret log", at: "tree/encrypted-wal")
    try fixture.directory.write("index of the log", at: "tree/encrypted-shm")
    try fixture.directory.write("dear diary", at: "tree/travel")
    try fixture.directory.write("day one", at: "tree/travel-journal")
    try fixture.directory.write("a log of nothing", at: "tree/nothing-wal")
    let report = try fixture.backup(keeping: "cache")
    #expect(
      how(report) == [
        "folders/tree/alone": "watching", "folders/tree/journaled": "watching",
        "folders/tree/encrypted": "watching",
      ])
    #expect(report.snapshot?.snapshot.databases == report.databases)
    #expect(report.files == 9 && report.isComplete && report.warnings.isEmpty)
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == fixture.names("tree"))
    for name in try fixture.names("tree") {
      let (now, then) = (ByteString("tree").appending(name), ByteString("back").appending(name))
      #expect(try fixture.directory.read(now) == fixture.directory.read(then), "\(name)")
    }
    let again = try fixture.backup(keeping: "cache")
    #expect(again.opened == 0 && again.databases.isEmpty)
  }

  /// The header of a rollback journal with sectors and pages of 512 bytes.
  private static let journal: [UInt8] = [
    0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0, 0, 1, 1, 2, 3, 4, 0, 0, 0, 2, 0, 0, 2, 0,
    0, 0, 2, 0,
  ]

  /// An encrypted database has no recognizable header, but its journal has the usual one.
  @Test func anEncryptedDatabaseIsRecognizedByItsJournal() throws {
    let fixture = try Fixture()
    let pages = [UInt8](repeating: 7, count: 1024)
    let zeros = [UInt8](repeating: 0, count: 28)
    let begun = Array(zeros.prefix(12) + Self.journal.dropFirst(12))
    let files: [(ByteString, [UInt8], journal: [UInt8])] = [
      ("live", pages, Self.journal + pages), ("begun", pages, begun),
      ("erased", pages, zeros + pages), ("truncated", pages, []),
      ("text", Array("dear diary".utf8), []), ("notes", pages, Array("day one".utf8)),
      ("zeros", pages, Array(zeros.prefix(20)) + pages),
    ]
    for (name, content, journal) in files {
      try fixture.directory.write(content, at: ByteString("tree").appending(name))
      try fixture.directory.write(journal, at: ByteString("tree/\(name)-journal"))
    }
    let report = try fixture.backup(keeping: "cache")
    #expect(
      how(report) == [
        "folders/tree/live": "watching", "folders/tree/begun": "watching",
        "folders/tree/erased": "watching", "folders/tree/truncated": "watching",
      ])
    #expect(report.files == 14 && report.isComplete && report.warnings.isEmpty)
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == fixture.names("tree"))
    #expect(try fixture.backup(keeping: "cache").opened == 0)
  }

  /// Encrypted databases whose programs begin a transaction after the scan.
  @Test func newCompanionsOfAnEncryptedDatabaseAreStored() throws {
    let fixture = try Fixture()
    let pages = [UInt8](repeating: 7, count: 1024)
    let names: [ByteString] = ["tree/journaled", "tree/logged", "tree/plain"]
    for name in names { try fixture.directory.write(pages, at: name) }
    let scan = try fixture.scan()
    for name in names { try fixture.directory.write(pages, at: name) }
    try fixture.directory.write(Self.journal + pages, at: "tree/journaled-journal")
    try fixture.directory.write("log", at: "tree/logged-wal")
    let report = try fixture.backup(scan)
    #expect(
      how(report) == [
        "folders/tree/journaled": "watching", "folders/tree/logged": "watching",
      ])
    #expect(report.files == 5 && report.isComplete && report.warnings.isEmpty)
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == fixture.names("tree"))
  }

  @Test func onlyTheLogIsReadIfOnlyTheLogGrew() throws {
    let fixture = try Fixture()
    var random = Seeded(3)
    try fixture.directory.write(Self.magic.utf8 + random.bytes(3_000_000), at: "tree/db")
    try fixture.directory.write(random.bytes(4_000), at: "tree/db-wal")
    let first = try fixture.backup(keeping: "cache")
    try fixture.directory.write(random.bytes(8_000), at: "tree/db-wal")
    let counters = ProgressCounters()
    let second = try fixture.backup(keeping: "cache") { $0.counters = counters }
    #expect(how(second) == ["folders/tree/db": "watching"])
    #expect(counters.progress.bytesDone == 8_000)
    #expect(first.files == 2 && second.files == 2)
    _ = try fixture.restore(second)
    #expect(try fixture.directory.read("back/db") == fixture.directory.read("tree/db"))
    #expect(try fixture.directory.read("back/db-wal") == fixture.directory.read("tree/db-wal"))
  }

  @Test func logsCreatedOrDeletedAfterTheScanAreCapturedAsFound() throws {
    let fixture = try Fixture()
    try fixture.directory.write(Self.magic + "pages", at: "tree/a")
    try fixture.directory.write("log", at: "tree/a-wal")
    try fixture.directory.write(Self.magic + "pages", at: "tree/b")
    try fixture.directory.write("more", at: "tree/c")
    let scan = try fixture.scan()
    try Directory.open(path: fixture.directory.path("tree")).remove("a-wal")
    try fixture.directory.write("a new log", at: "tree/b-wal")
    let report = try fixture.backup(scan)
    #expect(report.files == 4 && report.isComplete && report.warnings.isEmpty)
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == ["a", "b", "b-wal", "c"])
    #expect(try fixture.text("back/b-wal") == "a new log")
  }

  /// Databases whose files each have a name in two directories, as `cp -al` creates them, and an
  /// ordinary file next to one with a journal's name. Each is found by both names.
  @Test func hardLinkedDatabasesAreStoredWithTheirLogs() throws {
    let fixture = try Fixture()
    let names = ["db", "db-wal", "plain", "plain-journal", "only", "only-journal", "small"]
    for name in names {
      try fixture.directory.write("in \(name)", at: ByteString("tree/a/\(name)"))
    }
    try fixture.directory.write(Self.magic + "pages", at: "tree/a/db")
    try fixture.directory.write(Self.magic + "pages", at: "tree/a/small")
    try fixture.directory.write("a journal of its own", at: "tree/b/only-journal")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    for name in names where name != "only-journal" {
      let name = ByteString(name)
      try tree.directory("b").createHardLink(name, to: name, in: tree.directory("a"))
    }
    let report = try fixture.backup(keeping: "cache")
    #expect(report.isComplete && report.warnings.isEmpty && report.files == 14)
    #expect(try fixture.restore(report).isComplete)
    let back = try Directory.open(path: fixture.directory.path("back"))
    for name in names {
      for directory in ["a", "b"] {
        let path = ByteString("\(directory)/\(name)")
        #expect(
          try fixture.directory.read(ByteString("tree").appending(path))
            == fixture.directory.read(ByteString("back").appending(path)), "\(path)")
      }
      let locations = try ["a", "b"].map {
        try back.directory($0).status(ByteString(name)).identity
      }
      #expect((locations[0] == locations[1]) == (name != "only-journal"), "\(name)")
    }
    #expect(try fixture.backup(keeping: "cache").opened == 0)
  }

  /// The names of companion files are up to eight bytes longer, which may exceed the limit of any
  /// file system.
  @Test func databasesWithLongNamesAreStored() throws {
    let fixture = try Fixture()
    let lengths = [247, 248, 250, 251, 252, 255]
    for length in lengths {
      let name = String(repeating: "r", count: length)
      try fixture.directory.write(Self.magic + "pages", at: ByteString("tree/\(name)"))
    }
    let journaled = String(repeating: "j", count: 247)
    try fixture.directory.write(Self.magic + "pages", at: ByteString("tree/\(journaled)"))
    try fixture.directory.write("old pages", at: ByteString("tree/\(journaled)-journal"))
    for length in lengths where length <= 251 {
      let name = String(repeating: "w", count: length)
      try fixture.directory.write("secret pages", at: ByteString("tree/\(name)"))
      try fixture.directory.write("log", at: ByteString("tree/\(name)-wal"))
    }
    let report = try fixture.backup(keeping: "cache")
    #expect(report.isComplete && report.unreadable.isEmpty && report.warnings.isEmpty)
    #expect(report.databases.map(\.how) == Array(repeating: "watching", count: 11))
    #expect(try fixture.restore(report).isComplete)
    #expect(try fixture.names("back") == fixture.names("tree"))
  }

  @Test func onlyRegularFilesAreCompanionsOfADatabase() throws {
    let fixture = try Fixture()
    let tree = try fixture.tree()
    let kinds: [(ByteString, FileKind)] = [("a", .socket), ("b", .fifo)]
    for (name, kind) in kinds {
      for suffix in ["-journal", "-wal"] {
        let database = name.concatenating(ByteString(suffix.dropFirst().description))
        try fixture.directory.write(
          Self.magic + "pages", at: ByteString("tree").appending(database))
        try tree.createSpecial(
          database.concatenating(ByteString(suffix)), kind: kind, permissions: 0o600)
      }
    }
    let report = try fixture.backup(keeping: "cache")
    #expect(report.isComplete && report.warnings.isEmpty)
    #expect(report.databases.map(\.how) == Array(repeating: "watching", count: 4))
    #expect(try fixture.restore(report).isComplete)
    #expect(try fixture.names("back") == fixture.names("tree"))
  }

  /// A program locks a database for days without changing it: each backup reports that its copy may
  /// be inconsistent, and the first backup after that reads it again.
  @Test func aDatabaseThatWasReadWithoutItsLocksIsReadAgain() throws {
    let fixture = try Fixture()
    try fixture.directory.write(Self.magic + "pages", at: "tree/db")
    try fixture.directory.write("text", at: "tree/note")
    let holder = try DatabaseHolder(fixture.directory.path("tree/db"), writes: false)
    defer { holder.end() }
    for _ in 0..<2 {
      let report = try fixture.backup(keeping: "cache") { $0.databaseTimeout = 0.1 }
      #expect(how(report) == ["folders/tree/db": "as-it-stood"])
      #expect(!report.isComplete && report.warnings.map(\.path) == ["folders/tree/db"])
    }
    holder.end()
    let last = try fixture.backup(keeping: "cache")
    #expect(how(last) == ["folders/tree/db": "watching"] && last.isComplete)
    #expect(try fixture.backup(keeping: "cache").opened == 0)
  }

  @Test func aDatabaseThatIsBusyIsTriedAgainAtTheEnd() throws {
    let fixture = try Fixture()
    let pages = [UInt8](repeating: 1, count: 4 << 20)
    try fixture.directory.write(Array(Self.magic.utf8) + pages, at: "tree/a busy one")
    try fixture.directory.write("log", at: "tree/a busy one-wal")
    for number in 0..<300 {
      try fixture.directory.write("\(number)", at: ByteString("tree/b\(number)"))
    }
    // Another program holds an exclusive lock on the database and keeps writing.
    let writer = try DatabaseHolder(fixture.directory.path("tree/a busy one"), writes: true)
    defer { writer.end() }
    // Reading takes a third of a second, so on most machines the writer runs in the meantime.
    let slowly = Faults.Plan(pausing: 0.005, afterReading: 64 << 10)
    func backup() throws -> BackupReport {
      try Faults.inject(slowly) {
        try fixture.backup(keeping: "cache") { $0.databaseTimeout = 0.5 }
      }
    }
    var report = try backup()
    let end = Host.monotonicSeconds() + 300
    while report.warnings.isEmpty, Host.monotonicSeconds() < end { report = try backup() }
    #expect(how(report) == ["folders/tree/a busy one": "as-it-stood"])
    #expect(report.warnings.map(\.path) == ["folders/tree/a busy one"])
    #expect(
      report.warnings.map(\.remark) == [
        "the database was in use and was read without a lock: other programs held its locks"
      ])
    #expect(
      !report.isComplete && report.files == 302,
      "a backup with a possibly torn file is not complete")
    writer.end()
    let next = try fixture.backup(keeping: "cache")
    #expect(how(next) == ["folders/tree/a busy one": "watching"])
  }
}
