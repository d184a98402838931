import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Damaged, incomplete and hostile backups: lost files are reported, and the others are read.
struct MobileSyncDamageTests {
  typealias Item = MobileSyncFixture.Item

  private static let app = "AppDomain-com.example.app"
  private static let data: ByteString = "apps/com.example.app/data"

  private static func file(
    _ path: String, _ bytes: [UInt8] = [1, 2, 3], with change: (inout Item) -> Void = { _ in }
  ) -> Item { Item(app, path, .file(bytes), with: change) }

  private static let good = file("good")

  /// Reads a backup with one intact file and another, and returns the reason for the loss of the
  /// other.
  private func loss(
    of item: Item, form: MobileSyncFixture.Form = .database, password: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> String? {
    var fixture = MobileSyncFixture([item, Self.good])
    (fixture.form, fixture.password) = (form, password)
    let outcome = try fixture.read()
    #expect(
      outcome.entries[Self.data.appending("good")]?.content == [1, 2, 3],
      sourceLocation: sourceLocation)
    #expect(
      outcome.entries.count + outcome.damaged.count + outcome.skipped.entryCount == 2,
      sourceLocation: sourceLocation)
    return outcome.damaged.values.first
      ?? outcome.skipped.listed.first { !$0.isPropertyOnly }?.reason
  }

  // MARK: - Contents

  @Test(arguments: MobileSyncFixture.Form.allCases)
  func missingContentsAreNamed(form: MobileSyncFixture.Form) throws {
    let reason = try loss(of: Self.file("lost") { $0.isStored = false }, form: form)
    #expect(reason?.hasPrefix("its content ") == true)
    #expect(reason?.hasSuffix(" is missing in the backup") == true)
  }

  @Test func changedContentsOfSystemDomainsAreNamed() throws {
    let bytes: [UInt8] = [5, 6, 7]
    let right = MessageDigest.digest(of: bytes.span, .sha1)
    for form in MobileSyncFixture.Form.allCases {
      #expect(try loss(of: Self.file("x", bytes) { $0.file.digest = right }, form: form) == nil)
      let wrong = [UInt8](repeating: 0, count: 20)
      let reason = try loss(of: Self.file("x", bytes) { $0.file.digest = wrong }, form: form)
      #expect(reason?.contains("SHA-1") == true)
    }
  }

  /// The digest in Manifest.db is that of the encrypted content.
  @Test func digestsOfEncryptedContentsAreCompared() throws {
    let (bytes, key): ([UInt8], _) = ([5, 6, 7], [UInt8](repeating: 8, count: 32))
    let stored = MobileSyncFixture.encrypt(bytes, key: key, isPadded: true)
    for (content, isRight) in [(stored, true), (bytes, false)] {
      let item = Item(Self.app, "x", .file(stored)) {
        $0.file.size = UInt64(bytes.count)
        $0.file.key = WrappedKey(MobileSyncFixture.wrapped(key))
        $0.file.digest = MessageDigest.digest(of: content.span, .sha1)
      }
      #expect(try loss(of: item, password: "x") == nil || !isRight)
      // Old manifests may have either digest.
      #expect(try loss(of: item, form: .records, password: "x") == nil)
    }
  }

  @Test func truncatedAndForeignEncryptedContentsAreNamed() throws {
    let key = [UInt8](repeating: 8, count: 32)
    let stored = MobileSyncFixture.encrypt(
      [UInt8](repeating: 200, count: 100), key: key, isPadded: true)
    func reason(_ stored: [UInt8], key: [UInt8]? = nil, wrapped: [UInt8]? = nil) throws -> String? {
      let wrapped = wrapped ?? MobileSyncFixture.wrapped(key ?? [UInt8](repeating: 8, count: 32))
      return try loss(
        of: Item(Self.app, "x", .file(stored)) {
          $0.file.size = 100
          $0.file.key = WrappedKey(wrapped)
        }, password: "x")
    }
    #expect(try reason(stored) == nil)
    #expect(try reason(Array(stored.dropLast()))?.contains("whole number of blocks") == true)
    #expect(try reason(Array(stored.dropLast(32)))?.contains("its end is damaged") == true)
    var wrapped = MobileSyncFixture.wrapped(key)
    wrapped[20] ^= 1
    #expect(try reason(stored, wrapped: wrapped) == "its key is damaged")
    wrapped[0] = 7
    #expect(try reason(stored, wrapped: wrapped)?.contains("class 7") == true)
  }

  /// Without its key, an encrypted content is not mistaken for a plain one.
  @Test func keysOfOtherLengthsAreNamed() throws {
    let item = Self.file("x", [UInt8](repeating: 5, count: 16)) {
      $0.file.key = WrappedKey(classNumber: MobileSyncFixture.classNumber, wrapped: [1, 2, 3])
    }
    #expect(try loss(of: item, form: .records, password: "x") == "its key is damaged")
    #expect(
      try loss(of: item, form: .database, password: "x") == "its key has 7 bytes instead of 44")
  }

  /// A link in the place of a content, or of its directory, is not followed.
  @Test func linksInTheBackupAreNotFollowed() throws {
    let directory = try MobileSyncFixture([Self.good]).write()
    let name = MobileSyncFixture.name(of: Self.good)
    let prefix = ByteString(name.bytes.prefix(2))
    let secret = try TemporaryDirectory("secret")
    try secret.write([9, 9, 9], at: name)
    let inner = try directory.directory.directory(prefix)
    try inner.remove(name)
    try inner.createLink(name, to: secret.path(name))
    #expect(try MobileSyncFixture.read(directory.path).entries.isEmpty)
    try inner.remove(name)
    try directory.directory.removeDirectory(prefix)
    try directory.directory.createLink(prefix, to: secret.path)
    let outcome = try MobileSyncFixture.read(directory.path)
    #expect(outcome.entries.isEmpty && outcome.skipped.entryCount == 1)
  }

  // MARK: - Names

  @Test(arguments: [
    "../../../etc/passwd", "AA\(String(repeating: "0", count: 38))", "", "ab/cd",
    String(repeating: "0", count: 39), String(repeating: "0", count: 41),
  ]) func hostileFileIDsAreNotOpened(id: String) throws {
    let reason = try loss(of: Self.file("x") { $0.fileID = ByteString(id) })
    #expect(reason == "its file ID is not 40 hexadecimal digits")
  }

  @Test(arguments: MobileSyncFixture.Form.allCases)
  func pathsStayInTheirContainer(form: MobileSyncFixture.Form) throws {
    for path in ["../x", "a/../../../x", "..", "a/.."] {
      #expect(try loss(of: Self.file(path), form: form)?.contains("'..'") == true, "\(path)")
    }
    for domain in ["..", "a/b", "AppDomain-../x"] {
      let item = Item(domain, "x", .file([1]))
      #expect(try loss(of: item, form: form)?.contains("domain") == true, "\(domain)")
    }
    let outcome = try MobileSyncFixture([Self.file("/./etc//passwd")]).read()
    #expect(outcome.entries.keys.contains(Self.data.appending("etc/passwd")))
  }

  @Test func contradictoryTypesAreNamed() throws {
    #expect(try loss(of: Self.file("x") { $0.flags = 2 })?.contains("different types") == true)
    #expect(try loss(of: Self.file("x") { $0.flags = 3 })?.contains("not a known type") == true)
    #expect(
      try loss(of: Self.file("x") { $0.file.mode = 0o020644 })?.contains("its mode") == true)
    #expect(
      try loss(of: Item(Self.app, "x", .symlink("")))?.contains("no target") == true)
    // If the mode has no type, the flags decide.
    #expect(try loss(of: Self.file("x") { $0.file.mode = 0o644 }) == nil)
  }

  /// The name of a content is the SHA-1 of its domain and path, so a changed name is detected. The
  /// content is kept under it.
  @Test func changedNamesAreSuspect() throws {
    let item = Self.file("nbme", [7, 8])
    var fixture = MobileSyncFixture([item, Self.good])
    let directory = try fixture.write()
    let right = MobileRecord.fileID(
      domain: ByteString(Self.app), relativePath: ByteString("name"))
    let content = MobileSyncFixture.name(of: item)
    try directory.write([7, 8], at: ByteString(right.bytes.prefix(2)).appending(right))
    try directory.directory.directory(ByteString(content.bytes.prefix(2))).remove(content)
    try directory.directory.remove("Manifest.db")
    fixture.items[0].fileID = right
    try MobileSyncFixture.makeDatabase(fixture.items, at: directory.path("Manifest.db"))
    let outcome = try MobileSyncFixture.read(directory.path)
    #expect(outcome.entries[Self.data.appending("nbme")]?.content == [7, 8])
    #expect(outcome.skipped.entryCount == 1 && outcome.skipped.propertyCount == 0)
    let suspect = try #require(outcome.skipped.listed.first)
    #expect(suspect.isSuspect && suspect.path == "AppDomain-com.example.app/nbme")
    #expect(suspect.reason.hasPrefix("its file ID is not the SHA-1 of its domain and path"))
  }

  // MARK: - Manifests

  @Test func damagedMetadataIsNamed() throws {
    for archive: [UInt8] in [
      [], Array("bplist00".utf8), Array("no list".utf8),
      try PropertyList.dictionary([]).binary(),
      try PropertyList.dictionary([
        .init("$objects", .array([.string("$null"), .uid(1)])),
        .init("$top", .dictionary([.init("root", .uid(1))])),
      ]).binary(),
      try PropertyList.dictionary([
        .init("$objects", .array([])), .init("$top", .dictionary([.init("root", .uid(.max))])),
      ]).binary(),
    ] {
      let reason = try loss(of: Self.file("x") { $0.archive = archive })
      #expect(reason?.contains("metadata") == true, "\(archive)")
    }
  }

  @Test func otherFilesAreNotDatabases() throws {
    let directory = try MobileSyncFixture([Self.good]).write()
    for bytes in [[], Array("SQLite format 3\0".utf8), [UInt8](repeating: 0x41, count: 10_000)] {
      try directory.write(bytes, at: "Manifest.db")
      let error = #expect(throws: InterchangeError.self) {
        try MobileSyncFixture.read(directory.path)
      }
      #expect(error?.kind == .damaged, "\(bytes.count) bytes")
      #expect(error?.subject.hasSuffix("Manifest.db") == true)
    }
  }

  /// A view or a virtual table with the name of the table could execute anything.
  @Test(arguments: [
    "CREATE VIEW Files AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
      + "SELECT x AS fileID, '' AS domain, '' AS relativePath, 1 AS flags, x AS file FROM c",
    "CREATE TABLE Other (fileID)", "CREATE TABLE Files (fileID, domain)",
  ]) func databasesExecuteNothing(statement: String) throws {
    let directory = try MobileSyncFixture([Self.good]).write()
    try directory.directory.remove("Manifest.db")
    do {
      let database = try SQLiteDatabase.create(path: directory.path("Manifest.db"))
      try database.execute(statement)
    }
    let error = #expect(throws: InterchangeError.self) {
      try MobileSyncFixture.read(directory.path)
    }
    #expect(error?.kind == .damaged)
  }

  /// Whichever byte of a database is changed, reading ends, and never with a trap.
  @Test func changedDatabasesEnd() throws {
    let items = (0..<40).map { Self.file("f\($0)") }
    let directory = try MobileSyncFixture(items).write()
    let bytes = try directory.read("Manifest.db")
    var random = Seeded.fresh()
    for _ in 0..<60 {
      var changed = bytes
      for _ in 0..<20 {
        changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(
          in: .min ... .max, using: &random)
      }
      try directory.write(changed, at: "Manifest.db")
      _ = try? MobileSyncFixture.read(directory.path)
    }
    for length in stride(from: 0, to: bytes.count, by: 1111) {
      try directory.write(Array(bytes.prefix(length)), at: "Manifest.db")
      _ = try? MobileSyncFixture.read(directory.path)
    }
  }

  @Test func truncatedRecordsKeepEarlierOnes() throws {
    let items = [
      Self.file("a"), Self.file("b") { $0.file.attributes = [.init(name: "n", value: [1])] },
    ]
    let bytes = MobileSyncFixture.records(items)
    let first = MobileSyncFixture.records([items[0]]).count
    for length in 0..<bytes.count {
      var reader: [MobileRecord] = []
      var fault: ManifestFault?
      do {
        var records = try MBDBReader(Descriptor.inMemory(Array(bytes.prefix(length))))
        while let record = try records.next() { reader.append(record) }
      } catch let error as ManifestFault { fault = error }
      #expect(reader.count == (length < first ? 0 : 1), "\(length) bytes")
      #expect((fault == nil) == (length == first || length == MBDBReader.magic.count))
    }
  }

  @Test func truncatedKeybagsAreRefused() throws {
    var fixture = MobileSyncFixture([])
    fixture.password = "x"
    let bytes = fixture.keybag
    #expect(try Keybag(bytes).classes.map(\.number) == [11, 3])
    for length in 0..<bytes.count {
      let keybag = try? Keybag(Array(bytes.prefix(length)))
      #expect(keybag == nil || keybag?.classes.count ?? 3 <= 2)
    }
    #expect(throws: KeybagError.self) { try Keybag([UInt8](repeating: 0, count: 65_537)) }
    let many = bytes + (0..<70).flatMap { _ in MobileSyncFixture.item("UUID", [1]) }
    #expect(throws: KeybagError.self) { try Keybag(many) }
  }

  @Test func unfinishedBackupsAreIncomplete() throws {
    var fixture = MobileSyncFixture([Self.good])
    fixture.snapshotState = "uploading"
    let outcome = try fixture.read()
    #expect(outcome.entries.count == 1)
    #expect(outcome.skipped.entryCount == 1)
    #expect(outcome.reasons.first?.contains("not finished (its state is 'uploading')") == true)
  }

  @Test func otherDirectoriesAreRefused() throws {
    let empty = try TemporaryDirectory("empty")
    #expect(try !MobileSyncBackup.isBackup(empty.directory))
    func kind() -> InterchangeError.Kind? {
      #expect(throws: InterchangeError.self) { try MobileSyncFixture.read(empty.path) }?.kind
    }
    #expect(kind() == .unknownFormat)
    try empty.write(PropertyList.dictionary([]).binary(), at: "Manifest.plist")
    #expect(kind() == .unknownFormat)
    try empty.write("x", at: "Manifest.mbdx")
    #expect(kind() == .unsupported)
    try empty.write("no list", at: "Manifest.plist")
    #expect(kind() == .damaged)
  }
}

/// The metadata of a file in Manifest.db.
struct MobileFileTests {
  /// An archive by another writer (Python's plistlib), with its objects in another order than
  /// Apple's, the root as object 5, the data of the key as a separate object, and integers of 1, 2,
  /// 4, 8 and 16 bytes.
  private static let foreign = [
    "62706c6973743030d4010203040506070a582476657273696f6e592461726368697665725424746f7058246f626a",
    "6563747312000186a05f100f4e534b657965644172636869766572d1080954726f6f748005a90b0c1213181c3a3b",
    "3c55246e756c6cd20d0e0f105a24636c6173736e616d655824636c6173736573564d4246696c65a20f11584e534f",
    "626a6563744f102c04000000000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021",
    "222324252627d214151617574e532e646174615624636c61737380028004d20d0e191a5d4e534d757461626c6544",
    "617461a3191b11564e5344617461df100f1d1e1f202122232425262728292a152b2c2d2e2f303132333435363738",
    "395c4c6173744d6f64696669656455466c6167735747726f757049445f10104c6173745374617475734368616e67",
    "655c52656c6174697665506174685542697274685453697a655b496e6f64654e756d626572544d6f646556557365",
    "7249445f100f50726f74656374696f6e436c6173735d456e6372797074696f6e4b6579564469676573745f101245",
    "7874656e64656441747472696275746573126553f101108013fffffffffffffffe126553f1028006125f5e100013",
    "000000012a05f20014000000000000000080000000000000051181a41101f5100480038007800880015b446f6375",
    "6d656e74732f784f1014000102030405060708090a0b0c0d0e0f101112134f104862706c6973743030d101025f10",
    "14636f6d2e6170706c652e6d657461646174613a78420102080b2200000000000001010000000000000003000000",
    "0000000000000000000000002500080011001a00240029003200370049004c00510053005d006300680073007c00",
    "830086008f00be00c300cb00d200d400d600db00e900ed00f40115012201280130014301500156015b0167016c01",
    "7301850193019a01af01b401b601bf01c401c601cb01d401e501e801eb01ed01ef01f101f301f502010218000000",
    "0000000201000000000000003d00000000000000000000000000000263",
  ].joined()

  @Test func archivesOfOtherWritersAreRead() throws {
    let bytes = try #require(Hex.decode(Self.foreign))
    let file = try MobileFile(archive: bytes)
    #expect(file.mode == 0o100644 && file.kind == .file)
    #expect(file.size == 5_000_000_000)
    #expect(file.owner == 501 && file.group == 4_294_967_294)
    #expect(file.inode == 1 << 63 + 5 || file.inode == (1 << 63) | 5)
    #expect(file.modified == 1_700_000_001 && file.changed == 1_700_000_002)
    #expect(file.born == 1_600_000_000 && file.protectionClass == 4)
    #expect(file.key?.classNumber == 4)
    #expect(file.key?.wrapped == Array(0..<40))
    #expect(file.digest == Array(0..<20))
    #expect(file.attributes == [.init(name: "com.apple.metadata:x", value: [1, 2])])
    #expect(file.target == nil)
  }

  @Test func archivesAreReadAsWritten() throws {
    var file = MobileFile()
    (file.mode, file.size, file.owner, file.group) = (0o120777, 7, 1, .max - 1)
    (file.inode, file.modified, file.changed, file.born) = (.max, -5, 6, 7)
    (file.protectionClass, file.target, file.digest) = (2, "/a/é", Array(0..<20))
    file.key = WrappedKey(Array(0..<44))
    file.attributes = [.init(name: "b", value: []), .init(name: "a", value: [1])]
    #expect(try MobileFile(archive: file.archive(relativePath: "x")) == file)
  }

  /// Any changed byte results in another file or an error, never in a trap.
  @Test func changedArchivesEnd() throws {
    let bytes = try #require(Hex.decode(Self.foreign))
    for index in bytes.indices {
      for bit: UInt8 in [1, 0x10, 0x80] {
        var changed = bytes
        changed[index] ^= bit
        _ = try? MobileFile(archive: changed)
      }
      #expect(throws: RecordFault.self) { try MobileFile(archive: Array(bytes.prefix(index))) }
    }
  }

  /// Objects with circular references, and an archive beyond the limit.
  @Test func endlessArchivesAreRefused() throws {
    let cycle = PropertyList.dictionary([
      .init("$objects", .array([.uid(1), .uid(0)])),
      .init("$top", .dictionary([.init("root", .uid(0))])),
    ])
    #expect(throws: RecordFault.self) { try MobileFile(archive: cycle.binary()) }
    let data = PropertyList.dictionary([
      .init(
        "$objects",
        .array([
          .string("$null"),
          .dictionary([.init("Mode", .integer(33188)), .init("Digest", .uid(2))]),
          .dictionary([.init("NS.data", .uid(2))]),
        ])), .init("$top", .dictionary([.init("root", .uid(1))])),
    ])
    #expect(try MobileFile(archive: data.binary()).digest == nil)
    #expect(throws: RecordFault.self) {
      try MobileFile(archive: [UInt8](repeating: 0, count: (1 << 20) + 1))
    }
    // A binary list whose array contains itself.
    let own = Array("bplist00".utf8) + [0xa1, 0x00, 0x08, 0, 0, 0, 0, 0, 0, 1, 1]
    let tail: [UInt8] =
      [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10]
    #expect(throws: RecordFault.self) { try MobileFile(archive: own + tail) }
  }
}
