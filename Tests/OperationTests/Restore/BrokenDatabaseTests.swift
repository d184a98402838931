import ArchiveStore
import Backup
import DeviceTransaction
import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Databases that are not restored, or only in part, into a directory with other databases of the
/// same names: none of their files is restored, and the existing ones stay with their logs.
@Suite(.spreadScans) struct BrokenDatabaseTests {
  private static let later: [ByteString: String] = [
    "db": "SQLite format 3\0later", "db-wal": "log of later", "db-shm": "index of later",
  ]

  private let fixture: Fixture
  init() throws {
    fixture = try Fixture(inMemory: true)
    try fixture.directory.write(
      Array("SQLite format 3\0".utf8) + Seeded(1).someBytes(200_000), at: "tree/db")
    for (name, text) in Self.later {
      try fixture.directory.write(text, at: ByteString("into").appending(name))
    }
  }

  /// The packs with file contents; the packs of directories are small here.
  private func dataPacks() throws -> Set<ObjectPath> {
    let storage = fixture.repository.storage
    let packs = try #require(ObjectPath("packs"))
    var found: Set<ObjectPath> = []
    for directory in try storage.list(packs) {
      for name in try storage.list(packs.appending(directory)) {
        let path = packs.appending(directory).appending(name)
        if try #require(try storage.status(path)).size > 100_000 { found.insert(path) }
      }
    }
    return found
  }

  private func expectThatAllStayed() throws {
    #expect(try fixture.names("into") == ["db", "db-shm", "db-wal"])
    for (name, text) in Self.later {
      #expect(try fixture.text(ByteString("into").appending(name)) == text, "\(name)")
    }
  }

  @Test(arguments: [false, true])
  func aLogIsKeptIfItsDatabaseIsDamaged(deletes: Bool) throws {
    let report = try fixture.backup()
    for pack in try dataPacks() { try fixture.repository.storage.remove(pack) }
    let merged = try fixture.merge(report, into: "into", .always, deletes: deletes)
    #expect(merged.damaged.map(\.path) == ["db"] && merged.deleted.entries == 0)
    try expectThatAllStayed()
  }

  @Test(arguments: [false, true])
  func aDatabaseIsNotRestoredWithoutItsLog(deletes: Bool) throws {
    _ = try fixture.backup()
    let before = try dataPacks()
    try fixture.directory.write(Seeded(2).someBytes(150_000), at: "tree/db-wal")
    let report = try fixture.backup()
    let packs = try dataPacks().subtracting(before)
    try #require(packs.count == 1)
    for pack in packs { try fixture.repository.storage.remove(pack) }
    let merged = try fixture.merge(report, into: "into", .always, deletes: deletes)
    #expect(merged.damaged.map(\.path) == ["db-wal"])
    #expect(merged.failed.map(\.path) == ["db"] && merged.deleted.entries == 0)
    try expectThatAllStayed()
  }

  /// `--delete` does not delete the log of a database that is kept.
  @Test(arguments: [OverwriteMode.never, .ifNewer])
  func aLogIsKeptIfItsDatabaseIsNotReplaced(_ mode: OverwriteMode) throws {
    try fixture.setTime("tree/db", 100)
    try fixture.setTime("into/db", 200)
    try fixture.directory.write("more", at: "into/more")
    let merged = try fixture.merge(try fixture.backup(), into: "into", mode, deletes: true)
    #expect(merged.isComplete && merged.deleted.entries == 1)
    #expect(merged.spared.map(\.path) == ["db-shm", "db-wal"])
    #expect(merged.spared.allSatisfy { $0.remark.contains("'db', which is kept") })
    try expectThatAllStayed()
  }

  /// A database that is not in the snapshot is deleted with its log and index, and so is a log
  /// without a database.
  @Test func aLogIsDeletedWithItsDatabase() throws {
    let report = try fixture.backup()
    for name in ["other", "other-wal", "other-shm", "alone-wal"] {
      try fixture.directory.write(name, at: ByteString("into/\(name)"))
    }
    let merged = try fixture.merge(report, into: "into", .always, deletes: true)
    #expect(merged.isComplete && merged.spared.isEmpty)
    #expect(try fixture.names("into") == ["db"])
  }

  /// A restore that is interrupted before it replaces the log replaces neither the log nor the
  /// database.
  @Test func aRestoreDoesNotStopBetweenALogAndItsDatabase() throws {
    try fixture.directory.write("log of stored", at: "tree/db-wal")
    let plan = try fixture.plan(try fixture.backup(), into: "into", .always)
    for stop in 1... {
      let asked = Atomic<Int>(0)
      let operation = try RestoreOperation(
        plan, from: fixture.repository.beginReading(), threads: 1,
        isStopping: { asked.add(1, ordering: .relaxed).newValue >= stop })
      let report = try? operation.run()
      let hasLog = try fixture.text("into/db-wal") == "log of stored"
      let hasDatabase = try fixture.directory.read("into/db") == fixture.directory.read("tree/db")
      #expect(hasLog == hasDatabase, "\(stop)")
      if report != nil {
        #expect(hasLog && stop > 3, "\(stop)")
        return
      }
    }
  }

  /// If the target has no such database, the database is restored without its damaged log.
  @Test(arguments: [false, true]) func aDatabaseIsRestoredToANewPathWithoutItsDamagedLog(
    isDirectoryThere: Bool
  ) throws {
    _ = try fixture.backup()
    let before = try dataPacks()
    try fixture.directory.write(Seeded(2).someBytes(150_000), at: "tree/db-wal")
    let report = try fixture.backup()
    for pack in try dataPacks().subtracting(before) { try fixture.repository.storage.remove(pack) }
    if isDirectoryThere { try fixture.directory.write("mine", at: "back/mine") }
    let back =
      try isDirectoryThere ? fixture.merge(report, into: "back", .always) : fixture.restore(report)
    #expect(back.damaged.map(\.path) == ["db-wal"])
    #expect(back.failed.map(\.path) == ["db"])
    #expect(back.failed.allSatisfy { $0.remark.contains("'db-wal' could not be restored with it") })
    #expect(try fixture.names("back").filter { $0 != "mine" } == ["db"])
    #expect(try fixture.directory.read("back/db") == fixture.directory.read("tree/db"))
  }

  /// If a log cannot be restored, its database is not restored either, and vice versa.
  @Test(arguments: ["db", "db-wal"]) func aBlockedDatabaseIsNotRestoredInPart(
    _ blocked: String
  ) throws {
    try fixture.directory.write("log of stored", at: "tree/db-wal")
    let report = try fixture.backup()
    let into = try Directory.open(path: fixture.directory.path("into"))
    try into.remove(ByteString(blocked))
    try fixture.directory.write("mine", at: ByteString("into/\(blocked)/mine"))
    let merged = try fixture.merge(report, into: "into", .always)
    #expect(Set(merged.failed.map(\.path)) == ["db", "db-wal"])
    #expect(merged.restored.entries == 0)
    for name in ["db", "db-wal"] as [ByteString] where name != ByteString(blocked) {
      #expect(try fixture.text(ByteString("into").appending(name)) == Self.later[name])
    }
    #expect(try fixture.names("into") == ["db", "db-shm", "db-wal"])
  }

  /// A directory with the name of a log is not a log.
  @Test func aDirectoryIsNotALog() throws {
    let into = try Directory.open(path: fixture.directory.path("into"))
    try into.remove("db-wal")
    try fixture.directory.write("mine", at: "into/db-wal/mine")
    let merged = try fixture.merge(try fixture.backup(), into: "into", .always)
    #expect(merged.isComplete)
    #expect(try fixture.names("into/db-wal") == ["mine"])
  }

  /// A file that looks like the log of a log is an ordinary file for a backup and for a restore.
  @Test func aLogOfALogIsAnOrdinaryFile() throws {
    for name in ["db-wal", "db-wal-wal", "db-wal-wal-journal", "db-journal-wal"] {
      try fixture.directory.write("stored \(name)", at: ByteString("tree/\(name)"))
    }
    try fixture.directory.write("log of log of later", at: "into/db-wal-wal")
    let merged = try fixture.merge(try fixture.backup(), into: "into", .always)
    #expect(merged.isComplete)
    for name in try fixture.names("tree") {
      let stored = try fixture.directory.read(ByteString("tree").appending(name))
      #expect(try fixture.directory.read(ByteString("into").appending(name)) == stored)
    }
  }

  /// A hard link to a database that is not restored is not linked to the existing file of that
  /// name.
  @Test func aHardLinkToASkippedDatabaseHasTheRightContent() throws {
    for name in ["aa/db", "aa/db-wal"] as [ByteString] {
      try fixture.directory.write("stored \(name)", at: ByteString("tree").appending(name))
    }
    let directory = try Directory.open(path: fixture.directory.path("tree/aa"))
    try directory.createHardLink("twin", to: "db", in: directory)
    try Directory.make(path: fixture.directory.path("tree/zone")).createHardLink(
      "twin", to: "db", in: directory)
    // The log is kept, so the database is not restored.
    try fixture.directory.write("log of later", at: "into/aa/db-wal")
    let merged = try fixture.merge(try fixture.backup(), into: "into", .never)
    #expect(try fixture.names("into/aa") == ["db-wal"])
    #expect(merged.failed.map(\.path).sorted() == ["aa/db", "aa/twin"])
    // The next name of the file gets the content.
    #expect(try fixture.text("into/zone/twin") == "stored aa/db")
  }

  /// Files that are to be deleted with a database stay if the database stays, and are reported.
  @Test func filesThatAreNotDeletedAreReported() throws {
    let report = try fixture.backup()
    for pack in try dataPacks() { try fixture.repository.storage.remove(pack) }
    let merged = try fixture.merge(report, into: "into", .always, deletes: true)
    #expect(merged.spared.map(\.path) == ["db-shm", "db-wal"])
  }

  /// Files that are deleted with a database are counted.
  @Test func filesDeletedWithADatabaseAreCounted() throws {
    let merged = try fixture.merge(try fixture.backup(), into: "into", .always, deletes: true)
    #expect(merged.isComplete && merged.deleted.entries == 2)
    #expect(try fixture.names("into") == ["db"])
  }

  /// A log whose database is not in the snapshot is not restored next to an existing database.
  @Test func aLogIsNotRestoredBesideAnotherDatabase() throws {
    try fixture.directory.write("log of stored", at: "tree/db-wal")
    try Directory.open(path: fixture.directory.path("tree")).remove("db")
    let report = try fixture.backup()
    let merged = try fixture.merge(report, into: "into", .always, deletes: false)
    #expect(merged.failed.map(\.path) == ["db-wal"] && merged.restored.entries == 0)
    try expectThatAllStayed()
    // Without an existing database it is an ordinary file.
    try fixture.directory.write("mine", at: "other/mine")
    #expect(try fixture.merge(report, into: "other", .always).isComplete)
    #expect(try fixture.text("other/db-wal") == "log of stored")
  }

  /// A file that is not a database has neither a log nor a journal, whatever files are next to it.
  @Test func anOrdinaryFileHasNoJournal() throws {
    try fixture.directory.write("stored trip", at: "tree/trip")
    for name in ["trip", "trip-journal", "trip-shm"] {
      try fixture.directory.write("my \(name)", at: ByteString("into/\(name)"))
    }
    let merged = try fixture.merge(
      try fixture.backup(), "folders/tree/trip", into: "into/trip", .always)
    #expect(merged.isComplete && merged.displaced.isEmpty)
    #expect(try fixture.text("into/trip") == "stored trip")
    for name in ["trip-journal", "trip-shm"] {
      #expect(try fixture.text(ByteString("into/\(name)")) == "my \(name)")
    }
  }

  /// An encrypted database has no recognizable header. The journal of another state would be rolled
  /// back into the restored file.
  @Test func anEncryptedDatabaseIsNotRestoredBesideAnotherJournal() throws {
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    try fixture.directory.write("stored pages", at: "tree/secret")
    try fixture.directory.write("pages there", at: "into/secret")
    try fixture.directory.write(
      magic + [UInt8](repeating: 1, count: 504), at: "into/secret-journal")
    let merged = try fixture.merge(
      try fixture.backup(), "folders/tree/secret", into: "into/secret", .always)
    #expect(merged.isComplete)
    #expect(try fixture.text("into/secret") == "stored pages")
    let names = try fixture.names("into")
    #expect(!names.contains("secret-journal"))
    #expect(names.contains { "\($0)".hasPrefix("secret-journal.before-restore-") })
  }

  /// A log that is restored by itself is not restored next to another state of its database.
  @Test func aLogAloneIsNotRestoredBesideADatabase() throws {
    try fixture.directory.write("log of stored", at: "tree/db-wal")
    let report = try fixture.backup()
    let merged = try fixture.merge(report, "folders/tree/db-wal", into: "into/db-wal", .always)
    #expect(merged.failed.map(\.path) == ["db-wal"])
    try expectThatAllStayed()
    #expect(
      try fixture.merge(report, "folders/tree/db-wal", into: "into/log", .always).isComplete)
    #expect(try fixture.text("into/log") == "log of stored")
  }

  /// Replaced files with long names get short temporary names.
  @Test func aDatabaseWithALongNameIsRestored() throws {
    let name = ByteString([UInt8](repeating: UInt8(ascii: "x"), count: 247))
    for (directory, text) in [("tree", "stored"), ("into", "there")] as [(ByteString, String)] {
      try fixture.directory.write("\(text)", at: directory.appending(name))
      try fixture.directory.write(
        "log of \(text)", at: directory.appending(ByteString("\(name)-wal")))
    }
    try fixture.directory.write("journal", at: ByteString("into/\(name)-journal"))
    #expect(try fixture.merge(try fixture.backup(), into: "into", .always).isComplete)
    #expect(try fixture.text(ByteString("into").appending(name)) == "stored")
    #expect(try fixture.text(ByteString("into/\(name)-wal")) == "log of stored")
    let long = try fixture.names("into").filter { "\($0)".hasPrefix("xxx") }
    #expect(long.count == 3 && long.contains { "\($0)".contains(".before-restore-") })
  }

  /// A `-shm` file that is in the snapshot does not belong to another state.
  @Test func aStoredIndexIsNotOrphaned() throws {
    try fixture.directory.write("index of later", at: "tree/db-shm")
    try fixture.setTime("tree/db-shm", 100)
    try fixture.setTime("into/db-shm", 100)
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifChanged)
    #expect(merged.isComplete)
    #expect(try fixture.text("into/db-shm") == "index of later")
  }

  /// A file that the backup could not read is not deleted with its database: it is kept under
  /// another name.
  @Test func anUnreadableLogIsNotDeleted() throws {
    let made = try #require(try fixture.backup().snapshot)
    var snapshot = made.snapshot
    snapshot.unreadable = [PathNote(path: "folders/tree/db-wal", note: "it was locked")]
    let stored = StoredSnapshot(id: made.id, snapshot: snapshot)
    let request = RestoreRequest(
      path: "folders/tree", target: fixture.directory.path("into"), overwrite: .always,
      deletes: true)
    let reader = try fixture.repository.beginReading()
    let plan = try RestorePlan.make(stored, request, from: reader)
    #expect(try RestoreOperation(plan, from: reader).run().isComplete)
    let names = try fixture.names("into")
    let log = try #require(names.first { "\($0)".hasPrefix("db-wal.before-restore-") })
    #expect(names == ["db", log])
    #expect(try fixture.text(ByteString("into").appending(log)) == Self.later["db-wal"])
  }

  /// A database has a hard link, in a directory that was restored before, to a database that cannot
  /// be restored.
  @Test func aUnitHardLinkedToASkippedDatabaseIsSkipped() throws {
    for name in ["aa", "aa-wal", "sub/x-wal"] as [ByteString] {
      try fixture.directory.write("stored \(name)", at: ByteString("tree").appending(name))
    }
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.directory("sub").createHardLink("x", to: "aa", in: tree)
    for name in ["aa", "aa-wal/mine", "sub/x", "sub/x-wal", "sub/x-journal"] as [ByteString] {
      try fixture.directory.write("there \(name)", at: ByteString("into").appending(name))
    }
    let report = try fixture.backup()
    let merged = try fixture.merge(report, into: "into", .always)
    #expect(Set(merged.failed.map(\.path)).isSuperset(of: ["aa", "aa-wal", "sub/x", "sub/x-wal"]))
    for name in ["aa", "aa-wal/mine", "sub/x", "sub/x-wal", "sub/x-journal"] as [ByteString] {
      #expect(try fixture.text(ByteString("into").appending(name)) == "there \(name)", "\(name)")
    }
    #expect(try fixture.names("into/sub") == ["x", "x-journal", "x-wal"])
  }

  /// A file whose name is too long for the suffix of a log has no log.
  @Test(arguments: [247, 252, 255]) func aLongNameHasNoLog(_ length: Int) throws {
    let name = ByteString([UInt8](repeating: UInt8(ascii: "x"), count: length))
    try fixture.directory.write("stored", at: ByteString("tree").appending(name))
    let report = try fixture.backup()
    let merged = try fixture.merge(
      report, ByteString("folders/tree").appending(name), into: ByteString("into").appending(name),
      .always)
    #expect(merged.isComplete, "\(merged.failed)")
    #expect(try fixture.text(ByteString("into").appending(name)) == "stored")
  }

  /// An existing file with the temporary name of a replaced file is kept.
  @Test(arguments: [false, true]) func aFileWithTheTemporaryNameIsKept(isDatabaseThere: Bool) throws
  {
    if !isDatabaseThere { try Directory.open(path: fixture.directory.path("into")).remove("db") }
    let plan = try fixture.plan(try fixture.backup(), into: "into", .always)
    let taken = ["db", "db-wal"].map { ByteString("into/\($0)\(plan.tree.asideSuffix)") }
    for path in taken { try fixture.directory.write("mine", at: path) }
    let report = try RestoreOperation(plan, from: fixture.repository.beginReading()).run()
    #expect(report.isComplete)
    for path in taken { #expect(try fixture.text(path) == "mine") }
    #expect(try fixture.directory.read("into/db") == fixture.directory.read("tree/db"))
    #expect(try fixture.text(ByteString("\(taken[1]).1")) == "log of later")
    #expect(try fixture.names("into").count == 5)
  }

  /// A restore that only moves a log away still counts as having work to do.
  @Test func aPlanWithOnlyAnOrphanedLogIsNotIdle() throws {
    let report = try fixture.backup()
    _ = try fixture.merge(report, into: "into", .always)
    #expect(try fixture.plan(report, into: "into", .ifChanged).isIdle)
    try fixture.directory.write("log of another state", at: "into/db-wal")
    #expect(try !fixture.plan(report, into: "into", .ifChanged).isIdle)
  }

  /// If nothing is damaged, the database and its log are restored, and the existing files are
  /// replaced.
  @Test func aDatabaseIsRestoredWithItsLog() throws {
    try fixture.directory.write("log of stored", at: "tree/db-wal")
    let merged = try fixture.merge(try fixture.backup(), into: "into", .always, deletes: true)
    #expect(merged.isComplete)
    #expect(try fixture.names("into") == ["db", "db-wal"])
    #expect(try fixture.text("into/db-wal") == "log of stored")
    #expect(try fixture.directory.read("into/db") == fixture.directory.read("tree/db"))
  }
}
