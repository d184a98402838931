import SystemIO
import TestSupport
import Testing

/// `dump --merge-log`: one file, as SQLite recovers it from a database and its logs.
struct MergeLogTests {
  private static let wal = """
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute("CREATE TABLE t (n, pad)")
    connection.executemany(
      "INSERT INTO t VALUES (?, randomblob(900))", ((n,) for n in range(300)))
    connection.execute("PRAGMA wal_checkpoint(RESTART)")
    connection.executemany(
      "INSERT INTO t VALUES (?, randomblob(900))", ((n,) for n in range(300, 400)))
    connection.execute("BEGIN")
    connection.execute("UPDATE t SET n = n + 1 WHERE n % 7 = 0")
    connection.execute("COMMIT")
    """

  /// An open transaction, much of which has been written to the database.
  private static let broken = """
    connection.execute("PRAGMA cache_size=1")
    connection.execute("CREATE TABLE t (n, pad)")
    connection.executemany(
      "INSERT INTO t VALUES (?, zeroblob(900))", ((n,) for n in range(300)))
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN")
    connection.execute("UPDATE t SET n = n + 1000, pad = randomblob(1800)")
    """

  /// Leaves `tree/db` with a log, as a killed program does; backs it up, and puts SQLite's own
  /// recovery into `back`.
  private static func killed(_ statements: String, in cli: CommandLine) throws {
    _ = try Directory.make(path: cli.directory.path("tree"))
    let holder = try Holder(statements, in: cli)
    holder.kill()
    #expect(try DatabaseCommandTests.backup(cli, "--strict").code == 0)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
  }

  private static let recover = """
    import sqlite3, sys
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    """

  private static func sql(
    _ statement: String, _ path: String, _ cli: CommandLine
  ) throws -> String {
    let outcome = try Program.run("sqlite3", [path, statement], in: cli.directory.url)
    return outcome.output + outcome.errors
  }

  /// Expects the dumped database to be intact, to have the rows that SQLite recovers, and to equal
  /// the file that it writes.
  private static func expectRecovered(_ dumped: Program.Outcome, _ cli: CommandLine) throws {
    #expect(dumped.code == 0 && dumped.errors.isEmpty, "\(dumped.errors)")
    try cli.directory.write(dumped.standardOutput, at: "one")
    #expect(try sql("PRAGMA integrity_check", "one", cli) == "ok\n")
    #expect(try sql(".dump", "one", cli) == sql(".dump", "back/db", cli))
    #expect(try sql("SELECT count(*) FROM t", "one", cli) != "0\n")
  }

  @Test(arguments: [wal, broken]) func resultEqualsSQLitesRecovery(statements: String) throws {
    let cli = try CommandLine()
    try Self.killed(statements, in: cli)
    let stored = try cli.directory.read("tree/db")
    let dumped = try cli.run("dump latest:folders/tree/db --merge-log --repo repo")
    #expect(dumped.standardOutput != stored)
    _ = try DatabaseCommandTests.python(Self.recover, ["back/db"], in: cli.directory)
    #expect(try dumped.standardOutput == cli.directory.read("back/db"))
    try Self.expectRecovered(dumped, cli)
    // The copy of the log has been removed.
    let cache = try Directory.open(path: cli.directory.path("home/.cache")).names()
    #expect(cache == ["sandboxctl"])
  }

  /// SQLite rolls back first, then applies the write-ahead log.
  @Test func journalIsAppliedBeforeALog() throws {
    let cli = try CommandLine()
    try Self.killed(Self.broken, in: cli)
    let other = try CommandLine()
    try Self.killed(Self.wal, in: other)
    try cli.directory.write(try other.directory.read("tree/db-wal"), at: "tree/db-wal")
    #expect(try DatabaseCommandTests.backup(cli, "--strict").code == 0)
    _ = try cli.succeed("restore latest:folders/tree --to both --repo repo")
    let dumped = try cli.run("dump latest:folders/tree/db --merge-log --repo repo")
    #expect(dumped.code == 0, "\(dumped.errors)")
    _ = try DatabaseCommandTests.python(Self.recover, ["both/db"], in: cli.directory)
    #expect(try dumped.standardOutput == cli.directory.read("both/db"))
  }

  /// The header of an encrypted database is unreadable, and the log gives the page size.
  @Test func encryptedDatabaseNeedsNoKey() throws {
    let cli = try CommandLine()
    try Self.killed(Self.wal, in: cli)
    _ = try DatabaseCommandTests.python(Self.recover, ["back/db"], in: cli.directory)
    let database = try cli.directory.read("tree/db")
    var random = Seeded(5)
    try cli.directory.write(random.bytes(4096) + database.dropFirst(4096), at: "tree/db")
    #expect(try DatabaseCommandTests.backup(cli, "--strict").code == 0)
    let dumped = try cli.run("dump latest:folders/tree/db --merge-log --repo repo")
    #expect(dumped.code == 0, "\(dumped.errors)")
    #expect(try dumped.standardOutput == cli.directory.read("back/db"))
    // The same log does not belong to a database with another page size.
    var other = database
    (other[16], other[17]) = (2, 0)
    try cli.directory.write(other, at: "tree/db")
    #expect(try DatabaseCommandTests.backup(cli, "--strict").code == 0)
    let refused = try cli.run("dump latest:folders/tree/db --merge-log --repo repo")
    #expect(refused.code == 1 && refused.standardOutput.isEmpty)
    #expect(
      refused.errors.contains("its pages have 4096 bytes, but those of the database have 512"))
    #expect(refused.errors.contains("use '--tar' to write the database and its logs"))
  }

  @Test func withoutAValidLogTheDatabaseIsUnchanged() throws {
    let cli = try CommandLine()
    for (name, text) in [("a", "alone"), ("b", "with a log"), ("c", "")] {
      try cli.directory.write(text, at: ByteString("tree/\(name)"))
    }
    for name: ByteString in ["tree/b-wal", "tree/b-journal", "tree/c-wal"] {
      try cli.directory.write("no log at all", at: name)
    }
    #expect(try DatabaseCommandTests.backup(cli).code == 0)
    let alone = try cli.run("dump latest:folders/tree/a --merge-log --repo repo")
    #expect(alone.code == 0 && alone.output == "alone" && alone.errors.isEmpty)
    let dumped = try cli.run("dump latest:folders/tree/b --merge-log --repo repo")
    #expect(dumped.code == 0 && dumped.output == "with a log")
    #expect(
      dumped.errors == """
        note: the database's log 'folders/tree/b-journal' has no changes for it
        note: the database's log 'folders/tree/b-wal' has no changes for it

        """)
    let quiet = try cli.run("dump latest:folders/tree/b --merge-log --quiet --repo repo")
    #expect(quiet.output == "with a log" && quiet.errors.isEmpty)
    let empty = try cli.run("dump latest:folders/tree/c --merge-log --repo repo")
    #expect(empty.code == 0 && empty.output.isEmpty)
  }

  @Test func transactionOverSeveralDatabasesIsRefused() throws {
    let cli = try CommandLine()
    try Self.killed(Self.broken, in: cli)
    let append = """
      import struct
      name = b"/device/main-mj0123456789"
      with open("tree/db-journal", "ab") as file:
        file.write(bytes(-file.tell() % 512) + struct.pack(">I", 0x40000000 // 4096 + 1) + name)
        file.write(struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7"))
      """
    _ = try DatabaseCommandTests.python(append, [], in: cli.directory)
    #expect(try DatabaseCommandTests.backup(cli).code == 3, "the super-journal is not there")
    let refused = try cli.run("dump latest:folders/tree/db --merge-log --repo repo")
    #expect(refused.code == 1 && refused.standardOutput.isEmpty)
    #expect(refused.errors.contains("transaction over several databases"), "\(refused.errors)")
    #expect(refused.errors.contains("'/device/main-mj0123456789'"))
    #expect(refused.errors.contains("use '--tar' to write the database and its logs"))
  }

  @Test func damagedLogIsDetectedBeforeAnyOutput() throws {
    let cli = try CommandLine()
    _ = try Directory.make(path: cli.directory.path("tree"))
    let holder = try Holder(
      """
      connection.execute("PRAGMA journal_mode=wal")
      connection.execute("PRAGMA wal_autocheckpoint=0")
      connection.execute("CREATE TABLE t (n)")
      connection.execute("PRAGMA wal_checkpoint(RESTART)")
      connection.execute("INSERT INTO t VALUES (randomblob(12000000))")
      """, in: cli)
    holder.kill()
    _ = try cli.succeed("init repo --plain")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo --quiet")
    try cli.flip(byte: 6_000_000, of: try cli.largestPack())
    let dumped = try cli.run("dump latest:folders/tree/db --merge-log --repo repo")
    #expect(dumped.code == 13 && dumped.standardOutput.isEmpty, "\(dumped.errors)")
    #expect(try cli.run("dump latest:folders/tree/db --quiet --repo repo").code == 0)
  }

  @Test func onlyFilesHaveLogs() throws {
    let cli = try CommandLine()
    try cli.directory.write("x", at: "tree/inner/file")
    _ = try Program.run("ln", ["-s", "inner", "tree/link"], in: cli.directory.url)
    #expect(try DatabaseCommandTests.backup(cli).code == 0)
    for location in ["latest", "latest:folders/tree/inner"] {
      let directory = try cli.run("dump \(location) --merge-log --repo repo")
      #expect(directory.code == 2 && directory.standardOutput.isEmpty)
      #expect(directory.errors.contains("it is a directory"), "\(directory.errors)")
    }
    let link = try cli.run("dump latest:folders/tree/link --merge-log --repo repo")
    #expect(link.code == 1 && link.errors.contains("'--tar' writes it"), "\(link.errors)")
    let both = try cli.run("dump latest:folders/tree/inner/file --tar --merge-log --repo repo")
    #expect(both.code == 2 && both.errors.contains("cannot be used together"))
  }
}
