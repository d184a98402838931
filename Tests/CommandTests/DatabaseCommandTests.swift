import Foundation
import SystemIO
import TestSupport
import Testing

/// Databases through the commands: backed up in use, restored, and opened by SQLite.
struct DatabaseCommandTests {
  /// A real database with a log, and the row counts of its tables without and with the log.
  private struct Real: CustomTestStringConvertible {
    let archive: String
    let name: ByteString
    let alone: Int
    let whole: Int
    var testDescription: String { "\(name)" }
  }

  private static let material = "fixtures/sqlite-wal"

  private static let real = [
    Real(
      archive: "testdata.notes.notes.josh_ios17_ffs.zip", name: "NoteStore.sqlite", alone: 824,
      whole: 832),
    Real(
      archive: "testdata.safariCache.safariCache.mvs_ios_2023.zip", name: "Cache.db", alone: 0,
      whole: 4),
  ]

  /// Prints the rows of all tables, as counted in the fixtures' README; the directory must be
  /// writable.
  private static let count = """
    import sqlite3, sys
    connection = sqlite3.connect(sys.argv[1])
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    print(sum(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name, in tables))
    """

  static func python(
    _ program: String, _ arguments: [String], in directory: TemporaryDirectory
  ) throws -> String {
    let outcome = try Program.run("python3", ["-c", program] + arguments, in: directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
    return outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private static func rows(_ path: String, in directory: TemporaryDirectory) throws -> Int {
    try #require(Int(try python(count, [path], in: directory)))
  }

  /// Creates a repository, backs up `tree` and returns the outcome.
  static func backup(
    _ cli: CommandLine, _ more: String = "", under wrapper: [String] = []
  ) throws -> Program.Outcome {
    if !FileManager.default.fileExists(atPath: cli.directory.string + "/repo") {
      _ = try cli.succeed("init repo --plain")
    }
    return try cli.run(
      "backup --layout folder --root tree --repo repo \(more)", under: wrapper)
  }

  @Test(.enabled(if: Shared.has(material)), arguments: real)
  private func realDatabasesAreRestoredWithTheirLogs(real: Real) throws {
    let cli = try CommandLine()
    let archive = Shared.path("\(Self.material)/\(real.archive)")
    let unzip = """
      import pathlib, sys, zipfile
      for member in zipfile.ZipFile(sys.argv[1]).infolist():
        target = pathlib.Path("tree", pathlib.PurePath(member.filename).name)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(zipfile.ZipFile(sys.argv[1]).read(member))
      """
    _ = try Self.python(unzip, [archive], in: cli.directory)
    let names = try Directory.open(path: cli.directory.path("tree")).names()
    #expect(try Self.backup(cli).code == 0)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    for name in names {
      let (was, now) = (ByteString("tree").appending(name), ByteString("back").appending(name))
      #expect(try cli.directory.read(was) == cli.directory.read(now), "\(name)")
    }
    // The backup has not opened the database with SQLite: the directory is unchanged.
    #expect(try Directory.open(path: cli.directory.path("tree")).names() == names)
    #expect(try Self.rows("back/\(real.name)", in: cli.directory) == real.whole)
    let dumped = try cli.run("dump latest:folders/tree/\(real.name) --repo repo")
    try cli.directory.write(dumped.standardOutput, at: "alone")
    #expect(try Self.rows("alone", in: cli.directory) == real.alone)
    let databases = try cli.json("snapshots show latest --json --repo repo")["databases"]
    #expect((databases as? [[String: Any]])?.first?["how"] as? String == "watching")
  }

  /// The same database on a device, where the policy decides: the data of a group with its log.
  @Test(.enabled(if: Shared.has(material)))
  func realDatabaseOfADeviceIsRestored() throws {
    let cli = try CommandLine()
    let unzip = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall('disk')"
    _ = try Self.python(
      unzip, [Shared.path("\(Self.material)/\(Self.real[0].archive)")], in: cli.directory)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root disk/filesystem1 --repo repo --quiet")
    _ = try cli.succeed("restore latest --to back --repo repo")
    let group = "back/groups/~72DA7FCC-4DD6-458D-A328-D7CD7ED267D2"
    #expect(
      try Directory.open(path: cli.directory.path(ByteString(group))).names()
        == ["NoteStore.sqlite", "NoteStore.sqlite-wal"])
    #expect(try Self.rows(group + "/NoteStore.sqlite", in: cli.directory) == 832)
  }

  // MARK: - Invalid input

  @Test func falseDatabasesAreStoredByteForByte() throws {
    let cli = try CommandLine()
    var random = Seeded(11)
    let files: [(ByteString, [UInt8])] = [
      ("notes.sqlite", Array("no database at all".utf8)), ("empty.db", []),
      ("empty.db-wal", Array("a log of nothing".utf8)),
      ("magic.db", Array("SQLite format 3\0".utf8)), ("short.db", Array("SQLite form".utf8)),
      ("magic.db-wal", random.bytes(10_000)), ("magic.db-journal", [0xd9, 0xd5, 0x05, 0xf9]),
      ("lonely-wal", random.bytes(5000)), ("lonely-shm", random.bytes(100)),
      // SQLCipher's pages have no recognizable header: the first 16 bytes are a salt.
      ("secret.db", random.bytes(40_960)), ("secret.db-wal", random.bytes(20_000)),
      ("secret.db-shm", random.bytes(32_768)),
    ]
    for (name, bytes) in files {
      try cli.directory.write(bytes, at: ByteString("tree").appending(name))
    }
    let outcome = try Self.backup(cli, "--strict")
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    let snapshot = try cli.json("snapshots show latest --json --repo repo")
    let databases = (snapshot["databases"] as? [[String: Any]])?.compactMap {
      $0["path"] as? String
    }
    #expect(
      databases?.sorted() == ["empty", "magic", "secret"].map { "folders/tree/\($0).db" })
  }

  @Test func directoryNamedLikeADatabaseIsADirectory() throws {
    let cli = try CommandLine()
    try cli.directory.write("x", at: "tree/store.db/inner")
    try cli.directory.write("log", at: "tree/store.db-wal")
    #expect(try Self.backup(cli, "--strict").code == 0)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  /// A lock holder that does not write: the database is stable and can be read despite the lock.
  @Test(arguments: ["wal", "delete"]) func permanentlyLockedDatabaseIsRead(mode: String) throws {
    let cli = try CommandLine()
    _ = try Directory.make(path: cli.directory.path("tree"))
    let holder = try Holder(
      """
      connection.execute("PRAGMA locking_mode=EXCLUSIVE")
      connection.execute("PRAGMA journal_mode=\(mode)")
      connection.execute("CREATE TABLE t (n)")
      connection.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(500)))
      connection.execute("BEGIN EXCLUSIVE")
      os.utime("tree/db", (1_700_000_000, 1_700_000_000))
      """, in: cli)
    let outcome = try Self.backup(cli, "--strict")
    #expect(outcome.code == 0, "\(outcome.errors)")
    holder.end()
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    #expect(try Self.python(Self.numbers, ["back/db"], in: cli.directory) == "500 499")
  }

  static let numbers = """
    import sqlite3, sys
    connection = sqlite3.connect(sys.argv[1])
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    print(*connection.execute("SELECT count(*), max(n) FROM t").fetchone())
    """

  /// A lock holder that writes permanently: the database is copied unlocked, which is reported.
  @Test func permanentlyChangingDatabaseIsCopiedUnlocked() throws {
    let cli = try CommandLine()
    try cli.directory.write(
      "SQLite format 3\0" + String(repeating: "page", count: 400_000), at: "tree/db")
    try cli.directory.write("log", at: "tree/db-wal")
    try cli.directory.write("a note", at: "tree/note")
    let holder = try Holder(
      """
      import fcntl
      file = os.open("tree/db", os.O_RDWR)
      fcntl.lockf(file, fcntl.LOCK_EX, 512, 0x40000000)
      """, connects: false, forever: "os.pwrite(file, os.urandom(8), 16)", in: cli)
    // Slow reads give the writer time to write meanwhile, on most machines.
    let slowly = [
      "strace", "-f", "-o", "/dev/null", "-e", "trace=pread64", "-e",
      "inject=pread64:delay_exit=100000",
    ]
    var outcome = try Self.backup(cli, "--strict", under: slowly)
    let end = Host.monotonicSeconds() + 300
    while outcome.code == 0, Host.monotonicSeconds() < end {
      outcome = try Self.backup(cli, "--strict", under: slowly)
    }
    holder.end()
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.output.contains("1 database stored without locks"), "\(outcome.output)")
    let snapshot = try cli.json("snapshots show latest --json --repo repo")
    let databases = snapshot["databases"] as? [[String: Any]]
    #expect(databases?.first?["how"] as? String == "as-it-stood")
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    #expect(try cli.directory.read("back/note") == Array("a note".utf8))
    #expect(try cli.directory.read("back/db").count == cli.directory.read("tree/db").count)
  }

  /// The database is stored without its log, which is named with the error.
  @Test func aDatabaseIsStoredWithoutALogThatCannotBeOpened() throws {
    let cli = try CommandLine()
    try cli.directory.write("SQLite format 3\0pages", at: "tree/db")
    try cli.directory.write("log", at: "tree/db-wal")
    _ = try Program.run("chmod", ["000", cli.directory.string + "/tree/db-wal"])
    defer { cli.open() }
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    #expect(try cli.runAsNobody("init repo --plain").code == 0)
    let outcome = try cli.runAsNobody("backup --layout folder --root tree --repo repo")
    #expect(outcome.code == 3)
    let log = "tree/db-wal (\(cli.directory.path("tree/db-wal"))): permission denied"
    #expect(outcome.errors.contains("warning: not in the snapshot: folders/\(log)"))
    #expect(outcome.errors.contains("stored without 'db-wal', which cannot be opened"))
    #expect(!outcome.output.contains("in use"), "\(outcome.output)")
    let shown = try cli.runAsNobody("snapshots show latest --json --repo repo").output
    #expect(shown.contains("as-it-stood"))
    let text = try cli.runAsNobody("snapshots show latest --repo repo").output
    #expect(text.contains("db: perhaps inconsistent, in use while it"), "\(text)")
    let restored = try cli.runAsNobody("restore latest:folders/tree --to back --repo repo")
    #expect(restored.errors.contains("warning: db: it was in use during the backup, or its log"))
    #expect(try cli.directory.read("back/db") == cli.directory.read("tree/db"))
  }

  /// A copy that may be inconsistent is reported whenever it is restored, and only then.
  @Test func restoreReportsACopyThatWasReadWithoutLocks() throws {
    let cli = try CommandLine()
    try cli.directory.write(
      "SQLite format 3\0" + String(repeating: "page", count: 4000), at: "tree/a/db")
    try cli.directory.write("a note", at: "tree/a/note")
    let holder = try Holder(
      """
      import fcntl
      file = os.open("tree/a/db", os.O_RDWR)
      fcntl.lockf(file, fcntl.LOCK_EX, 512, 0x40000000)
      """, connects: false, in: cli)
    let stored = try Self.backup(cli, "--sqlite-timeout 1s")
    #expect(stored.code == 3, "\(stored.errors)")
    holder.end()
    let words = ": it was in use during the backup, or its log or journal could not be opened"
    for (line, path) in [
      ("restore latest:folders/tree --to whole --dry-run", "a/db"),
      ("restore latest:folders/tree --to whole", "a/db"),
      ("restore latest --to all", "folders/tree/a/db"),
      ("restore latest:folders/tree --to whole --overwrite always", "a/db"),
      ("restore latest:folders/tree/a/db --to single", "single"),
      ("dump latest:folders/tree/a/db", "folders/tree/a/db"),
      ("dump latest:folders/tree --quiet", "folders/tree/a/db"),
    ] {
      let outcome = try cli.run(line + " --repo repo")
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("warning: \(path)\(words)"), "\(line): \(outcome.errors)")
    }
    // The existing database is the stored one, so it stays.
    for line in [
      "restore latest:folders/tree/a/note --to note",
      "restore latest:folders/tree --in-place --no-snapshot",
    ] {
      let outcome = try cli.run(line + " --repo repo")
      #expect(outcome.code == 0 && !outcome.errors.contains(words), "\(line): \(outcome.errors)")
    }
    try cli.directory.write("SQLite format 3\0", at: "tree/a/db")
    let outcome = try cli.run("restore latest:folders/tree --in-place --no-snapshot --repo repo")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.errors.contains("warning: folders/tree/a/db\(words)"), "\(outcome.errors)")
  }

  /// A read-only directory, in which neither a lock file nor an index of the log can be created.
  @Test func databaseOnAReadOnlyFileSystemIsRead() throws {
    let cli = try CommandLine()
    _ = try Directory.make(path: cli.directory.path("tree"))
    let holder = try Holder(
      """
      connection.execute("PRAGMA journal_mode=wal")
      connection.execute("PRAGMA wal_autocheckpoint=0")
      connection.execute("CREATE TABLE t (n)")
      connection.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(300)))
      """, in: cli)
    let tree = cli.directory.string + "/tree"
    let outcome = try Self.backup(
      cli, "--strict", under: ["bwrap", "--dev-bind", "/", "/", "--ro-bind", tree, tree])
    #expect(outcome.code == 0, "\(outcome.errors)")
    let names = try Directory.open(path: cli.directory.path("tree")).names()
    #expect(names == ["db", "db-shm", "db-wal"])
    holder.end()
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    #expect(try Self.python(Self.numbers, ["back/db"], in: cli.directory) == "300 299")
  }

  /// A writer killed in a transaction: its writes to the database are rolled back.
  @Test func hotJournalIsRestoredWithItsDatabase() throws {
    let cli = try CommandLine()
    _ = try Directory.make(path: cli.directory.path("tree"))
    let holder = try Holder(
      """
      connection.execute("PRAGMA cache_size=5")
      connection.execute("CREATE TABLE t (n, pad)")
      connection.executemany(
        "INSERT INTO t VALUES (?, zeroblob(2000))", ((n,) for n in range(200)))
      connection.execute("BEGIN")
      connection.execute("UPDATE t SET n = n + 1000, pad = randomblob(2000)")
      """, in: cli)
    holder.kill()
    let journal = try cli.directory.read("tree/db-journal")
    #expect(journal.starts(with: [0xd9, 0xd5, 0x05, 0xf9]))
    #expect(try Self.backup(cli, "--strict").code == 0)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    #expect(try cli.directory.read("back/db-journal") == journal)
    #expect(try Self.python(Self.numbers, ["back/db"], in: cli.directory) == "200 199")
    // The database file alone contains the transaction that the journal rolls back.
    let alone = try cli.run("dump latest:folders/tree/db --repo repo")
    try cli.directory.write(alone.standardOutput, at: "alone")
    #expect((try? Self.python(Self.numbers, ["alone"], in: cli.directory)) != "200 199")
  }
}

/// A program that keeps a database in `tree/db` open until `end`.
final class Holder {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  private static let connection = """
    connection = sqlite3.connect("tree/db", timeout=0, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    """

  /// Runs Python statements, with a `connection` unless the file is not a database, then waits and
  /// repeats `forever`.
  init(
    _ statements: String, connects: Bool = true, forever: String = "time.sleep(0.01)",
    in cli: CommandLine
  ) throws {
    let program = """
      import os, select, sqlite3, time
      \(connects ? Self.connection : "")
      \(statements)
      print("ready", flush=True)
      while not select.select([0], [], [], 0)[0]: \(forever)
      """
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", program]
    process.currentDirectoryURL = cli.directory.url
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    guard output.fileHandleForReading.readData(ofLength: 1).first == UInt8(ascii: "r") else {
      throw Program.Failure(description: "the program that holds the database has ended")
    }
  }

  func end() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  /// Kills the program, so that it closes nothing.
  func kill() {
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  deinit { if process.isRunning { kill() } }
}
