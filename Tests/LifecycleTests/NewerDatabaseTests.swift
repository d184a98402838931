import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// What `if-newer` makes of a database: it, its log and its journal are as new as the newest of them.
@Suite(.spreadScans) struct NewerDatabaseTests {
  private let rig: Fixture
  init() throws { rig = try Fixture(inMemory: true) }

  /// Makes files of a name and a time each, all with the same word in them.
  private func make(_ word: String, in directory: ByteString, _ files: [(ByteString, Int64)]) throws
  {
    for (name, seconds) in files {
      let path = directory.appending(name)
      let isDatabase = !name.description.contains("-")
      try rig.directory.write((isDatabase ? "SQLite format 3\0" : "") + word, at: path)
      try rig.setTime(path, seconds)
    }
  }

  /// Whether all files in a directory have a word in them.
  private func all(in directory: ByteString, have word: String) throws -> Bool {
    try rig.names(directory).allSatisfy { try rig.text(directory.appending($0)).hasSuffix(word) }
  }

  /// A newer log, or a newer journal, has what the database lacks.
  @Test(arguments: ["db-wal", "db-journal"] as [ByteString], [false, true])
  func aDatabaseWithANewerLogStays(_ log: ByteString, deletes: Bool) throws {
    try make("stored", in: "tree", [("db", 100)])
    try make("present", in: "into", [("db", 50), (log, 150)])
    let merged = try rig.merge(try rig.backup(), into: "into", .ifNewer, deletes: deletes)
    #expect(merged.isComplete && merged.deleted.entries == 0 && merged.displaced.isEmpty)
    #expect(merged.left.files == 1 && merged.restored.files == 0)
    #expect(merged.spared.map(\.path) == (deletes ? [log] : []))
    #expect(try rig.names("into") == ["db", log] && all(in: "into", have: "present"))
  }

  /// What is there is older than the stored log, though the database is newer than the stored one.
  @Test func aDatabaseComesWithANewerLog() throws {
    try make("stored", in: "tree", [("db", 100), ("db-wal", 300)])
    try make("present", in: "into", [("db", 200)])
    let merged = try rig.merge(try rig.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.restored.files == 2 && merged.left.entries == 0)
    #expect(try rig.names("into") == ["db", "db-wal"] && all(in: "into", have: "stored"))
  }

  /// Each file by itself would be taken from another state.
  @Test(arguments: [(300, "stored"), (250, "stored"), (200, "present"), (150, "present")])
  func theNewestDecides(_ log: Int64, _ expected: String) throws {
    try make("stored", in: "tree", [("db", 100), ("db-wal", log)])
    try make("present", in: "into", [("db", 200), ("db-wal", 50)])
    let merged = try rig.merge(try rig.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.displaced.isEmpty)
    #expect(try rig.names("into") == ["db", "db-wal"] && all(in: "into", have: expected))
  }

  @Test func anOlderLogGivesWay() throws {
    try make("stored", in: "tree", [("db", 300)])
    try make("present", in: "into", [("db", 100), ("db-wal", 200)])
    let merged = try rig.merge(try rig.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.displaced.map(\.path) == ["db-wal"])
    #expect(try rig.text("into/db").hasSuffix("stored"))
  }

  /// A database that is as stored gets its log back.
  @Test func whatIsMissingComes() throws {
    try make("stored", in: "tree", [("db", 100), ("db-wal", 50)])
    try rig.copy("tree", to: "into")
    try Directory.open(path: rig.directory.path("into")).remove("db-wal")
    let merged = try rig.merge(try rig.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.restored.files == 1)
    #expect(try rig.records("into")["db-wal"] == rig.records("tree")["db-wal"])
  }

  /// A newer log without its database may be all that there is of somebody's work.
  @Test func aNewerLogAloneStays() throws {
    try make("stored", in: "tree", [("db", 100)])
    try make("present", in: "into", [("db-wal", 150)])
    let merged = try rig.merge(try rig.backup(), into: "into", .ifNewer)
    #expect(merged.failed.map(\.path) == ["db"])
    #expect(try rig.names("into") == ["db-wal"] && all(in: "into", have: "present"))
  }

  /// Another name of a database that comes for its log's time has its content, too.
  @Test func anotherNameComesToo() throws {
    try make("stored", in: "tree", [("aa/db", 100), ("aa/db-wal", 300)])
    try Directory.make(path: rig.directory.path("tree/zone")).createHardLink(
      "twin", to: "db", in: Directory.open(path: rig.directory.path("tree/aa")))
    try make("present", in: "into", [("aa/db", 200)])
    let merged = try rig.merge(try rig.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete)
    for directory: ByteString in ["into/aa", "into/zone"] {
      #expect(try all(in: directory, have: "stored"))
    }
  }

  /// A file that is called as a journal makes no database of the one beside it: each has its own time.
  @Test func aPlainFileHasItsOwnTime() throws {
    for (directory, word, times) in [
      ("tree", "stored", (100, 300)), ("into", "present", (200, 300)),
    ] as [(ByteString, String, (Int64, Int64))] {
      for (name, seconds) in [("trip", times.0), ("trip-journal", times.1)] as [(ByteString, Int64)]
      {
        try rig.directory.write(word, at: directory.appending(name))
        try rig.setTime(directory.appending(name), seconds)
      }
    }
    let merged = try rig.merge(try rig.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.restored.files == 0)
    #expect(try all(in: "into", have: "present"))
  }
}
