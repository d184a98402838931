import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Backups with a log or a journal next to Manifest.db.
struct MobileSyncLogTests {
  typealias Item = MobileSyncFixture.Item

  private static let app = "AppDomain-com.example.app"
  private static let data: ByteString = "apps/com.example.app/data"
  private static let log: ByteString = "Manifest.db-wal"
  private static let journal: ByteString = "Manifest.db-journal"

  private static let items = ["first", "second"].map { Item(app, $0, .file([1, 2, 3])) }

  /// Writes a backup, and brings its manifest into the state in which statements leave a database
  /// with some of the items, with the log or journal next to it.
  private func backup(
    of items: [Item], _ listed: some Sequence<Item>, beside name: ByteString,
    changing change: (SQLiteDatabase) throws -> Void
  ) throws -> TemporaryDirectory {
    let backup = try MobileSyncFixture(items).write()
    let work = try TemporaryDirectory("database")
    try MobileSyncFixture.makeDatabase(Array(listed), at: work.path("Manifest.db"))
    let database = try SQLiteDatabase.create(path: work.path("Manifest.db"))
    try change(database)
    for name in ["Manifest.db", name] { try backup.write(work.read(name), at: name) }
    return backup
  }

  /// Returns a backup whose second file is only in the log.
  private func backupWithLog() throws -> TemporaryDirectory {
    try backup(of: Self.items, Self.items.prefix(1), beside: Self.log) { database in
      try database.execute("PRAGMA journal_mode = WAL")
      try MobileSyncFixture.insert([Self.items[1]], into: database)
    }
  }

  @Test func transactionsInTheLogAreRead() throws {
    let backup = try backupWithLog()
    let before = try [Self.log, "Manifest.db"].map { try backup.read($0) }
    let names = try backup.directory.names().sorted()
    let outcome = try MobileSyncFixture.read(backup.path)
    #expect(outcome.entries.keys.sorted() == ["first", "second"].map { Self.data.appending($0) })
    #expect(outcome.reasons == [] && outcome.damaged == [:])
    #expect(try [Self.log, "Manifest.db"].map { try backup.read($0) } == before)
    #expect(try backup.directory.names().sorted() == names)
  }

  @Test func interruptedTransactionsAreUndone() throws {
    let items = (0..<300).map { Item(Self.app, "directory \($0)", .directory) }
    let backup = try backup(of: [], items, beside: Self.journal) { database in
      // A small cache makes SQLite write pages before the end of the transaction.
      try database.execute(
        "PRAGMA cache_size = 1; BEGIN; UPDATE Files SET domain = 'HomeDomain', file = fileID")
    }
    let outcome = try MobileSyncFixture.read(backup.path)
    #expect(outcome.reasons == [])
    #expect(outcome.entries.count == 300)
    #expect(outcome.entries.keys.allSatisfy { $0.bytes.starts(with: Self.data.bytes) })
    try backup.directory.remove(Self.journal)
    let changed = try? MobileSyncFixture.read(backup.path)
    #expect(changed?.reasons != [], "the transaction was not interrupted")
  }

  @Test func logsThatCannotBeMergedAreNamed() throws {
    let backup = try backupWithLog()
    var other = try backup.read(Self.log)
    other.replaceSubrange(32..<40, with: [UInt8](repeating: 7, count: 8))
    for (name, bytes) in [
      (Self.log, [UInt8](repeating: 0x41, count: 5000)), (Self.log, other),
      (Self.log, Array(other.prefix(33))),
    ] {
      try backup.write(bytes, at: name)
      try expectLoss(in: backup, because: "it has no complete transaction")
    }
    try backup.directory.remove(Self.log)
    try backup.directory.createLink(Self.log, to: "Manifest.db")
    try expectLoss(in: backup, because: "it is not a file")
  }

  @Test func logsOfOtherDatabasesAreNamed() throws {
    let backup = try backupWithLog()
    let work = try TemporaryDirectory("database")
    let database = try SQLiteDatabase.create(path: work.path("x"))
    try database.execute("PRAGMA page_size = 512; PRAGMA journal_mode = WAL; CREATE TABLE x (y)")
    try backup.write(work.read("x-wal"), at: Self.log)
    try expectLoss(in: backup, because: "its pages have 512 bytes")
  }

  /// Expects that the file in the database is read, and the log is reported.
  private func expectLoss(
    in backup: TemporaryDirectory, because reason: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let outcome = try MobileSyncFixture.read(backup.path)
    #expect(
      Array(outcome.entries.keys) == [Self.data.appending("first")], sourceLocation: sourceLocation)
    #expect(outcome.skipped.entryCount == 1, sourceLocation: sourceLocation)
    #expect(
      outcome.reasons.first?.hasPrefix(
        "Manifest.db-wal: it was not read, so files may be missing: \(reason)") == true,
      "\(outcome.reasons)", sourceLocation: sourceLocation)
  }

  @Test func filesWithoutTransactionsHaveNoEffect() throws {
    let log = try backupWithLog().read(Self.log)
    let backup = try MobileSyncFixture(Self.items).write()
    for (name, bytes) in [
      (Self.log, []), (Self.log, Array(log.prefix(32))), (Self.journal, []),
      (Self.journal, [UInt8](repeating: 0, count: 4096)), ("Manifest.db-shm", [1, 2, 3]),
    ] as [(ByteString, [UInt8])] {
      try backup.write(bytes, at: name)
      let outcome = try MobileSyncFixture.read(backup.path)
      #expect(outcome.entries.count == 2 && outcome.reasons == [], "\(name): \(bytes.count)")
    }
  }

  /// The log of an encrypted database has no defined form.
  @Test func logsOfEncryptedDatabasesAreNamed() throws {
    let log = try backupWithLog().read(Self.log)
    var fixture = MobileSyncFixture(Self.items)
    fixture.password = "x"
    let backup = try fixture.write()
    try backup.write(log, at: Self.log)
    let outcome = try MobileSyncFixture.read(backup.path, password: "x")
    #expect(outcome.entries.count == 2 && outcome.skipped.entryCount == 1)
    #expect(outcome.reasons.first?.hasSuffix("it is beside an encrypted database") == true)
    try backup.write([], at: Self.log)
    #expect(try MobileSyncFixture.read(backup.path, password: "x").reasons == [])
  }
}
