import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// Databases that cannot be restored whole into a folder that holds others of their names: none of
/// their files is put there, and what is there stays, with its log.
@Suite struct BrokenDatabaseTests {
  private static let later: [ByteString: String] = [
    "db": "SQLite format 3\0later", "db-wal": "log of later", "db-shm": "index of later",
  ]

  private let rig: Rig
  init() throws {
    rig = try Rig(inMemory: true)
    try rig.folder.write(
      Array("SQLite format 3\0".utf8) + Seeded(1).someBytes(200_000), at: "tree/db")
    for (name, text) in Self.later {
      try rig.folder.write(text, at: ByteString("into").appending(name))
    }
  }

  /// The packs that have contents of files: those of trees are small here.
  private func dataPacks() throws -> Set<ObjectPath> {
    let storage = rig.repository.storage
    let packs = try #require(ObjectPath("packs"))
    var found: Set<ObjectPath> = []
    for folder in try storage.list(packs) {
      for name in try storage.list(packs.appending(folder)) {
        let path = packs.appending(folder).appending(name)
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
    try rig.folder.write(Seeded(2).someBytes(150_000), at: "tree/db-wal")
    let report = try rig.backup()
    let packs = try dataPacks().subtracting(before)
    try #require(packs.count == 1)
    for pack in packs { try rig.repository.storage.remove(pack) }
    let merged = try rig.merge(report, into: "into", .always, deletes: deletes)
    #expect(merged.damaged.map(\.path) == ["db-wal"])
    #expect(merged.failed.map(\.path) == ["db"] && merged.deleted.entries == 0)
    try expectThatAllStayed()
  }

  /// Where nothing is damaged both come, and what was there goes.
  @Test func aWholeDatabaseComesWithItsLog() throws {
    try rig.folder.write("log of stored", at: "tree/db-wal")
    let merged = try rig.merge(try rig.backup(), into: "into", .always, deletes: true)
    #expect(merged.isComplete)
    #expect(try rig.names("into") == ["db", "db-wal"])
    #expect(try rig.text("into/db-wal") == "log of stored")
    #expect(try rig.folder.read("into/db") == rig.folder.read("tree/db"))
  }
}
