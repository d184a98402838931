import Codecs
import SystemIO
import Testing

@testable import Interchange

/// The rules of Auto Backup, as AOSP evaluates them.
struct AutoBackupRulesTests {
  private typealias Destination = AutoBackupRules.Destination

  private func full(_ rules: String) throws -> AutoBackupRules {
    let text = "<full-backup-content>\(rules)</full-backup-content>"
    let section = try AutoBackupRules.Section(fullBackupContent: Array(text.utf8))
    return AutoBackupRules(targetVersion: 30, fullBackup: .rules(section))
  }

  private func extraction(_ rules: String) throws -> AutoBackupRules {
    let text = "<data-extraction-rules>\(rules)</data-extraction-rules>"
    return AutoBackupRules(extraction: try AutoBackupRules.DataExtraction(Array(text.utf8)))
  }

  private func includes(
    _ rules: AutoBackupRules, _ path: String, in domain: AutoBackupDomain = .root,
    to destination: Destination = .cloud, over transport: AutoBackupTransport? = nil
  ) -> Bool {
    let location = AutoBackupLocation(domain, ByteString(path).components)
    return rules.decision(for: location, to: destination, over: transport).isIncluded
  }

  private func reason(
    _ rules: AutoBackupRules, _ path: String, to destination: Destination = .cloud,
    over transport: AutoBackupTransport? = nil
  ) -> AutoBackupRules.Reason? {
    let location = AutoBackupLocation(.credentialProtected, ByteString(path).components)
    if case .excluded(let reason) = rules.decision(
      for: location, to: destination, over: transport)
    {
      return reason
    }
    return nil
  }

  // MARK: - Without rules

  @Test func includesEverythingButTheSystemsDirectories() {
    let rules = AutoBackupRules()
    for path in ["files/a", "databases/x.db", "shared_prefs/p.xml", "app_webview/c", "other"] {
      #expect(includes(rules, path) && includes(rules, path, to: .transfer))
    }
    for name in ["cache", "code_cache", "no_backup"] {
      #expect(reason(rules, name + "/x") == .systemDirectory(ByteString(name)))
      #expect(includes(rules, "files/" + name))
      // A transfer includes them.
      #expect(includes(rules, name + "/x", to: .transfer))
      #expect(includes(rules, name + "/x", in: .external))
    }
  }

  @Test func respectsDisabledBackups() {
    var rules = AutoBackupRules(allowsBackup: false)
    #expect(reason(rules, "files/a") == .disabled)
    #expect(includes(rules, "files/a", to: .transfer))
    rules.targetVersion = 30
    #expect(reason(rules, "files/a", to: .transfer) == .disabled)
    rules = AutoBackupRules(targetVersion: 30, fullBackup: .disabled)
    #expect(reason(rules, "files/a") == .disabled)
    #expect(reason(rules, "files/a", to: .transfer) == .disabled)
  }

  // MARK: - Includes and excludes

  @Test func oneIncludeExcludesEverythingElse() throws {
    let rules = try full("<include domain='file' path='a'/>")
    #expect(includes(rules, "a", in: .file) && includes(rules, "a/b/c", in: .file))
    #expect(reason(rules, "files/ab") == .notIncluded)
    #expect(!includes(rules, "x", in: .database) && !includes(rules, "other"))
    #expect(!includes(rules, "x", in: .external))
  }

  @Test func excludesWin() throws {
    let rules = try full(
      "<include domain='file' path='a'/><exclude domain='file' path='a/b'/>")
    #expect(includes(rules, "a/c", in: .file))
    guard case .rule(let rule) = try #require(reason(rules, "files/a/b/c")) else {
      Issue.record("another reason")
      return
    }
    #expect(rule.location == AutoBackupLocation(.file, ["a", "b"]))
    #expect(rule.position == .mark(Mark(line: 1, column: 55)))
    // The domain specifies a location; the path from the root of the app is the same.
    let other = try full("<exclude domain='root' path='files/a'/>")
    #expect(!includes(other, "a/b", in: .file) && includes(other, "b", in: .file))
  }

  /// If the parent directory of an included path is excluded, a transfer restores the path, but a
  /// restore from the cloud refuses it.
  @Test func anExcludedParentStopsTheRestoreFromTheCloud() throws {
    let rules = "<include domain='file' path='a/b'/><exclude domain='file' path='a'/>"
    let both = try extraction(
      "<cloud-backup>\(rules)</cloud-backup><device-transfer>\(rules)</device-transfer>")
    #expect(!includes(both, "a/b/c", in: .file))
    #expect(includes(both, "a/b/c", in: .file, to: .transfer))
  }

  @Test func theRootDomainExcludesDirectoriesWithTheirOwnDomain() throws {
    let rules = try full("<include domain='root' path='.'/>")
    #expect(includes(rules, "app_x/y"))
    #expect(reason(rules, "files/a") == .systemDirectory("files"))
    #expect(includes(try full("<include domain='root' path='files/a'/>"), "files/a/b"))
    let excluded = try full("<exclude domain='root'/>")
    #expect(!includes(excluded, "app_x/y") && !includes(excluded, "a", in: .file))
    #expect(includes(excluded, "x", in: .external) && includes(excluded, "x", in: .deviceRoot))
  }

  @Test func knowsTheFilesThatBelongToDatabasesAndPreferences() throws {
    let rules = try full(
      "<include domain='database' path='x.db'/><include domain='sharedpref' path='p'/>")
    for name in ["x.db", "x.db-journal", "x.db-wal"] {
      #expect(includes(rules, name, in: .database))
    }
    #expect(!includes(rules, "x.db-shm", in: .database))
    #expect(includes(rules, "p.xml", in: .sharedpref))
    #expect(!includes(rules, "q.xml", in: .sharedpref))
  }

  @Test func separatesTheStorages() throws {
    let rules = try full("<exclude domain='device_file' path='a'/>")
    #expect(!includes(rules, "a", in: .deviceFile) && includes(rules, "a", in: .file))
    #expect(includes(rules, "b", in: .deviceFile))
  }

  /// Android ignores such rules, so an `include` among them includes nothing and excludes nothing.
  @Test func ignoresInvalidPathsAndDomains() throws {
    let rules = try full(
      """
      <include domain='file' path='a/../b'/><include domain='file' path='a//b'/>
      <include domain='unknown' path='a'/><include path='a'/><exclude domain='file' path='a..b'/>
      """)
    guard case .rules(let section) = rules.fullBackup else { return }
    #expect(section.includes.isEmpty && section.excludes.isEmpty)
    #expect(
      section.remarks.map(\.problem) == [
        .parentPath, .doubleSlash, .unknownDomain("unknown"), .noDomain, .parentPath,
      ])
    #expect(section.remarks[2].rule == #"<include domain="unknown" path="a"/>"#)
    #expect(section.remarks[2].position == .mark(Mark(line: 2, column: 1)))
    #expect(includes(rules, "anything", in: .file))
    let slashes = try full("<exclude domain='file' path='/a/./b/'/>")
    #expect(!includes(slashes, "a/b", in: .file) && includes(slashes, "a", in: .file))
  }

  /// Rules that do not mean what they seem to mean, or have no effect.
  @Test func remarksOnRulesThatAndroidAppliesDifferently() throws {
    let rules = try full(
      """
      <include domain='file' path='/a' requireFlags='clientSideEncryption|x|y'/>
      <include domain='root' path='databases'/><include domain='root' path='cache'/>
      <exclude domain='file' path='a/b'/><exclude domain='file' path='other'/>
      <exclude domain='device_file' path=''/><include domain='file' path='z' x='1'/>
      """)
    #expect(
      rules.remarks.map(\.problem) == [
        .absolutePath, .unknownFlags(["x", "y"]), .otherDomain("databases"),
        .systemDirectory("cache"), .emptyPath, .unknownAttribute("x"), .notIncluded,
        .notIncluded,
      ])
    #expect(includes(rules, "a/c", in: .file) && !includes(rules, "a/b", in: .file))
    #expect(!includes(rules, "databases/x") && !includes(rules, "cache/x"))
    let none = try full("<include domain='device_root'/><exclude domain='device_root' path='a'/>")
    #expect(none.remarks.isEmpty)
  }

  @Test func remarksOnRulesOutsideOfTheirSections() throws {
    let rules = try extraction(
      """
      <exclude domain='file' path='a'/><cloud-backups><exclude domain='file'/></cloud-backups>
      <device-transfer disableIfNoEncryptionCapabilities='true'>
      <include domain='file' path='a' requireFlags='clientSideEncryption'/></device-transfer>
      <cross-platform-transfer platform='ios'><include domain='file'/></cross-platform-transfer>
      """)
    #expect(
      rules.remarks.map(\.problem) == [
        .outsideSection, .unknownSection("cloud-backups"), .encryptionOfTransfer, .unreadFlags,
      ])
    #expect(includes(rules, "a", in: .file) && includes(rules, "a", in: .file, to: .transfer))
    #expect(rules.remarks[3].position == .mark(Mark(line: 3, column: 1)))
  }

  /// A text of the file is escaped and shortened in a remark; texts of any length are compared.
  @Test func remarksOnHostileTextsAreBounded() throws {
    let long = String(repeating: "a/", count: 2_000)
    let rules = try full(
      "<include domain='file' path='\(long)b'/><exclude domain='file' path='\(long)c'/>"
        + "<exclude domain='fi&#10;le' path='\(long)'/>")
    #expect(rules.remarks.map(\.problem) == [.unknownDomain("fi\nle")])
    let remark = try #require(rules.remarks.first)
    #expect(remark.rule.utf8.count < 400 && !remark.rule.contains("\n"))
    #expect(!remark.problem.clause.contains("\n"))
  }

  // MARK: - Conditions

  @Test func includesWithFlagsNeedAllOfThem() throws {
    let rules = try full(
      """
      <include domain='file' path='a' requireFlags='clientSideEncryption'/>
      <include domain='file' path='b' requireFlags='clientSideEncryption|deviceToDeviceTransfer'/>
      <include domain='file' path='c' requireFlags='unknown'/>
      """)
    #expect(includes(rules, "a", in: .file))
    #expect(!includes(rules, "a", in: .file, over: []))
    #expect(!includes(rules, "b", in: .file))
    #expect(includes(rules, "b", in: .file, over: [.clientSideEncryption, .deviceToDevice]))
    #expect(includes(rules, "c", in: .file, over: []))
    guard case .flagsRequired(let rule) = reason(rules, "files/a/x", over: []) else {
      Issue.record("another reason")
      return
    }
    #expect(rule.required == .clientSideEncryption)
  }

  @Test func disablesCloudBackupsWithoutEncryption() throws {
    let rules = try extraction(
      "<cloud-backup disableIfNoEncryptionCapabilities='true'/><device-transfer/>")
    #expect(includes(rules, "a", in: .file))
    #expect(reason(rules, "files/a", over: []) == .encryptionRequired)
    #expect(includes(rules, "a", in: .file, to: .transfer, over: []))
    let other = try extraction("<cloud-backup disableIfNoEncryptionCapabilities='false'/>")
    #expect(includes(other, "a", in: .file, over: []))
  }

  @Test func eachDestinationHasItsSection() throws {
    var rules = try extraction(
      """
      <cloud-backup><exclude domain="file" path="a"/></cloud-backup>
      <device-transfer><include domain="file" path="a"/></device-transfer>
      <cross-platform-transfer platform="ios"><unknown/></cross-platform-transfer>
      """)
    #expect(!includes(rules, "a", in: .file) && includes(rules, "b", in: .file))
    #expect(includes(rules, "a", in: .file, to: .transfer))
    #expect(!includes(rules, "b", in: .file, to: .transfer))
    // If there is no section for transfers, the older file applies only to older apps.
    rules.extraction?.transfer = nil
    rules.fullBackup = .disabled
    #expect(includes(rules, "a", in: .file, to: .transfer))
    rules.targetVersion = 30
    #expect(reason(rules, "files/a", to: .transfer) == .disabled)
    rules.extraction = nil
    #expect(reason(rules, "files/a") == .disabled)
  }

  // MARK: - Files

  @Test func readsTheBinaryForm() throws {
    typealias Element = BinaryXMLBuilder.Element
    func rule(_ name: String, _ domain: String, _ path: String) -> Element {
      Element(
        name: name,
        attributes: [
          .init(name: "domain", value: .text(domain)), .init(name: "path", value: .text(path)),
        ])
    }
    let file = Element(
      name: "data-extraction-rules",
      children: [
        Element(
          name: "cloud-backup",
          attributes: [
            .init(name: "disableIfNoEncryptionCapabilities", value: .typed(0x12, .max))
          ],
          children: [rule("exclude", "sharedpref", "secrets")])
      ])
    let extraction = try AutoBackupRules.DataExtraction(BinaryXMLBuilder.build(file))
    let rules = AutoBackupRules(extraction: extraction)
    #expect(!includes(rules, "secrets.xml", in: .sharedpref))
    #expect(includes(rules, "other.xml", in: .sharedpref))
    #expect(reason(rules, "files/a", over: []) == .encryptionRequired)
  }

  @Test func acceptsAttributesOfBuildTools() throws {
    let text = """
      <full-backup-content xmlns:tools="http://schemas.android.com/tools">
        <exclude domain="file" path="a" tools:ignore="FullBackupContent" tools:x="y"/>
      </full-backup-content>
      """
    let section = try AutoBackupRules.Section(fullBackupContent: Array(text.utf8))
    #expect(section.excludes.count == 1)
  }

  /// Without readable rules, Android makes no backup, so an error is better than a guess.
  @Test(arguments: [
    "<full-backup-content><keep domain='file'/></full-backup-content>",
    "<full-backup-content><exclude domain='file' path='a' x='1'/></full-backup-content>",
    "<full-backup-content><include domain='file' path='a' x='1' y='2'/></full-backup-content>",
    "<full-backup-content><include domain='file'><x/></include></full-backup-content>",
    "<data-extraction-rules/>", "<full-backup-content>",
  ]) func refusesRulesThatAndroidRefuses(text: String) {
    #expect(throws: CodecError.self) {
      try AutoBackupRules.Section(fullBackupContent: Array(text.utf8))
    }
  }

  @Test func countsRulesWithinRules() throws {
    let rules = try full(
      "<exclude domain='file' path='a'><exclude domain='file' path='b'/></exclude>")
    #expect(!includes(rules, "a", in: .file) && !includes(rules, "b", in: .file))
  }
}
