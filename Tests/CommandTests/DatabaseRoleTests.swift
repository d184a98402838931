import SystemIO
import TestSupport
import Testing

/// The rules of a policy for single files of a database: they are restored together or not at all.
struct DatabaseRoleTests {
  private static let magic = "SQLite format 3\0"
  private static let documents = "apps/org.example.notebook/data/Documents/databases"
  private static let names: [ByteString] = [
    "db", "db-wal", "hot", "hot-journal", "notes", "notes-journal", "secret", "secret-journal",
  ]
  /// The header of a rollback journal with sectors and pages of 512 bytes.
  private static let journal: [UInt8] = [
    0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0, 0, 1, 1, 2, 3, 4, 0, 0, 0, 2, 0, 0, 2, 0,
    0, 0, 2, 0,
  ]

  private let fixture: DeviceRestoreFixture
  private let directory: ByteString

  /// Stores a database with a log, one with a journal, an encrypted one with a journal, and an
  /// ordinary file beside one with the name of a journal; then removes them.
  init() throws {
    fixture = try DeviceRestoreFixture()
    directory = try fixture.path("apps/org.example.notebook/data", of: "device").appending(
      "Documents/databases")
    let place = try Directory.make(path: directory)
    for name in Self.names {
      let isDatabase = ["db", "hot"].contains(name)
      let file = try place.create(name, permissions: 0o644)
      let pages = [UInt8](repeating: 7, count: name == "secret" ? 1024 : 516)
      switch name {
      case "secret": try file.write(pages)
      case "secret-journal": try file.write(Self.journal + pages)
      default: try file.write(Array(((isDatabase ? Self.magic : "") + "content").utf8))
      }
    }
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    for name in Self.names { try place.remove(name) }
  }

  /// Restores a path of the snapshot with rules that restore nothing of the given names. Returns
  /// the names that exist afterwards.
  private func restored(_ path: String, skipping patterns: [String]) throws -> [ByteString] {
    let rules = patterns.enumerated().map { number, pattern in
      "  - {id: skip-\(number), match: \"**/\(pattern)\", restore: skip}\n"
    }
    try fixture.cli.directory.write(
      "overlay: all\nschema: 1\nrules:\n\(rules.joined())", at: "overlay.yaml")
    _ = try fixture.cli.succeed(
      "restore latest\(path) --in-place --policy overlay.yaml --no-snapshot --repo repo")
    return try Directory.open(path: directory).names().sorted()
  }

  @Test func aRuleForALogDoesNotSeparateItFromItsDatabase() throws {
    #expect(
      try restored("", skipping: ["*-wal", "*-journal"]) == [
        "db", "db-wal", "hot", "hot-journal", "notes", "secret", "secret-journal",
      ])
  }

  @Test func aLogIsNotRestoredWithoutItsDatabase() throws {
    #expect(try restored("", skipping: ["db", "hot", "notes", "secret"]) == ["notes-journal"])
  }

  @Test(arguments: ["db", "*-wal"]) func aLogThatWasRequestedIsRestored(pattern: String) throws {
    #expect(try restored(":\(Self.documents)/db-wal", skipping: [pattern]) == ["db-wal"])
  }
}
