import Foundation
import SystemIO
import TestSupport
import Testing

/// Databases restored beside files of another state.
struct RestoreDatabaseTests {
  /// Makes a directory with a database and its log, backs it up, and replaces it with a later
  /// state.
  private func fixture() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("SQLite format 3\u{0} old", at: "tree/notes.db")
    try cli.directory.write("log of old", at: "tree/notes.db-wal")
    try cli.directory.write("SQLite format 3\u{0} plain", at: "tree/plain.db")
    try cli.directory.write("text", at: "tree/other.txt")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.write("SQLite format 3\u{0} later than that", at: "tree/plain.db")
    try cli.directory.write("log of another state", at: "tree/plain.db-wal")
    try cli.directory.write("index", at: "tree/plain.db-shm")
    return cli
  }

  private func names(_ cli: CommandLine) throws -> [String] {
    try cli.names(in: "tree").map { name in
      "\(name)".replacing(/before-restore-[0-9T.-]+/, with: "before-restore-TIME")
    }
  }

  @Test func logOfAnotherStateIsMovedAway() throws {
    let cli = try fixture()
    _ = try cli.succeed("restore latest:folders/tree --to tree --overwrite if-changed --repo repo")
    #expect(
      try names(cli) == [
        "notes.db", "notes.db-wal", "other.txt", "plain.db",
        "plain.db-shm.before-restore-TIME", "plain.db-wal.before-restore-TIME",
      ])
    #expect(try cli.directory.read("tree/plain.db") == Array("SQLite format 3\u{0} plain".utf8))
  }

  /// Files that are moved away are reported before and after.
  @Test func movedFilesAreNamed() throws {
    let cli = try fixture()
    let line = "restore latest:folders/tree --to tree --overwrite if-changed --repo repo"
    let plan = try cli.succeed("\(line) --dry-run")
    #expect(plan.contains("rename   plain.db-wal\n") && plan.contains("rename   plain.db-shm\n"))
    #expect(try names(cli).contains("plain.db-wal"))
    let moved = try cli.json("\(line) --json")["displaced"] as? [[String: Any]]
    #expect(moved?.map { $0["path"] as? String } == ["plain.db-wal", "plain.db-shm"])
  }

  @Test func deleteRemovesTheLogOfAnotherState() throws {
    let cli = try fixture()
    _ = try cli.succeed(
      "restore latest:folders/tree --to tree --overwrite if-changed --delete --repo repo")
    #expect(try names(cli) == ["notes.db", "notes.db-wal", "other.txt", "plain.db"])
  }

  @Test func keptDatabaseStaysConsistent() throws {
    let cli = try fixture()
    try Directory.open(path: cli.directory.path("tree")).remove("notes.db-wal")
    _ = try cli.succeed("restore latest:folders/tree --to tree --overwrite never --repo repo")
    // The existing database stays, and gets no log of another state.
    #expect(
      try names(cli) == ["notes.db", "other.txt", "plain.db", "plain.db-shm", "plain.db-wal"])
  }

  /// A database restored alone over another one is not combined with that one's log.
  @Test func singleDatabaseIsNotCombinedWithAnotherLog() throws {
    let cli = try fixture()
    _ = try cli.succeed(
      "restore latest:folders/tree/plain.db --to tree/plain.db --overwrite always --repo repo")
    #expect(
      try names(cli).filter { $0.hasPrefix("plain.db") && !$0.hasPrefix("plain.db.before") } == [
        "plain.db", "plain.db-shm.before-restore-TIME", "plain.db-wal.before-restore-TIME",
      ])
    #expect(try cli.directory.read("tree/plain.db") == Array("SQLite format 3\u{0} plain".utf8))
  }

  /// A database restored alone to a new path has its log beside it under the new name.
  @Test(arguments: [false, true]) func singleDatabaseIsRestoredWithItsLogToANewPath(
    isLogThere: Bool
  ) throws {
    let cli = try fixture()
    if isLogThere { try cli.directory.write("another log", at: "copy.db-wal") }
    _ = try cli.succeed("restore latest:folders/tree/notes.db --to copy.db --repo repo")
    #expect(try cli.directory.read("copy.db-wal") == Array("log of old".utf8))
    #expect(try cli.directory.read("copy.db") == Array("SQLite format 3\u{0} old".utf8))
    // Existing files are not overwritten.
    let aside = try cli.names(in: ".").filter {
      "\($0)".hasPrefix("copy.db-wal.before-restore-")
    }
    #expect(aside.count == (isLogThere ? 1 : 0))
    for name in aside { #expect(try cli.directory.read(name) == Array("another log".utf8)) }
  }

  /// An existing log without a database that must be kept gets no database.
  @Test func databaseIsNotRestoredBesideAKeptLog() throws {
    let cli = try fixture()
    try Directory.open(path: cli.directory.path("tree")).remove("notes.db")
    try cli.directory.write("log of another state", at: "tree/notes.db-wal")
    let run = try cli.run("restore latest:folders/tree --to tree --overwrite never --repo repo")
    #expect(run.code == 3 && run.errors.contains("notes.db"), "\(run.errors)")
    #expect(try names(cli).filter { $0.hasPrefix("notes") } == ["notes.db-wal"])
    #expect(try cli.directory.read("tree/notes.db-wal") == Array("log of another state".utf8))
  }

  @Test func singleDatabaseIsRestoredWithItsLog() throws {
    let cli = try fixture()
    let directory = try Directory.open(path: cli.directory.path("tree"))
    try directory.remove("notes.db")
    try directory.remove("notes.db-wal")
    _ = try cli.succeed("restore latest:folders/tree/notes.db --in-place --repo repo")
    #expect(try cli.directory.read("tree/notes.db-wal") == Array("log of old".utf8))
    #expect(try cli.directory.read("tree/notes.db") == Array("SQLite format 3\u{0} old".utf8))
    #expect(try cli.directory.read("tree/plain.db-wal") == Array("log of another state".utf8))
  }
}
