import SystemIO
import TestSupport
import Testing

/// The backup of attached databases that a crash has left within a transaction over all of them.
@Suite(.enabled(if: Strace.isPermitted)) struct SeveralDatabasesTests {
  /// Kills SQLite when it is about to delete the super-journal, which would commit: all databases
  /// have their new pages already.
  private static let crash = """
    import subprocess, sys
    connect = '''
    import sqlite3
    connection = sqlite3.connect("tree/main.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=delete")
    connection.execute("ATTACH 'tree/other.db' AS other")
    '''
    make = '''
    for table in ("t", "other.t"):
        connection.execute(f"CREATE TABLE {table} (n)")
        connection.executemany(f"INSERT INTO {table} VALUES (?)", ((n,) for n in range(500)))
    '''
    change = '''
    connection.execute("BEGIN")
    for table in ("t", "other.t"):
        connection.execute(f"UPDATE {table} SET n = n + 1000")
        connection.execute(f"DELETE FROM {table} WHERE n > 1400")
    connection.execute("COMMIT")
    '''
    subprocess.run(["python3", "-c", connect + make], check=True)
    subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=/unlink", "-e",
         "inject=/unlink:signal=KILL:when=1", "python3", "-c", connect + change])
    """

  /// The rows of both databases below a directory, which SQLite recovers.
  private static let rows = """
    import sqlite3, sys
    for name in ("main", "other"):
        connection = sqlite3.connect(f"{sys.argv[1]}/{name}.db")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        print(*connection.execute("SELECT count(*), max(n) FROM t").fetchone())
    """

  private func crash(_ cli: CommandLine) throws -> ByteString {
    _ = try Directory.make(path: cli.directory.path("tree"))
    _ = try DatabaseCommandTests.python(Self.crash, [], in: cli.directory)
    let names = try Directory.open(path: cli.directory.path("tree")).names()
    #expect(names.contains("main.db-journal") && names.contains("other.db-journal"))
    return try #require(names.first { $0.description.hasPrefix("main.db-mj") })
  }

  /// Neither database needs the super-journal, which SQLite looks for at the original path.
  @Test func anUncommittedTransactionIsRolledBackInARestore() throws {
    let cli = try CommandLine()
    _ = try crash(cli)
    for _ in 1...2 {
      let outcome = try DatabaseCommandTests.backup(cli)
      #expect(outcome.code == 0, "\(outcome.errors)")
      for name in ["main", "other"] {
        #expect(
          outcome.errors.contains("'\(name).db-journal' was stored without the name of"),
          "\(outcome.errors)")
      }
    }
    let show = try cli.json("snapshots show latest --json --repo repo")
    let databases = show["databases"] as? [[String: Any]]
    #expect(databases?.compactMap { $0["how"] as? String } == ["locks", "locks"])
    try cli.directory.directory.rename("tree", to: "gone", in: cli.directory.directory)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    #expect(
      try DatabaseCommandTests.python(Self.rows, ["back"], in: cli.directory)
        == "500 499\n500 499")
  }

  /// SQLite treats a transaction as committed if its super-journal is gone from its directory.
  @Test func aCommittedTransactionIsRestored() throws {
    let cli = try CommandLine()
    let name = try crash(cli)
    try Directory.open(path: cli.directory.path("tree")).remove(name)
    for _ in 1...2 {
      let outcome = try DatabaseCommandTests.backup(cli)
      #expect(outcome.code == 0, "\(outcome.errors)")
      for file in ["main", "other"] {
        #expect(
          outcome.errors.contains("'\(file).db-journal', which SQLite ignores, was stored empty"),
          "\(outcome.errors)")
      }
    }
    let restored = try cli.run("restore latest:folders/tree --to back --repo repo")
    #expect(restored.code == 0 && !restored.errors.contains("inconsistent"), "\(restored.errors)")
    let journal = ByteString("back/main.db-journal")
    #expect(try cli.directory.read(journal).isEmpty)
    for directory in ["back", "tree"] {
      #expect(
        try DatabaseCommandTests.python(Self.rows, [directory], in: cli.directory)
          == "401 1400\n401 1400", "SQLite's own recovery has the same result")
    }
  }

  /// A copy of databases that lacks the super-journal may contain an uncommitted transaction.
  @Test func aMissingSuperJournalOfACopyIsReportedByEachBackup() throws {
    let cli = try CommandLine()
    let name = try crash(cli)
    try Directory.open(path: cli.directory.path("tree")).remove(name)
    try cli.directory.directory.rename("tree", to: "copy", in: cli.directory.directory)
    _ = try cli.succeed("init repo --plain")
    for option in ["", "--quiet"] {
      let outcome = try cli.run("backup --layout folder --root copy --repo repo \(option)")
      #expect(outcome.code == 3, "\(outcome.errors)")
      for file in ["main", "other"] {
        #expect(
          outcome.errors.contains("'\(file).db-journal' belongs to an interrupted"),
          "\(outcome.errors)")
      }
      #expect(outcome.errors.contains("/tree/\(name)' was not found"), "\(outcome.errors)")
      #expect(!outcome.output.contains("stored without locks"))
    }
    let restored = try cli.run("restore latest:folders/copy --to back --repo repo")
    #expect(restored.errors.contains("this copy may be inconsistent"), "\(restored.errors)")
    #expect(
      try cli.directory.read("back/main.db-journal")
        == cli.directory.read("copy/main.db-journal"))
  }
}
