import ArchiveStore
import DeviceTransaction
import Restore
import SystemIO
import TestSupport
import Testing

/// How `if-newer` handles a database: the database, its log and its journal are as new as the
/// newest of them.
@Suite(.spreadScans) struct NewerDatabaseTests {
  private let fixture: Fixture
  init() throws { fixture = try Fixture(inMemory: true) }

  /// Writes files with the given names and times, all containing the same word.
  private func make(_ word: String, in directory: ByteString, _ files: [(ByteString, Int64)]) throws
  {
    for (name, seconds) in files {
      let path = directory.appending(name)
      let isDatabase = !name.description.contains("-")
      try fixture.directory.write((isDatabase ? "SQLite format 3\0" : "") + word, at: path)
      try fixture.setTime(path, seconds)
    }
  }

  /// Whether all files in a directory contain a word.
  private func all(in directory: ByteString, have word: String) throws -> Bool {
    try fixture.names(directory).allSatisfy {
      try fixture.text(directory.appending($0)).hasSuffix(word)
    }
  }

  /// A newer log or journal has data that the database lacks.
  @Test(arguments: ["db-wal", "db-journal"] as [ByteString], [false, true])
  func aDatabaseWithANewerLogIsKept(_ log: ByteString, deletes: Bool) throws {
    try make("stored", in: "tree", [("db", 100)])
    try make("present", in: "into", [("db", 50), (log, 150)])
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifNewer, deletes: deletes)
    #expect(merged.isComplete && merged.deleted.entries == 0 && merged.displaced.isEmpty)
    #expect(merged.left.files == 1 && merged.restored.files == 0)
    #expect(merged.spared.map(\.path) == (deletes ? [log] : []))
    #expect(try fixture.names("into") == ["db", log] && all(in: "into", have: "present"))
  }

  /// The existing database is older than the stored log, though newer than the stored database.
  @Test func aDatabaseIsRestoredIfItsLogIsNewer() throws {
    try make("stored", in: "tree", [("db", 100), ("db-wal", 300)])
    try make("present", in: "into", [("db", 200)])
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.restored.files == 2 && merged.left.entries == 0)
    #expect(try fixture.names("into") == ["db", "db-wal"] && all(in: "into", have: "stored"))
  }

  /// If the files were compared separately, they would be from different states.
  @Test(arguments: [(300, "stored"), (250, "stored"), (200, "present"), (150, "present")])
  func theNewestFileDecides(_ log: Int64, _ expected: String) throws {
    try make("stored", in: "tree", [("db", 100), ("db-wal", log)])
    try make("present", in: "into", [("db", 200), ("db-wal", 50)])
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.displaced.isEmpty)
    #expect(try fixture.names("into") == ["db", "db-wal"] && all(in: "into", have: expected))
  }

  @Test func anOlderLogIsReplaced() throws {
    try make("stored", in: "tree", [("db", 300)])
    try make("present", in: "into", [("db", 100), ("db-wal", 200)])
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.displaced.map(\.path) == ["db-wal"])
    #expect(try fixture.text("into/db").hasSuffix("stored"))
  }

  /// An unchanged database gets its missing log back.
  @Test func aMissingLogIsRestored() throws {
    try make("stored", in: "tree", [("db", 100), ("db-wal", 50)])
    try fixture.copy("tree", to: "into")
    try Directory.open(path: fixture.directory.path("into")).remove("db-wal")
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.restored.files == 1)
    #expect(try fixture.records("into")["db-wal"] == fixture.records("tree")["db-wal"])
  }

  /// A newer log without its database may be the only copy of a user's data.
  @Test func aNewerLogWithoutADatabaseIsKept() throws {
    try make("stored", in: "tree", [("db", 100)])
    try make("present", in: "into", [("db-wal", 150)])
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifNewer)
    #expect(merged.failed.map(\.path) == ["db"])
    #expect(try fixture.names("into") == ["db-wal"] && all(in: "into", have: "present"))
  }

  /// A hard link to a database that is restored because of its newer log has the same content.
  @Test func aHardLinkToADatabaseIsRestoredToo() throws {
    try make("stored", in: "tree", [("aa/db", 100), ("aa/db-wal", 300)])
    try Directory.make(path: fixture.directory.path("tree/zone")).createHardLink(
      "twin", to: "db", in: Directory.open(path: fixture.directory.path("tree/aa")))
    try make("present", in: "into", [("aa/db", 200)])
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete)
    for directory: ByteString in ["into/aa", "into/zone"] {
      #expect(try all(in: directory, have: "stored"))
    }
  }

  /// An ordinary file with the name of a journal does not make the file next to it a database: each
  /// has its own time.
  @Test func anOrdinaryFileHasItsOwnTime() throws {
    for (directory, word, times) in [
      ("tree", "stored", (100, 300)), ("into", "present", (200, 300)),
    ] as [(ByteString, String, (Int64, Int64))] {
      for (name, seconds) in [("trip", times.0), ("trip-journal", times.1)] as [(ByteString, Int64)]
      {
        try fixture.directory.write(word, at: directory.appending(name))
        try fixture.setTime(directory.appending(name), seconds)
      }
    }
    let merged = try fixture.merge(try fixture.backup(), into: "into", .ifNewer)
    #expect(merged.isComplete && merged.restored.files == 0)
    #expect(try all(in: "into", have: "present"))
  }
}
