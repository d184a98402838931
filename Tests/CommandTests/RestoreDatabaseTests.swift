import Foundation
import SystemIO
import TestSupport
import Testing

/// Databases that come back beside files of another state of them.
@Suite struct RestoreDatabaseTests {
  /// A directory with a database and its log, backed up; then one of a later state.
  private func rig() throws -> CommandLine {
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

  @Test func aLogOfAnotherStateIsPutAside() throws {
    let cli = try rig()
    _ = try cli.succeed("restore latest:folders/tree --to tree --overwrite if-changed --repo repo")
    #expect(
      try names(cli) == [
        "notes.db", "notes.db-wal", "other.txt", "plain.db",
        "plain.db-shm.before-restore-TIME", "plain.db-wal.before-restore-TIME",
      ])
    #expect(try cli.directory.read("tree/plain.db") == Array("SQLite format 3\u{0} plain".utf8))
  }

  /// What is moved away is said, before and after.
  @Test func whatIsMovedAwayIsNamed() throws {
    let cli = try rig()
    let line = "restore latest:folders/tree --to tree --overwrite if-changed --repo repo"
    let plan = try cli.succeed("\(line) --dry-run")
    #expect(plan.contains("rename   plain.db-wal\n") && plan.contains("rename   plain.db-shm\n"))
    #expect(try names(cli).contains("plain.db-wal"))
    let moved = try cli.json("\(line) --json")["displaced"] as? [[String: Any]]
    #expect(moved?.map { $0["path"] as? String } == ["plain.db-wal", "plain.db-shm"])
  }

  @Test func withDeleteItGoes() throws {
    let cli = try rig()
    _ = try cli.succeed(
      "restore latest:folders/tree --to tree --overwrite if-changed --delete --repo repo")
    #expect(try names(cli) == ["notes.db", "notes.db-wal", "other.txt", "plain.db"])
  }

  @Test func whatStaysStaysWhole() throws {
    let cli = try rig()
    try Directory.open(path: cli.directory.path("tree")).remove("notes.db-wal")
    _ = try cli.succeed("restore latest:folders/tree --to tree --overwrite never --repo repo")
    // The database that is there stays, and gets no log of another state.
    #expect(
      try names(cli) == ["notes.db", "other.txt", "plain.db", "plain.db-shm", "plain.db-wal"])
  }

  /// A database that comes by itself to the place of another one does not come to that one's log.
  @Test func aDatabaseByItselfIsNotPutBesideAnotherLog() throws {
    let cli = try rig()
    _ = try cli.succeed(
      "restore latest:folders/tree/plain.db --to tree/plain.db --overwrite always --repo repo")
    #expect(
      try names(cli).filter { $0.hasPrefix("plain.db") && !$0.hasPrefix("plain.db.before") } == [
        "plain.db", "plain.db-shm.before-restore-TIME", "plain.db-wal.before-restore-TIME",
      ])
    #expect(try cli.directory.read("tree/plain.db") == Array("SQLite format 3\u{0} plain".utf8))
  }

  /// A database that is restored by itself to a new place has its log there, by the new name.
  @Test(arguments: [false, true]) func aDatabaseByItselfBringsItsLogToANewPlace(
    isLogThere: Bool
  ) throws {
    let cli = try rig()
    if isLogThere { try cli.directory.write("another log", at: "copy.db-wal") }
    _ = try cli.succeed("restore latest:folders/tree/notes.db --to copy.db --repo repo")
    #expect(try cli.directory.read("copy.db-wal") == Array("log of old".utf8))
    #expect(try cli.directory.read("copy.db") == Array("SQLite format 3\u{0} old".utf8))
    // What was there is nobody's to overwrite.
    let aside = try cli.names(in: ".").filter {
      "\($0)".hasPrefix("copy.db-wal.before-restore-")
    }
    #expect(aside.count == (isLogThere ? 1 : 0))
    for name in aside { #expect(try cli.directory.read(name) == Array("another log".utf8)) }
  }

  /// A log whose database is not there, and which is to stay, gets none.
  @Test func aDatabaseDoesNotComeToALogThatStays() throws {
    let cli = try rig()
    try Directory.open(path: cli.directory.path("tree")).remove("notes.db")
    try cli.directory.write("log of another state", at: "tree/notes.db-wal")
    let run = try cli.run("restore latest:folders/tree --to tree --overwrite never --repo repo")
    #expect(run.code == 3 && run.errors.contains("notes.db"), "\(run.errors)")
    #expect(try names(cli).filter { $0.hasPrefix("notes") } == ["notes.db-wal"])
    #expect(try cli.directory.read("tree/notes.db-wal") == Array("log of another state".utf8))
  }

  @Test func aDatabaseByItselfBringsItsLog() throws {
    let cli = try rig()
    let directory = try Directory.open(path: cli.directory.path("tree"))
    try directory.remove("notes.db")
    try directory.remove("notes.db-wal")
    _ = try cli.succeed("restore latest:folders/tree/notes.db --in-place --repo repo")
    #expect(try cli.directory.read("tree/notes.db-wal") == Array("log of old".utf8))
    #expect(try cli.directory.read("tree/notes.db") == Array("SQLite format 3\u{0} old".utf8))
    #expect(try cli.directory.read("tree/plain.db-wal") == Array("log of another state".utf8))
  }
}
