import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Backups of iTunes and the Finder, plain and encrypted, with both forms of the manifest.
struct MobileSyncTests {
  typealias Item = MobileSyncFixture.Item

  private static let app = "AppDomain-com.example.app"

  /// Sizes around the block size, and more than one portion of decryption.
  private static let sizes = [0, 1, 15, 16, 17, 31, 32, 4096, 300_001]

  private static func content(_ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ size) }
  }

  private static let mark = ForeignEntry.Attribute(
    name: "com.apple.metadata:com_apple_backup_excludeItem", value: [1, 2, 3])

  /// One entry of each kind, and files of many sizes.
  private static let items: [Item] =
    [
      Item(app, "", .directory),
      Item(app, "Documents", .directory) { $0.file.mode = 0o040700 },
      Item(app, "Documents/link", .symlink("/private/var/mobile/x")),
      Item(app, "Documents/é", .file(content(5))) {
        $0.file.mode = 0o100600
        $0.file.protectionClass = 1
        $0.file.attributes = [mark]
        $0.file.group = UInt32(bitPattern: -2)
        $0.file.modified = 1_234_567_890
      },
      Item("AppDomainGroup-group.com.example", "shared", .file(content(7))),
      Item("AppDomainPlugin-com.example.app.ext", "Library/x", .file(content(8))),
      Item("AppDomainPlugin-org.unknown.ext", "Library/x", .file(content(9))),
      Item("AppDomain-org.example.other-app", "Documents/y", .file(content(10))),
      Item("HomeDomain", "Library/SMS/sms.db", .file(content(11))),
    ] + sizes.map { Item(app, "Documents/\($0)", .file(content($0))) }

  /// The forms of backups in all versions since iOS 4.
  private static let variants: [(MobileSyncFixture.Form, password: String?, firstRounds: UInt32?)] =
    [
      (.database, nil, 3), (.database, "pass wörd", 3), (.database, "x", nil), (.records, nil, nil),
      (.records, "x", nil), (.records, "", 3),
    ]

  @Test(arguments: variants) func backupsAreRead(
    form: MobileSyncFixture.Form, password: String?, firstRounds: UInt32?
  ) throws {
    var fixture = MobileSyncFixture(Self.items)
    (fixture.form, fixture.password, fixture.firstRounds) = (form, password, firstRounds)
    let outcome = try fixture.read()
    #expect(outcome.reasons == [])
    #expect(outcome.damaged == [:])
    #expect(outcome.entries.count == Self.items.count)
    for size in Self.sizes {
      let file = outcome.entries[ByteString("apps/com.example.app/data/Documents/\(size)")]
      #expect(file?.content == Self.content(size), "\(size) bytes")
      #expect(file?.entry.kind == .file(size: UInt64(size)))
    }
    let file = try #require(outcome.entries["apps/com.example.app/data/Documents/é"])
    #expect(file.entry.permissions == 0o600)
    #expect(file.entry.owner == 501 && file.entry.group == 4_294_967_294)
    #expect(file.entry.modified == Timestamp(seconds: 1_234_567_890))
    #expect(
      file.entry.attributes == [
        .init(name: "user.com.apple.metadata:com_apple_backup_excludeItem", value: [1, 2, 3]),
        .init(name: "user.sandboxctl.protection-class", value: Array("1".utf8)),
      ])
    let root = try #require(outcome.entries["apps/com.example.app/data"])
    #expect(root.entry.kind == .directory && root.entry.permissions == 0o755)
    #expect(outcome.entries["apps/com.example.app/data/Documents"]?.entry.permissions == 0o700)
    let link = outcome.entries["apps/com.example.app/data/Documents/link"]
    #expect(link?.entry.kind == .symlink(target: "/private/var/mobile/x"))
    #expect(link?.entry.attributes == [])
  }

  @Test func domainsBecomeContainers() throws {
    let paths = try MobileSyncFixture(Self.items).read().entries.keys
    for path: ByteString in [
      "apps/com.example.app/data/Documents/é", "groups/group.com.example/shared",
      "apps/com.example.app/extensions/com.example.app.ext/data/Library/x",
      "folders/AppDomainPlugin-org.unknown.ext/Library/x",
      "apps/org.example.other-app/data/Documents/y", "folders/HomeDomain/Library/SMS/sms.db",
    ] {
      #expect(paths.contains(path), "\(path)")
      let back = MobileSyncDomains.domain(of: path.components)
      let domains = MobileSyncDomains(apps: ["com.example.app"])
      #expect(back.flatMap { domains.container(of: $0.domain).map { $0.count } } != nil)
    }
    let domains = MobileSyncDomains(apps: ["com.a", "com.a.b"])
    #expect(
      domains.container(of: "AppDomainPlugin-com.a.b.c")
        == ["apps", "com.a.b", "extensions", "com.a.b.c", "data"])
    #expect(
      domains.container(of: "AppDomainPlugin-com.ab.c") == ["folders", "AppDomainPlugin-com.ab.c"])
    #expect(domains.container(of: "AppDomain-") == ["folders", "AppDomain-"])
    for domain: ByteString in ["", ".", "..", "a/b", "AppDomain-a/../b", "AppDomain-x\0y"] {
      #expect(domains.container(of: domain) == nil, "\(domain)")
    }
  }

  /// An app that no list of the backup contains has its extensions if it has data.
  @Test(arguments: MobileSyncFixture.Form.allCases)
  func unlistedAppsHaveTheirExtensions(form: MobileSyncFixture.Form) throws {
    var fixture = MobileSyncFixture([
      .init("AppDomainPlugin-net.unlisted.e", "x", .file([1])),
      .init("AppDomain-net.unlisted", "y", .file([2])),
      .init("AppDomainPlugin-net.other.e", "z", .file([3])),
    ])
    fixture.form = form
    let paths = try fixture.read().entries.keys.sorted()
    #expect(
      paths == [
        "apps/net.unlisted/data/y", "apps/net.unlisted/extensions/net.unlisted.e/data/x",
        "folders/AppDomainPlugin-net.other.e/z",
      ])
  }

  @Test func deviceIsDescribed() throws {
    let directory = try MobileSyncFixture(Self.items).write()
    #expect(try MobileSyncBackup.isBackup(directory.directory))
    let backup = try MobileSyncBackup(path: directory.path)
    let device = backup.device
    let isEncrypted = backup.isEncrypted
    #expect(!isEncrypted)
    #expect(device.name == "Ada’s iPhone" && device.osVersion == "15.8")
    #expect(device.productType == "iPhone9,3" && device.identifier == "00ab")
    #expect(
      device.apps == [
        .init(identifier: "com.example.app", build: "42"),
        .init(identifier: "org.example.other-app", build: nil),
      ])
    #expect(device.madeAt == Timestamp(seconds: 978_307_200 + 700_000_000))
    #expect(try MobileSyncSource(backup).madeAt == device.madeAt)
  }

  /// Other programs pad neither the manifest nor the contents.
  @Test func paddingMayBeAbsent() throws {
    var fixture = MobileSyncFixture(Self.items)
    fixture.password = "x"
    fixture.isManifestPadded = false
    fixture.areContentsPadded = false
    let outcome = try fixture.read()
    #expect(outcome.reasons == [])
    for size in Self.sizes {
      let file = outcome.entries[ByteString("apps/com.example.app/data/Documents/\(size)")]
      #expect(file?.content == Self.content(size), "\(size) bytes")
    }
  }

  // MARK: - Passwords

  @Test(arguments: MobileSyncFixture.Form.allCases)
  func wrongPasswordsAreRefused(form: MobileSyncFixture.Form) throws {
    var fixture = MobileSyncFixture(Self.items)
    (fixture.form, fixture.password) = (form, "right")
    let directory = try fixture.write()
    for password in ["wrong", "", "right "] {
      let error = #expect(throws: InterchangeError.self) {
        try MobileSyncFixture.read(directory.path, password: password)
      }
      #expect(error?.kind == .wrongKey)
    }
    let error = #expect(throws: InterchangeError.self) {
      try MobileSyncFixture.read(directory.path)
    }
    #expect(error?.kind == .keyRequired)
    #expect(try MobileSyncFixture.read(directory.path, password: "right").reasons == [])
  }

  /// An unencrypted backup needs no password, and one that is given has no effect.
  @Test func plainBackupsNeedNoPassword() throws {
    let directory = try MobileSyncFixture(Self.items).write()
    #expect(try MobileSyncFixture.read(directory.path, password: "x").damaged == [:])
  }

  /// A keybag that requires a billion rounds is refused at once.
  @Test(
    arguments: [
      (20_000_001, 10_000, InterchangeError.Kind.limitExceeded), (3, 1_000_001, .limitExceeded),
      (0, 10, .damaged), (3, 0, .damaged),
    ] as [(UInt32, UInt32, InterchangeError.Kind)])
  func absurdRoundsAreRefused(
    first: UInt32, rounds: UInt32, kind: InterchangeError.Kind
  ) throws {
    var fixture = MobileSyncFixture([])
    fixture.password = "x"
    let directory = try fixture.write()
    (fixture.firstRounds, fixture.rounds) = (first, rounds)
    let manifest = PropertyList.dictionary([
      .init("IsEncrypted", .bool(true)),
      .init("BackupKeyBag", .data(Self.keybag(first: first, rounds: rounds))),
    ])
    try directory.write(manifest.binary(), at: "Manifest.plist")
    let error = #expect(throws: InterchangeError.self) {
      try MobileSyncFixture.read(directory.path, password: "x")
    }
    #expect(error?.kind == kind, "\(String(describing: error))")
  }

  private static func keybag(first: UInt32, rounds: UInt32) -> [UInt8] {
    let salt = [UInt8](repeating: 1, count: 20)
    return MobileSyncFixture.item("UUID", [1]) + MobileSyncFixture.item("SALT", salt)
      + MobileSyncFixture.item("ITER", rounds) + MobileSyncFixture.item("DPIC", first)
      + MobileSyncFixture.item("DPSL", salt)
  }
}

/// Keybags from another source: the examples of hashcat's modes 14700 and 14800
/// (https://hashcat.net/wiki/doku.php?id=example_hashes), whose password is `hashcat`.
struct MobileSyncKeybagVectorTests {
  private func keybag(
    _ wrapped: String, salt: String, first: (rounds: UInt32, salt: String)? = nil
  ) throws -> Keybag {
    func item(_ tag: String, _ digits: String) -> [UInt8] {
      MobileSyncFixture.item(tag, Hex.decode(digits) ?? [])
    }
    var bytes = MobileSyncFixture.item("UUID", [0]) + item("SALT", salt)
    bytes += MobileSyncFixture.item("ITER", 10_000)
    if let first {
      bytes += MobileSyncFixture.item("DPIC", first.rounds) + item("DPSL", first.salt)
    }
    bytes += MobileSyncFixture.item("UUID", [1]) + MobileSyncFixture.item("CLAS", 3)
    bytes += MobileSyncFixture.item("WRAP", 2) + item("WPKY", wrapped)
    return try Keybag(bytes)
  }

  private func opens(_ keybag: Keybag, _ password: String) -> Bool {
    keybag.unlock(password: SecretBytes(copying: Array(password.utf8).span)) != nil
  }

  @Test func keybagsBeforeIOS10AreOpened() throws {
    let keybag = try keybag(
      "b8e3f3a970239b22ac199b622293fe4237b9d16e74bad2c3c3568cd1bd3c471615a6c4f867265642",
      salt: "4542263740587424862267232255853830404566")
    #expect(opens(keybag, "hashcat"))
    #expect(!opens(keybag, "Hashcat"))
  }

  /// Ten million rounds take several seconds.
  @Test func keybagsSinceIOS10AreOpened() throws {
    let keybag = try keybag(
      "8b715f516ff8e64442c478c2d9abb046fc6979ab079007d3dbcef3ddd84217f4c3db01362d88fa68",
      salt: "2353363784073608264337337723324886300850",
      first: (10_000_000, "425b4bb4e200b5fd4c66979c9caca31716052063"))
    #expect(opens(keybag, "hashcat"))
  }
}
