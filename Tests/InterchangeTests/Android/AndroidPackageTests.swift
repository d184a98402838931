import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// The rules of Auto Backup in packages of apps.
struct AndroidPackageTests {
  private typealias Fixture = AndroidPackageFixture
  private typealias Table = ResourceTableBuilder.Table

  private func package(
    _ members: [(path: ByteString, content: [UInt8])]
  ) throws -> AndroidPackage {
    let file = try Descriptor.inMemory(try Fixture.zip(members))
    return try AndroidPackage(ArchiveFile(file, name: "base.apk"))
  }

  private func includes(
    _ rules: AutoBackupRules, _ path: ByteString,
    to destination: AutoBackupRules.Destination = .cloud
  ) -> Bool {
    rules.decision(for: AutoBackupLocation(.credentialProtected, path.components), to: destination)
      .isIncluded
  }

  /// Both rules files have paths that the packaging tool shortened, and are found through a
  /// reference to a reference.
  @Test func rulesAreFoundByTheirNumbers() throws {
    let table = ResourceTableBuilder.build([
      Table(type: 1, values: [0: .text("res/Aa.xml"), 1: .reference(0x7f02_0003)]),
      Table(type: 2, values: [3: .text("res/xml/extraction.xml")], form: .sparse),
    ])
    let found = try package([
      (
        "AndroidManifest.xml",
        Fixture.manifest([
          Fixture.fullBackupContent: .typed(0x01, 0x7f01_0000),
          Fixture.dataExtractionRules: .typed(0x01, 0x7f01_0001),
        ])
      ),
      ("classes.dex", [UInt8](repeating: 7, count: 100_000)), ("resources.arsc", table),
      (
        "res/Aa.xml",
        Fixture.rules("full-backup-content", [Fixture.rule("exclude", "file", "old")])
      ),
      (
        "res/xml/extraction.xml",
        Fixture.rules(
          "data-extraction-rules",
          [
            .init(name: "cloud-backup", children: [Fixture.rule("exclude", "file", "new")])
          ])
      ),
    ])
    #expect(found.name == "com.example.notes" && !found.isKeyValueOnly)
    #expect(found.rules.targetVersion == 34 && found.rules.allowsBackup)
    #expect(!includes(found.rules, "files/new/a") && includes(found.rules, "files/old/a"))
    #expect(includes(found.rules, "files/new/a", to: .transfer))
    guard case .rules(let section) = found.rules.fullBackup else {
      Issue.record("no older rules")
      return
    }
    #expect(section.excludes.count == 1)
  }

  @Test func flagsCanBeResources() throws {
    let table = ResourceTableBuilder.build([
      Table(type: 1, values: [0: .flag(false), 1: .flag(true)])
    ])
    let yes = BinaryXMLBuilder.Value.typed(0x01, 0x7f01_0001)
    let no = BinaryXMLBuilder.Value.typed(0x01, 0x7f01_0000)
    func read(_ attributes: [UInt32: BinaryXMLBuilder.Value]) throws -> AndroidPackage {
      try package([
        ("AndroidManifest.xml", Fixture.manifest(attributes)), ("resources.arsc", table),
      ])
    }
    #expect(try !read([Fixture.allowBackup: no]).rules.allowsBackup)
    #expect(try read([Fixture.allowBackup: yes]).rules.allowsBackup)
    #expect(try read([Fixture.fullBackupContent: no]).rules.fullBackup == .disabled)
    #expect(try read([Fixture.fullBackupContent: yes]).rules.fullBackup == .everything)
    let agent = BinaryXMLBuilder.Value.text(".Agent")
    #expect(try read([Fixture.backupAgent: agent]).isKeyValueOnly)
    #expect(try !read([Fixture.backupAgent: agent, Fixture.fullBackupOnly: yes]).isKeyValueOnly)
  }

  /// Android transfers the data of an app that targets API level 31 or later, even if the app
  /// disables backups.
  @Test func disabledBackupsDependOnTheDestination() throws {
    for (target, isTransferred): (UInt32, Bool) in [(30, false), (31, true)] {
      let found = try package([
        (
          "AndroidManifest.xml",
          Fixture.manifest([Fixture.allowBackup: .typed(0x12, 0)], target: target)
        )
      ])
      #expect(!includes(found.rules, "files/a"))
      #expect(includes(found.rules, "files/a", to: .transfer) == isTransferred)
    }
  }

  // MARK: - Hostile packages

  private func reason(_ members: [(path: ByteString, content: [UInt8])]) throws -> InterchangeError?
  {
    do {
      _ = try package(members)
      return nil
    } catch let error as InterchangeError {
      return error
    }
  }

  private static let rulesInTable: [UInt8] = Fixture.manifest([
    Fixture.fullBackupContent: .typed(0x01, 0x7f01_0000)
  ])

  private static func table(_ path: String) -> [UInt8] {
    ResourceTableBuilder.build([Table(type: 1, values: [0: .text(path)])])
  }

  @Test func missingPartsAreReported() throws {
    let manifest = Self.rulesInTable
    #expect(try reason([("a", [1])])?.kind == .unknownFormat)
    let table = try reason([("AndroidManifest.xml", manifest)])
    #expect(table?.reason.contains("0x7f010000: it has no 'resources.arsc'") == true)
    let entry = try reason([
      ("AndroidManifest.xml", manifest), ("resources.arsc", ResourceTableBuilder.build([])),
    ])
    #expect(entry?.reason.contains("has no such resource") == true)
    let file = try reason([
      ("AndroidManifest.xml", manifest), ("resources.arsc", Self.table("res/a.xml")),
    ])
    #expect(file?.reason == "its manifest names 'res/a.xml', which it lacks")
    let other = try reason([
      ("AndroidManifest.xml", manifest), ("resources.arsc", Self.table("res/a.xml")),
      ("res/a.xml", Fixture.rules("paths", [])),
    ])
    #expect(other?.kind == .damaged && other?.reason.hasPrefix("'res/a.xml': ") == true)
    #expect(try reason([("AndroidManifest.xml", Array("<a/>".utf8))])?.kind == .damaged)
  }

  /// A path in the resource table is only used as the name of a member.
  @Test func pathsLeadToMembersOnly() throws {
    for path in ["../../etc/passwd", "/etc/passwd", "a\0b"] {
      let error = try reason([
        ("AndroidManifest.xml", Self.rulesInTable), ("resources.arsc", Self.table(path)),
      ])
      #expect(error?.kind == .damaged, "\(path)")
    }
  }

  @Test func twoMembersWithTheSameNameAreRefused() throws {
    let error = try reason([
      ("AndroidManifest.xml", Self.rulesInTable), ("AndroidManifest.xml", Fixture.manifest([:])),
    ])
    #expect(error?.reason == "it has two members 'AndroidManifest.xml'")
  }

  /// A member with many zeros is small in the archive.
  @Test func aBombIsNotRead() throws {
    let error = try reason([
      ("AndroidManifest.xml", [UInt8](repeating: 0, count: (8 << 20) + 1))
    ])
    #expect(error?.kind == .limitExceeded)
    #expect(error?.reason == "'AndroidManifest.xml' has more than 8 MiB")
  }

  @Test func aResourceThatRefersToItselfIsRefused() throws {
    let error = try reason([
      ("AndroidManifest.xml", Self.rulesInTable),
      (
        "resources.arsc",
        ResourceTableBuilder.build([Table(type: 1, values: [0: .reference(0x7f01_0000)])])
      ),
    ])
    #expect(error?.kind == .limitExceeded)
  }

  // MARK: - Sets of rules

  @Test func rulesOfAPackageApplyOnlyToItsApp() throws {
    let directory = try TemporaryDirectory("rules")
    let apk = try Fixture.zip([
      ("AndroidManifest.xml", Fixture.manifest([Fixture.allowBackup: .typed(0x12, 0)]))
    ])
    try directory.write(apk, at: "base.apk")
    var set = AutoBackupRuleSet()
    try set.add(directory.path("base.apk"))
    #expect(set.rules(of: "com.example.notes")?.allowsBackup == false)
    #expect(set.rules(of: "com.example.other") == nil)
    let again = #expect(throws: InterchangeError.self) { try set.add(directory.path("base.apk")) }
    #expect(again?.reason == "there are two packages of 'com.example.notes'")
    try directory.write("<full-backup-content/>", at: "old.xml")
    try directory.write("<data-extraction-rules/>", at: "new.xml")
    try set.add(directory.path("old.xml"))
    #expect(set.rules(of: "com.example.other")?.targetVersion == 30)
    #expect(throws: InterchangeError.self) { try set.add(directory.path("old.xml")) }
    try set.add(directory.path("new.xml"))
    #expect(set.rules(of: "com.example.other")?.targetVersion == 31)
    #expect(set.rules(of: "com.example.notes")?.allowsBackup == false)
    for (name, text) in [("empty.xml", ""), ("other.xml", "<a/>"), ("zip.apk", "PK\u{3}\u{4}")] {
      try directory.write(text, at: ByteString(name))
      #expect(throws: InterchangeError.self, "\(name)") {
        try set.add(directory.path(ByteString(name)))
      }
    }
    #expect(throws: InterchangeError.self) { try set.add(directory.path("missing")) }
  }
}
