import Foundation
import SystemIO
import TestSupport
import Testing

/// `export android --rules` on the command line.
struct AutoBackupExportTests {
  private let cli: CommandLine

  private static let notes = "com.example.notes"
  private static let other = "com.example.other"

  /// Makes a snapshot of a device with two apps.
  init() throws {
    cli = try CommandLine()
    for (app, path, text) in [
      (Self.notes, "files/kept.txt", "kept"), (Self.notes, "files/drafts/one.txt", "one"),
      (Self.notes, "files/drafts/two.txt", "two!"), (Self.notes, "cache/x", "cached"),
      (Self.notes, "shared_prefs/app.xml", "<map/>"), (Self.other, "files/drafts/a", "a"),
      (Self.other, "cache/y", "y"),
    ] {
      try cli.directory.write(text, at: ByteString("phone/data/data/\(app)/\(path)"))
    }
    _ = try cli.succeed("init repo --plain --no-default")
    // The policy does not keep caches.
    _ = try cli.succeed(
      "backup --layout android --root phone --repo repo --include ** --quiet")
  }

  private func shell(_ script: String) throws {
    let outcome = try Program.run("/bin/bash", ["-ec", script], in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// Makes a package whose manifest names rules for Android 12 by a number.
  private func makePackage(
    _ name: String, allowsBackup: Bool = true, _ rules: [BinaryXMLBuilder.Element]
  ) throws {
    typealias Element = BinaryXMLBuilder.Element
    let manifest = Element(
      name: "manifest", attributes: [.init(name: "package", value: .text(Self.notes))],
      children: [
        Element(
          name: "application",
          attributes: [
            .init(
              name: "allowBackup", value: .typed(0x12, allowsBackup ? .max : 0),
              resource: 0x0101_0280),
            .init(
              name: "dataExtractionRules", value: .typed(0x01, 0x7f15_0000), resource: 0x0101_0632),
          ])
      ])
    let table = ResourceTableBuilder.build([
      .init(type: 0x15, values: [0: .text("res/Zz.xml")])
    ])
    let file = Element(name: "data-extraction-rules", children: rules)
    try cli.directory.write(
      BinaryXMLBuilder.build(manifest), at: "package/AndroidManifest.xml")
    try cli.directory.write(table, at: "package/resources.arsc")
    try cli.directory.write(BinaryXMLBuilder.build(file), at: "package/res/Zz.xml")
    try shell("cd package; zip -qrX ../\(name) .; cd ..; rm -r package")
  }

  private static func section(
    _ name: String, _ rule: String, _ path: String
  ) -> BinaryXMLBuilder.Element {
    .init(
      name: name,
      children: [
        .init(
          name: rule,
          attributes: [
            .init(name: "domain", value: .text("file")), .init(name: "path", value: .text(path)),
          ])
      ])
  }

  /// Returns the paths of the files in a backup, after an import.
  private func files(_ backup: String) throws -> [String] {
    _ = try cli.succeed("init from-\(backup) --plain --no-default --quiet")
    _ = try cli.succeed("import android \(backup) --repo from-\(backup) --quiet")
    return try cli.jsonLines("ls latest --recursive --json --repo from-\(backup)")
      .filter { $0["type"] as? String == "file" }
      .compactMap { $0["path"] as? String }
      .filter { !$0.hasSuffix("/_manifest") }.sorted()
  }

  /// Returns the paths of the files in the latest snapshot of a new backup by rules as a policy.
  private func files(byPolicy file: String, to repository: String) throws -> [String] {
    _ = try cli.succeed("init \(repository) --plain --no-default --quiet")
    _ = try cli.succeed(
      "backup --layout android --root phone --repo \(repository) --policy \(file) --quiet")
    return try cli.jsonLines("ls latest --recursive --json --repo \(repository)")
      .filter { $0["type"] as? String == "file" }
      .compactMap { $0["path"] as? String }.sorted()
  }

  /// A backup with rules as its policy contains the same files as an export by the rules.
  @Test(arguments: [
    #"<exclude domain="file" path="drafts"/>"#,
    #"<include domain="file" path="."/><exclude domain="file" path="drafts/one.txt"/>"#,
    #"<include domain="root" path="."/>"#,
    #"<include domain="sharedpref" path="app.xml"/><include domain="root" path="own/[1]*"/>"#,
    #"<include domain="root" path="cache"/><include domain="root" path="files"/>"#
      + #"<include domain="file" path="kept.txt"/>"#,
    #"<include domain="root" path="cache/x"/><include domain="external" path="."/>"#,
    #"<exclude domain="root" path="own"/><include domain="root" path="own/[1]*/a"/>"#
      + #"<include domain="database" path="."/>"#,
  ])
  func aBackupByTheRulesHasWhatAnExportHas(rules: String) throws {
    for path in ["own/[1]*/a", "own/[1]x/b", "databases/d.db", "no_backup/token", "top"] {
      try cli.directory.write("1", at: ByteString("phone/data/data/\(Self.notes)/" + path))
    }
    try cli.directory.write(
      "<full-backup-content>\(rules)</full-backup-content>", at: "rules.xml")
    _ = try cli.succeed(
      "backup --layout android --root phone --repo repo --include ** --quiet")
    _ = try cli.run("export android by-rules.ab --rules rules.xml --repo repo --quiet")
    let found = try files(byPolicy: "rules.xml", to: "by-policy")
    #expect(try found == files("by-rules.ab"))
  }

  /// The rules of a package apply only to its app, and an explanation names them.
  @Test func thePackagesRulesAreAPolicyForItsApp() throws {
    try makePackage(
      "base.apk", [Self.section("cloud-backup", "exclude", "drafts")])
    let data = "apps/\(Self.notes)/data"
    #expect(
      try files(byPolicy: "base.apk", to: "by-policy") == [
        data + "/files/kept.txt", data + "/shared_prefs/app.xml",
        "apps/\(Self.other)/data/files/drafts/a",
      ])
    let explained = try cli.succeed(
      "explain phone/data/data/\(Self.notes)/files/drafts/one.txt --layout android --root phone "
        + "--policy base.apk")
    #expect(explained.contains("Auto Backup excludes it"), "\(explained)")
    #expect(explained.contains("base.apk, byte"), "\(explained)")
    // A position in the policy that is made from the rules is not a position in the file.
    #expect(explained.contains("  base.apk (rules of Auto Backup)\n"), "\(explained)")
    #expect(!explained.contains("base.apk:") && !explained.contains("Backup):"), "\(explained)")
    try cli.directory.write("<full-backup-content><include/>", at: "broken.xml")
    let broken = try cli.run("classify --layout android --root phone --policy broken.xml")
    #expect(broken.code == 13 && broken.errors.contains("broken.xml"), "\(broken.errors)")
  }

  @Test func thePackagesRulesExcludeDataOfItsApp() throws {
    try makePackage(
      "base.apk",
      [
        Self.section("cloud-backup", "exclude", "drafts"),
        Self.section("device-transfer", "include", "drafts/one.txt"),
      ])
    let cloud = try cli.run("export android cloud.ab --rules base.apk --repo repo")
    #expect(cloud.code == 0, "\(cloud.errors)")
    #expect(cloud.errors.contains("note: the rules exclude 3 files (13 B)"), "\(cloud.errors)")
    let data = "apps/\(Self.notes)/data"
    #expect(
      cloud.errors.contains("excluded: \(data)/files/drafts: 2 files (7 B): a rule excludes it"),
      "\(cloud.errors)")
    #expect(
      cloud.errors.contains(
        "excluded: \(data)/cache: 1 file (6 B): Android excludes it from backups to the cloud"),
      "\(cloud.errors)")
    let others = ["cache/y", "files/drafts/a"].map { "apps/\(Self.other)/data/\($0)" }
    #expect(
      try files("cloud.ab") == [data + "/files/kept.txt", data + "/shared_prefs/app.xml"] + others)
    let object = try cli.json(
      "export android moved.ab --rules base.apk --transfer --json --repo repo")
    #expect(object["excluded_files"] as? Int == 4)
    #expect((object["exclusions"] as? [[String: Any]])?.count == 3)
    #expect(try files("moved.ab") == [data + "/files/drafts/one.txt"] + others)
  }

  @Test func anAppThatDisablesBackupsHasNone() throws {
    try makePackage("base.apk", allowsBackup: false, [])
    let line = try cli.run("export android none.ab --rules base.apk --repo repo")
    #expect(
      line.errors.contains("excluded: apps/\(Self.notes)/data: 5 files")
        && line.errors.contains("the app disables backups"), "\(line.errors)")
    #expect(try files("none.ab").allSatisfy { $0.hasPrefix("apps/\(Self.other)/") })
  }

  @Test func rulesOfAFileAreThoseOfAllApps() throws {
    try cli.directory.write(
      "<full-backup-content><exclude domain='file' path='drafts'/></full-backup-content>",
      at: "rules.xml")
    let line = try cli.run("export android all.ab --rules rules.xml --repo repo")
    #expect(line.code == 0 && line.errors.contains("the rules exclude 5 files"), "\(line.errors)")
    let data = "apps/\(Self.notes)/data"
    let all = try files("all.ab")
    #expect(all == [data + "/files/kept.txt", data + "/shared_prefs/app.xml"])
    let piped = try cli.run(
      [],
      under: [
        "bash", "-c",
        #""$0" export android piped.ab --rules <(cat rules.xml) --repo repo --quiet"#,
      ])
    #expect(piped.code == 0 && !piped.errors.contains("excluded"), "\(piped.errors)")
    #expect(try files("piped.ab") == all)
  }

  @Test func dataAboveTheQuotaIsReported() throws {
    var random = Seeded(5)
    try cli.directory.write(
      random.bytes(26 << 20), at: ByteString("phone/data/data/\(Self.notes)/files/large"))
    _ = try cli.succeed("backup --layout android --root phone --repo repo --quiet")
    try cli.directory.write("<full-backup-content/>", at: "rules.xml")
    let line = try cli.run("export android large.ab --rules rules.xml --repo repo --quiet")
    #expect(line.code == 0)
    #expect(
      line.errors.contains(
        "\(Self.notes): 26.0 MiB are more than the 25.0 MiB that Android stores"),
      "\(line.errors)")
  }

  @Test func wrongRulesAreExplained() throws {
    try cli.directory.write("<manifest/>", at: "other.xml")
    let other = try cli.run("export android a.ab --rules other.xml --repo repo")
    #expect(other.code == 13 && other.errors.contains("'manifest'"), "\(other)")
    let missing = try cli.run("export android a.ab --rules missing.xml --repo repo")
    #expect(missing.code == 1 && missing.errors.contains("missing.xml"), "\(missing)")
    let alone = try cli.run("export android a.ab --transfer --repo repo")
    #expect(alone.code == 2 && alone.errors.contains("'--transfer' requires '--rules'"), "\(alone)")
    try makePackage("base.apk", [])
    _ = try cli.succeed(
      "backup --app \(Self.other) --layout android --root phone --repo repo --quiet")
    let last = try #require(try cli.snapshots().last)
    let none = try cli.run(
      "export android \(last.prefix(12)) b.ab --rules base.apk --repo repo")
    #expect(none.errors.contains("has no app '\(Self.notes)'"), "\(none)")
    #expect(try !cli.isThere("b.ab"))
  }

  /// A rule that Android ignores is reported with its line, by an export and by a policy.
  @Test func rulesThatAndroidIgnoresAreReported() throws {
    try cli.directory.write(
      """
      <full-backup-content>
        <exclude domain="fil" path="drafts"/>
        <include domain="file" path="/kept.txt" requireFlags="clientSideEncryption|other"/>
        <exclude domain="file" path="../x"/>
      </full-backup-content>
      """, at: "rules.xml")
    let lines = [
      #"rules.xml, line 2: <exclude domain="fil" path="drafts"/>: the domain 'fil' is unknown: "#
        + "Android ignores the rule",
      "the path is absolute: Android ignores the slash and applies the rule below the domain",
      "the flags 'other' are unknown",
      "rules.xml, line 4: <exclude domain=\"file\" path=\"../x\"/>: the path contains '..'",
    ]
    let export = try cli.run("export android x.ab --rules rules.xml --repo repo")
    #expect(export.code == 0)
    for line in lines { #expect(export.errors.contains(line), "\(export.errors)") }
    let json = try cli.run("export android y.ab --rules rules.xml --repo repo --json")
    let warnings = json.errors.split(separator: "\n")
      .filter { $0.hasPrefix(#"{"warning":"rules.xml"#) }
    #expect(warnings.count == 4, "\(json.errors)")
    let policy = try cli.run("classify --layout android --root phone --policy rules.xml --quiet")
    for line in lines { #expect(policy.errors.contains(line), "\(policy.errors)") }
  }
}
