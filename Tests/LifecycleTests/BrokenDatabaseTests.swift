import ArchiveStore
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// Databases that are not restored, or cannot be as a whole, into a directory that holds others of their
/// names: none of their files is put there, and what is there stays, with its log.
@Suite(.spreadScans) struct BrokenDatabaseTests {
  private static let later: [ByteString: String] = [
    "db": "SQLite format 3\0later", "db-wal": "log of later", "db-shm": "index of later",
  ]

  private let rig: Fixture
  init() throws {
    rig = try Fixture(inMemory: true)
    try rig.directory.write(
      Array("SQLite format 3\0".utf8) + Seeded(1).someBytes(200_000), at: "tree/db")
    for (name, text) in Self.later {
      try rig.directory.write(text, at: ByteString("into").appending(name))
    }
  }

  /// The packs that have contents of files: those of trees are small here.
  private func dataPacks() throws -> Set<ObjectPath> {
    let storage = rig.repository.storage
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
    #expect(try rig.names("into") == ["db", "db-shm", "db-wal"])
    for (name, text) in Self.later {
      #expect(try rig.text(ByteString("into").appending(name)) == text, "\(name)")
    }
  }

  @Test(arguments: [false, true])
  func aLogStaysBesideADatabaseThatDoes(deletes: Bool) throws {
    let report = try rig.backup()
    for pack in try dataPacks() { try rig.repository.storage.remove(pack) }
    let merged = try rig.merge(report, into: "into", .always, deletes: deletes)
    #expect(merged.damaged.map(\.path) == ["db"] && merged.deleted.entries == 0)
    try expectThatAllStayed()
  }

  @Test(arguments: [false, true])
  func aDatabaseDoesNotComeWithoutItsLog(deletes: Bool) throws {
    _ = try rig.backup()
    let before = try dataPacks()
    try rig.directory.write(Seeded(2).someBytes(150_000), at: "tree/db-wal")
    let report = try rig.backup()
    let packs = try dataPacks().subtracting(before)
    try #require(packs.count == 1)
    for pack in packs { try rig.repository.storage.remove(pack) }
    let merged = try rig.merge(report, into: "into", .always, deletes: deletes)
    #expect(merged.damaged.map(\.path) == ["db-wal"])
    #expect(merged.failed.map(\.path) == ["db"] && merged.deleted.entries == 0)
    try expectThatAllStayed()
  }

  /// What goes with `--delete` is not the log of a database that stays.
  @Test(arguments: [OverwriteMode.never, .ifNewer])
  func aLogStaysWithADatabaseThatIsNotReplaced(_ mode: OverwriteMode) throws {
    try rig.setTime("tree/db", 100)
    try rig.setTime("into/db", 200)
    try rig.directory.write("more", at: "into/more")
    let merged = try rig.merge(try rig.backup(), into: "into", mode, deletes: true)
    #expect(merged.isComplete && merged.deleted.entries == 1)
    #expect(merged.spared.map(\.path) == ["db-shm", "db-wal"])
    #expect(merged.spared.allSatisfy { $0.remark.contains("'db', which stays") })
    try expectThatAllStayed()
  }

  /// A database that the snapshot lacks goes with all that belongs to it, and so does a log without one.
  @Test func aLogGoesWithItsDatabase() throws {
    let report = try rig.backup()
    for name in ["other", "other-wal", "other-shm", "alone-wal"] {
      try rig.directory.write(name, at: ByteString("into/\(name)"))
    }
    let merged = try rig.merge(report, into: "into", .always, deletes: true)
    #expect(merged.isComplete && merged.spared.isEmpty)
    #expect(try rig.names("into") == ["db"])
  }

  /// Told to stop when the log would be placed, a restore places neither it nor the database.
  @Test func aRestoreDoesNotStopBetweenALogAndItsDatabase() throws {
    try rig.directory.write("log of stored", at: "tree/db-wal")
    let plan = try rig.plan(try rig.backup(), into: "into", .always)
    for stop in 1... {
      let asked = Atomic<Int>(0)
      let operation = try RestoreOperation(
        plan, from: rig.repository.beginReading(), threads: 1,
        isStopping: { asked.add(1, ordering: .relaxed).newValue >= stop })
      let report = try? operation.run()
      let hasLog = try rig.text("into/db-wal") == "log of stored"
      let hasDatabase = try rig.directory.read("into/db") == rig.directory.read("tree/db")
      #expect(hasLog == hasDatabase, "\(stop)")
      if report != nil {
        #expect(hasLog && stop > 3, "\(stop)")
        return
      }
    }
  }

  /// Where nothing of it is, a database comes without a log that is damaged: it is all that can be had.
  @Test(arguments: [false, true]) func aDatabaseComesToANewPlaceWithoutItsLog(
    isDirectoryThere: Bool
  ) throws {
    _ = try rig.backup()
    let before = try dataPacks()
    try rig.directory.write(Seeded(2).someBytes(150_000), at: "tree/db-wal")
    let report = try rig.backup()
    for pack in try dataPacks().subtracting(before) { try rig.repository.storage.remove(pack) }
    if isDirectoryThere { try rig.directory.write("mine", at: "back/mine") }
    let back =
      try isDirectoryThere ? rig.merge(report, into: "back", .always) : rig.restore(report)
    #expect(back.damaged.map(\.path) == ["db-wal"])
    #expect(back.failed.map(\.path) == ["db"])
    #expect(back.failed.allSatisfy { $0.remark.contains("it comes without 'db-wal'") })
    #expect(try rig.names("back").filter { $0 != "mine" } == ["db"])
    #expect(try rig.directory.read("back/db") == rig.directory.read("tree/db"))
  }

  /// A log that something stands in the way of leaves its database behind, and the other way round.
  @Test(arguments: ["db", "db-wal"]) func nothingComesOfADatabaseThatIsInTheWay(
    _ blocked: String
  ) throws {
    try rig.directory.write("log of stored", at: "tree/db-wal")
    let report = try rig.backup()
    let into = try Directory.open(path: rig.directory.path("into"))
    try into.remove(ByteString(blocked))
    try rig.directory.write("mine", at: ByteString("into/\(blocked)/mine"))
    let merged = try rig.merge(report, into: "into", .always)
    #expect(Set(merged.failed.map(\.path)) == ["db", "db-wal"])
    #expect(merged.restored.entries == 0)
    for name in ["db", "db-wal"] as [ByteString] where name != ByteString(blocked) {
      #expect(try rig.text(ByteString("into").appending(name)) == Self.later[name])
    }
    #expect(try rig.names("into") == ["db", "db-shm", "db-wal"])
  }

  /// A directory of a log's name is no log.
  @Test func aDirectoryIsNoLog() throws {
    let into = try Directory.open(path: rig.directory.path("into"))
    try into.remove("db-wal")
    try rig.directory.write("mine", at: "into/db-wal/mine")
    let merged = try rig.merge(try rig.backup(), into: "into", .always)
    #expect(merged.isComplete)
    #expect(try rig.names("into/db-wal") == ["mine"])
  }

  /// What looks like the log of a log is a file like any other, in a backup and in a restore.
  @Test func aLogHasNoLog() throws {
    for name in ["db-wal", "db-wal-wal", "db-wal-wal-journal", "db-journal-wal"] {
      try rig.directory.write("stored \(name)", at: ByteString("tree/\(name)"))
    }
    try rig.directory.write("log of log of later", at: "into/db-wal-wal")
    let merged = try rig.merge(try rig.backup(), into: "into", .always)
    #expect(merged.isComplete)
    for name in try rig.names("tree") {
      let stored = try rig.directory.read(ByteString("tree").appending(name))
      #expect(try rig.directory.read(ByteString("into").appending(name)) == stored)
    }
  }

  /// Another name of a database that is to stay does not become one of the other file that is there.
  @Test func anotherNameOfADatabaseThatStaysDoesNotComeWithWrongContent() throws {
    for name in ["aa/db", "aa/db-wal"] as [ByteString] {
      try rig.directory.write("stored \(name)", at: ByteString("tree").appending(name))
    }
    let directory = try Directory.open(path: rig.directory.path("tree/aa"))
    try directory.createHardLink("twin", to: "db", in: directory)
    try Directory.make(path: rig.directory.path("tree/zone")).createHardLink(
      "twin", to: "db", in: directory)
    // The log stays, so that the database does not come.
    try rig.directory.write("log of later", at: "into/aa/db-wal")
    let merged = try rig.merge(try rig.backup(), into: "into", .never)
    #expect(try rig.names("into/aa") == ["db-wal"])
    #expect(merged.failed.map(\.path).sorted() == ["aa/db", "aa/twin"])
    // What comes after it has the content itself.
    #expect(try rig.text("into/zone/twin") == "stored aa/db")
  }

  /// What is to be deleted with a database stays with it where it does, and that is said.
  @Test func whatIsNotDeletedIsNamed() throws {
    let report = try rig.backup()
    for pack in try dataPacks() { try rig.repository.storage.remove(pack) }
    let merged = try rig.merge(report, into: "into", .always, deletes: true)
    #expect(merged.spared.map(\.path) == ["db-shm", "db-wal"])
  }

  /// What goes with a database is counted.
  @Test func whatIsDeletedIsCounted() throws {
    let merged = try rig.merge(try rig.backup(), into: "into", .always, deletes: true)
    #expect(merged.isComplete && merged.deleted.entries == 2)
    #expect(try rig.names("into") == ["db"])
  }

  /// A log whose database the snapshot does not hold does not come to the one that is there.
  @Test func aLogDoesNotComeWithoutItsDatabase() throws {
    try rig.directory.write("log of stored", at: "tree/db-wal")
    try Directory.open(path: rig.directory.path("tree")).remove("db")
    let report = try rig.backup()
    let merged = try rig.merge(report, into: "into", .always, deletes: false)
    #expect(merged.failed.map(\.path) == ["db-wal"] && merged.restored.entries == 0)
    try expectThatAllStayed()
    // Where there is no database it is a file like any other.
    try rig.directory.write("mine", at: "other/mine")
    #expect(try rig.merge(report, into: "other", .always).isComplete)
    #expect(try rig.text("other/db-wal") == "log of stored")
  }

  /// What is no database has neither log nor journal, whatever lies beside it.
  @Test func whatIsNoDatabaseHasNoJournal() throws {
    try rig.directory.write("stored trip", at: "tree/trip")
    for name in ["trip", "trip-journal", "trip-shm"] {
      try rig.directory.write("my \(name)", at: ByteString("into/\(name)"))
    }
    let merged = try rig.merge(try rig.backup(), "folders/tree/trip", into: "into/trip", .always)
    #expect(merged.isComplete && merged.displaced.isEmpty)
    #expect(try rig.text("into/trip") == "stored trip")
    for name in ["trip-journal", "trip-shm"] {
      #expect(try rig.text(ByteString("into/\(name)")) == "my \(name)")
    }
  }

  /// A log that is asked for by itself does not come to another state of its database.
  @Test func aLogByItselfDoesNotComeToADatabase() throws {
    try rig.directory.write("log of stored", at: "tree/db-wal")
    let report = try rig.backup()
    let merged = try rig.merge(report, "folders/tree/db-wal", into: "into/db-wal", .always)
    #expect(merged.failed.map(\.path) == ["db-wal"])
    try expectThatAllStayed()
    #expect(
      try rig.merge(report, "folders/tree/db-wal", into: "into/log", .always).isComplete)
    #expect(try rig.text("into/log") == "log of stored")
  }

  /// Long names get short ones where they give way.
  @Test func aDatabaseOfALongNameComesWhole() throws {
    let name = ByteString([UInt8](repeating: UInt8(ascii: "x"), count: 247))
    for (directory, text) in [("tree", "stored"), ("into", "there")] as [(ByteString, String)] {
      try rig.directory.write("\(text)", at: directory.appending(name))
      try rig.directory.write("log of \(text)", at: directory.appending(ByteString("\(name)-wal")))
    }
    try rig.directory.write("journal", at: ByteString("into/\(name)-journal"))
    #expect(try rig.merge(try rig.backup(), into: "into", .always).isComplete)
    #expect(try rig.text(ByteString("into").appending(name)) == "stored")
    #expect(try rig.text(ByteString("into/\(name)-wal")) == "log of stored")
    let long = try rig.names("into").filter { "\($0)".hasPrefix("xxx") }
    #expect(long.count == 3 && long.contains { "\($0)".contains(".before-restore-") })
  }

  /// A file of an index's name that the snapshot holds is none of another state.
  @Test func anIndexThatIsStoredIsNoStray() throws {
    try rig.directory.write("index of later", at: "tree/db-shm")
    try rig.setTime("tree/db-shm", 100)
    try rig.setTime("into/db-shm", 100)
    let merged = try rig.merge(try rig.backup(), into: "into", .ifChanged)
    #expect(merged.isComplete)
    #expect(try rig.text("into/db-shm") == "index of later")
  }

  /// What the snapshot could not read is not deleted with a database: it stays under another name.
  @Test func aLogThatCouldNotBeReadIsNotDeleted() throws {
    let made = try #require(try rig.backup().snapshot)
    var snapshot = made.snapshot
    snapshot.unreadable = [PathNote(path: "folders/tree/db-wal", note: "it was locked")]
    let stored = StoredSnapshot(id: made.id, snapshot: snapshot)
    let request = RestoreRequest(
      path: "folders/tree", target: rig.directory.path("into"), overwrite: .always, deletes: true)
    let reader = try rig.repository.beginReading()
    let plan = try RestorePlan.make(stored, request, from: reader)
    #expect(try RestoreOperation(plan, from: reader).run().isComplete)
    let names = try rig.names("into")
    let log = try #require(names.first { "\($0)".hasPrefix("db-wal.before-restore-") })
    #expect(names == ["db", log])
    #expect(try rig.text(ByteString("into").appending(log)) == Self.later["db-wal"])
  }

  /// Another name, in a directory that was settled before, of a database that cannot come.
  @Test func aUnitWithANameOfADatabaseThatStaysIsLeft() throws {
    for name in ["aa", "aa-wal", "sub/x-wal"] as [ByteString] {
      try rig.directory.write("stored \(name)", at: ByteString("tree").appending(name))
    }
    let tree = try Directory.open(path: rig.directory.path("tree"))
    try tree.directory("sub").createHardLink("x", to: "aa", in: tree)
    for name in ["aa", "aa-wal/mine", "sub/x", "sub/x-wal", "sub/x-journal"] as [ByteString] {
      try rig.directory.write("there \(name)", at: ByteString("into").appending(name))
    }
    let report = try rig.backup()
    let merged = try rig.merge(report, into: "into", .always)
    #expect(Set(merged.failed.map(\.path)).isSuperset(of: ["aa", "aa-wal", "sub/x", "sub/x-wal"]))
    for name in ["aa", "aa-wal/mine", "sub/x", "sub/x-wal", "sub/x-journal"] as [ByteString] {
      #expect(try rig.text(ByteString("into").appending(name)) == "there \(name)", "\(name)")
    }
    #expect(try rig.names("into/sub") == ["x", "x-journal", "x-wal"])
  }

  /// A file whose name leaves no room for a log has none.
  @Test(arguments: [247, 252, 255]) func aLongNameHasNoLog(_ length: Int) throws {
    let name = ByteString([UInt8](repeating: UInt8(ascii: "x"), count: length))
    try rig.directory.write("stored", at: ByteString("tree").appending(name))
    let report = try rig.backup()
    let merged = try rig.merge(
      report, ByteString("folders/tree").appending(name), into: ByteString("into").appending(name),
      .always)
    #expect(merged.isComplete, "\(merged.failed)")
    #expect(try rig.text(ByteString("into").appending(name)) == "stored")
  }

  /// Whoever has something under the name that gives way to a database keeps it.
  @Test(arguments: [false, true]) func aNameThatIsTakenStays(isDatabaseThere: Bool) throws {
    if !isDatabaseThere { try Directory.open(path: rig.directory.path("into")).remove("db") }
    let plan = try rig.plan(try rig.backup(), into: "into", .always)
    let taken = ["db", "db-wal"].map { ByteString("into/\($0)\(plan.tree.asideSuffix)") }
    for path in taken { try rig.directory.write("mine", at: path) }
    let report = try RestoreOperation(plan, from: rig.repository.beginReading()).run()
    #expect(report.isComplete)
    for path in taken { #expect(try rig.text(path) == "mine") }
    #expect(try rig.directory.read("into/db") == rig.directory.read("tree/db"))
    #expect(try rig.text(ByteString("\(taken[1]).1")) == "log of later")
    #expect(try rig.names("into").count == 5)
  }

  /// A restore that only has a log to move away is no idle one.
  @Test func aPlanWithOnlyAStrayIsNotIdle() throws {
    let report = try rig.backup()
    _ = try rig.merge(report, into: "into", .always)
    #expect(try rig.plan(report, into: "into", .ifChanged).isIdle)
    try rig.directory.write("log of another state", at: "into/db-wal")
    #expect(try !rig.plan(report, into: "into", .ifChanged).isIdle)
  }

  /// Where nothing is damaged both come, and what was there goes.
  @Test func aWholeDatabaseComesWithItsLog() throws {
    try rig.directory.write("log of stored", at: "tree/db-wal")
    let merged = try rig.merge(try rig.backup(), into: "into", .always, deletes: true)
    #expect(merged.isComplete)
    #expect(try rig.names("into") == ["db", "db-wal"])
    #expect(try rig.text("into/db-wal") == "log of stored")
    #expect(try rig.directory.read("into/db") == rig.directory.read("tree/db"))
  }
}
