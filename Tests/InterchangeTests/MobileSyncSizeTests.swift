import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Contents whose size differs from the manifest of a backup: a truncated one is reported and not
/// imported; the size of a database in use may legitimately differ.
struct MobileSyncSizeTests {
  typealias Item = MobileSyncFixture.Item

  private static let data: ByteString = "apps/com.example.app/data"

  private static func file(_ path: String, _ bytes: [UInt8], recorded: UInt64) -> Item {
    Item("AppDomain-com.example.app", path, .file(bytes)) { $0.file.size = recorded }
  }

  /// Returns a database with empty pages of 512 bytes, and a number of pages in its header.
  private static func database(pages: Int, recorded: UInt8) -> [UInt8] {
    var bytes = Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0, count: pages * 512 - 16)
    (bytes[16], bytes[17]) = (2, 0)
    bytes[31] = recorded
    return bytes
  }

  /// Reads a backup with one intact file and others.
  private func read(
    _ items: [Item], form: MobileSyncFixture.Form = .database, password: String?
  ) throws -> MobileSyncFixture.Outcome {
    var fixture = MobileSyncFixture(items + [Self.file("good", [1, 2, 3], recorded: 3)])
    (fixture.form, fixture.password) = (form, password)
    let outcome = try fixture.read()
    #expect(outcome.entries[Self.data.appending("good")]?.content == [1, 2, 3])
    return outcome
  }

  /// Contents that are shorter than the manifest records.
  private static let short: [(String, [UInt8], UInt64)] = [
    ("World.map", [], 1_048_576), ("x", [1, 2, 3, 4], 5), ("x.db", [], 4096),
    ("large", [UInt8](repeating: 7, count: 100_000), 100_001),
  ]

  /// The padding of an encrypted content proves that the device sent it so: the app shortened the
  /// file after its size was recorded.
  @Test(arguments: MobileSyncFixture.Form.allCases)
  func shorterEncryptedContentsAreImported(form: MobileSyncFixture.Form) throws {
    for (path, bytes, recorded) in Self.short {
      let item = Self.file(path, bytes, recorded: recorded)
      let outcome = try read([item], form: form, password: "x")
      #expect(outcome.entries[Self.data.appending(ByteString(path))]?.content == bytes, "\(path)")
      #expect(outcome.skipped.entryCount == 0 && outcome.skipped.propertyCount == 1, "\(path)")
    }
  }

  @Test(arguments: MobileSyncFixture.Form.allCases)
  func truncatedContentsAreNamed(form: MobileSyncFixture.Form) throws {
    for (path, bytes, recorded) in Self.short {
      let item = Self.file(path, bytes, recorded: recorded)
      let outcome = try read([item], form: form, password: nil)
      #expect(outcome.entries.count == 1 && outcome.damaged.isEmpty, "\(path)")
      #expect(outcome.skipped.entryCount == 1 && outcome.skipped.propertyCount == 0, "\(path)")
      #expect(
        outcome.skipped.listed.map(\.reason) == [
          "its content has only \(bytes.count) of the \(recorded) bytes that the manifest records"
        ])
    }
  }

  @Test(arguments: [nil, "x"]) func longerContentsAreAWarning(password: String?) throws {
    let outcome = try read([Self.file("x", [1, 2, 3, 4], recorded: 2)], password: password)
    #expect(outcome.entries[Self.data.appending("x")]?.content == [1, 2, 3, 4])
    #expect(outcome.skipped.entryCount == 0 && outcome.skipped.propertyCount == 1)
  }

  /// If the manifest has the SHA-1 of a content, it proves that the content is complete.
  @Test(arguments: MobileSyncFixture.Form.allCases)
  func digestsDecideInsteadOfSizes(form: MobileSyncFixture.Form) throws {
    let bytes: [UInt8] = [1, 2, 3, 4]
    var item = Self.file("x", bytes, recorded: 9)
    item.file.digest = MessageDigest.digest(of: bytes.span, .sha1)
    let outcome = try read([item], form: form, password: nil)
    #expect(outcome.entries[Self.data.appending("x")]?.content == bytes)
    #expect(outcome.skipped.entryCount == 0 && outcome.skipped.propertyCount == 1)
  }

  /// A database may be shorter than its size in the manifest, but not shorter than the size in its
  /// header, unless it has a log.
  @Test(arguments: [nil, "x"]) func databasesAreJudgedByTheirHeaders(password: String?) throws {
    let whole = Self.database(pages: 2, recorded: 2)
    let truncated = Self.database(pages: 2, recorded: 3)
    for (path, bytes, recorded) in [
      ("x.db", whole, 4096), ("x.db", whole, 512), ("x.db-wal", [1], 9), ("x.db-shm", [], 9),
      ("x.db-journal", [], 9), ("x.db", Array(whole.prefix(40)), 4096),
    ] as [(String, [UInt8], UInt64)] {
      let outcome = try read([Self.file(path, bytes, recorded: recorded)], password: password)
      #expect(outcome.entries[Self.data.appending(ByteString(path))]?.content == bytes)
      #expect(
        outcome.skipped.entryCount == 0 && outcome.skipped.propertyCount == 1,
        "\(path): \(outcome.reasons)")
    }
    let item = Self.file("x.db", truncated, recorded: 4096)
    #expect(
      try read([item], password: password).skipped.listed.map(\.reason) == [
        "its content has only 1024 of the 1536 bytes that the database's header records"
      ])
    let outcome = try read(
      [item, Self.file("x.db-wal", [1], recorded: 1)], password: password)
    #expect(outcome.entries[Self.data.appending("x.db")]?.content == truncated)
    #expect(outcome.skipped.entryCount == 0 && outcome.skipped.propertyCount == 1)
  }
}
