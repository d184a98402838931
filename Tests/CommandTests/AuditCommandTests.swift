import Foundation
import SystemIO
import TestSupport
import Testing

/// `audit`, `exclude` and `include` on the sample device.
struct AuditCommandTests {
  private static func sample() throws -> CommandLine {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    return cli
  }

  /// The findings in the output of `audit --json`, and the summary.
  private static func findings(
    _ cli: CommandLine, _ options: String = ""
  ) throws -> (findings: [[String: Any]], summary: [String: Any]) {
    var lines = try cli.jsonLines("audit --root device --json \(options)")
    let summary = try #require(lines.popLast()?["summary"] as? [String: Any])
    return (lines, summary)
  }

  private static func paths(_ findings: [[String: Any]], of rule: String) -> [String] {
    findings.filter { $0["rule"] as? String == rule }.compactMap { $0.path()?.description }
  }

  @Test func sampleHasTheExpectedFindings() throws {
    let (findings, summary) = try Self.findings(Self.sample())
    let data = "apps/org.example.darkroom/data"
    #expect(
      Self.paths(findings, of: "user-data-marked") == [
        data + "/Documents/Originals/IMG_0001.DNG"
      ])
    #expect(Self.paths(findings, of: "unpromised-directory") == [data + "/Darkroom Exports"])
    #expect(
      Self.paths(findings, of: "launch-interface") == [
        "apps/org.example.notebook/bundle/Notebook.app/PlugIns/Share.appex/Info.plist"
      ])
    for level in ["note", "warning", "error"] {
      #expect(
        findings.filter { $0["level"] as? String == level }.count == summary[level] as? Int)
    }
    // Fresh files are not leftovers, and small caches are no reason for a refusal.
    for rule in ["inbox-leftover", "temporary-leftover", "recreatable-data", "churn"] {
      #expect(Self.paths(findings, of: rule).isEmpty, "\(rule)")
    }
  }

  @Test func textListsTheSameFindings() throws {
    let cli = try Self.sample()
    let (findings, _) = try Self.findings(cli)
    let text = try cli.succeed("audit --root device --all")
    for finding in findings {
      let (rule, path) = (finding["rule"] as? String ?? "", finding.path()?.description ?? "")
      #expect(text.contains(" \(rule): ") && text.contains("  \(path)"), "\(rule) \(path)")
      #expect(text.contains(finding["command"] as? String ?? "none"), "\(rule)")
    }
    let last = try #require(text.split(separator: "\n").last)
    #expect(last.contains("error") && last.contains("warning"))
  }

  @Test func failOnALevelEndsWithFive() throws {
    let cli = try Self.sample()
    for (level, code) in [("note", 5), ("warning", 5), ("error", 5)] as [(String, Int32)] {
      #expect(try cli.run("audit --root device --quiet --fail-on \(level)").code == code)
    }
    #expect(try cli.run("audit --root device --fail-on fatal").code == 2)
    _ = try Directory.make(path: cli.directory.path("empty"))
    #expect(
      try cli.succeed("audit --root empty --layout folder --quiet --fail-on note")
        == "no findings\n")
  }

  /// The output in either form can be a baseline: only findings that it does not contain are
  /// reported.
  @Test(arguments: ["json", "sarif"]) func knownFindingsStaySilent(format: String) throws {
    let cli = try Self.sample()
    let count = try Self.findings(cli).findings.count
    let known = try cli.succeed("audit --root device --format \(format)")
    try cli.directory.write(known, at: "known")
    let (none, summary) = try Self.findings(cli, "--baseline known --fail-on note")
    #expect(none.isEmpty && summary["known"] as? Int == count)
    _ = try cli.succeed("exclude notebook/Documents/Notes --root device")
    let (new, _) = try Self.findings(cli, "--baseline known")
    #expect(Self.paths(new, of: "user-data-marked").count == 1)
    let text = try cli.run("audit --root device --baseline known --fail-on warning")
    #expect(text.code == 5 && text.output.contains("\(count) known findings are not shown"))
  }

  @Test func wrongBaselineIsRefused() throws {
    let cli = try Self.sample()
    try cli.directory.write("no baseline", at: "wrong")
    let outcome = try cli.run("audit --root device --baseline wrong")
    #expect(outcome.code == 1 && outcome.output.isEmpty)
    #expect(
      outcome.errors.contains(
        "cannot use the baseline 'wrong': line 1 is not a JSON object of an audit"))
    #expect(try cli.run("audit --root device --baseline missing").code == 1)
    #expect(try cli.run("audit --root device --baseline device").code == 1)
  }

  // MARK: SARIF

  /// Every location in the log leads to an entry of the device.
  @Test func locationsExist() throws {
    let cli = try Self.sample()
    let log = try cli.json("audit --root device --format sarif")
    let run = try #require((log["runs"] as? [[String: Any]])?.first)
    let results = try #require(run["results"] as? [[String: Any]])
    #expect(results.count == (try Self.findings(cli).findings.count))
    let bases = try #require(run["originalUriBaseIds"] as? [String: [String: String]])
    let root = try #require(bases["DEVICE"]?["uri"].flatMap { URL(string: $0) })
    for result in results {
      let location = (result["locations"] as? [[String: Any]])?.first?["physicalLocation"]
      let artifact = (location as? [String: Any])?["artifactLocation"] as? [String: Any]
      let uri = try #require(artifact?["uri"] as? String)
      let url = try #require(URL(string: uri, relativeTo: root))
      #expect(FileManager.default.fileExists(atPath: url.path), "\(uri)")
    }
  }

  // MARK: Snapshots

  /// Returns the reasons why rules were not applied, by rule.
  private static func skipped(_ summary: [String: Any]) -> [String: String] {
    let rules = summary["not_applied"] as? [[String: Any]] ?? []
    return Dictionary(
      rules.map { ($0["rule"] as? String ?? "", $0["reason"] as? String ?? "") }
    ) { first, _ in first }
  }

  /// Snapshots of a single day show nothing about daily changes, however many there are, which the
  /// output reports.
  @Test func snapshotsOfOneDayAreTooFew() throws {
    let cli = try Self.sample()
    _ = try cli.succeed("init repo --plain --no-default")
    let real = try #require(
      try cli.jsonLines("classify --root device --json notebook/Library").first?
        .path("real_path"))
    let file = real.relative(to: cli.directory.path("")).appending("state.bin")
    for number in 0..<4 {
      try cli.directory.write([UInt8](repeating: UInt8(number), count: 600_000), at: file)
      _ = try cli.succeed("backup --root device --repo repo --quiet")
    }
    let (findings, summary) = try Self.findings(cli, "--repo repo")
    let skipped = Self.skipped(summary)
    #expect(Self.paths(findings, of: "churn").isEmpty)
    #expect(Set(skipped.keys) == ["churn", "flat-file"])
    #expect(
      skipped.values.allSatisfy {
        $0.hasPrefix("snapshots of the device from 4 days are needed")
      })
    // Without a repository, nothing is reported.
    let (_, other) = try Self.findings(cli)
    #expect(Self.skipped(other).count == 2)
    #expect(try cli.run("audit --root device --repo nowhere").code == 10)
  }

  /// A bundle is compared with the last snapshot: an edited file of the same size, one that is
  /// gone, and a new one.
  @Test func bundleThatChangedSinceTheLastSnapshotIsFound() throws {
    let cli = try Self.sample()
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    let bundle = try #require(
      try cli.jsonLines("classify --root device --json apps/org.example.reader/bundle").first?
        .path("real_path"))
    let app = bundle.relative(to: cli.directory.path("")).appending("Reader.app")
    func details() throws -> [String] {
      try Self.findings(cli, "--repo repo").findings
        .filter { $0["rule"] as? String == "bundle-changed" }
        .compactMap { $0["detail"] as? String }
    }
    #expect(try details().isEmpty)
    let same = try #require(
      FileManager.default.contents(atPath: cli.directory.path(app.appending("PkgInfo")).description)
    )
    // A different time alone is not a difference.
    try cli.directory.write(Array(same), at: app.appending("PkgInfo"))
    #expect(try details().isEmpty)
    try cli.directory.write(Array(same.reversed()), at: app.appending("PkgInfo"))
    #expect(try details() == ["1 entry differs from the last snapshot of the same version"])
    try cli.directory.write("code", at: app.appending("added.dylib"))
    #expect(try details() == ["2 entries differ from the last snapshot of the same version"])
  }

  @Test func bundleThatChangesBetweenSnapshotsIsFound() throws {
    let cli = try Self.sample()
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    let bundle = try #require(
      try cli.jsonLines("classify --root device --json apps/org.example.reader/bundle").first?
        .path("real_path"))
    let file = bundle.relative(to: cli.directory.path("")).appending("Reader.app/added.dylib")
    try cli.directory.write("code", at: file)
    _ = try cli.succeed("backup --root device --repo repo --quiet --verify-bundles")
    let (findings, _) = try Self.findings(cli, "--repo repo")
    #expect(
      Self.paths(findings, of: "bundle-changed") == ["apps/org.example.reader/bundle"])
  }

  // MARK: exclude and include

  @Test func excludeAndIncludeAreReverse() throws {
    let cli = try Self.sample()
    func stored(_ path: String) throws -> [String] {
      try cli.jsonLines("classify --root device --json \(path)").compactMap {
        $0["stored"] as? String
      }
    }
    let path = "notebook/Documents/Drafts"
    #expect(try stored(path).allSatisfy { $0 == "kept" })
    let set = try cli.run("exclude \(path) --root device")
    #expect(set.code == 0)
    #expect(
      set.output
        == "apps/org.example.notebook/data/Documents/Drafts: marked as excluded-from-backup\n")
    #expect(set.errors.contains("it is user data, which no backup will contain"))
    #expect(try stored(path).allSatisfy { $0 == "left-out" })
    #expect(
      try cli.succeed("exclude \(path) --root device --quiet").isEmpty)
    #expect(
      try cli.succeed("include \(path) --root device --dry-run")
        == "apps/org.example.notebook/data/Documents/Drafts: would remove the mark "
        + "excluded-from-backup\n")
    let answer = try cli.json("include \(path) --root device --json")
    #expect(answer["marks"] as? [String] == ["excluded-from-backup"])
    #expect(answer["stored"] as? Bool == true)
    #expect(try stored(path).allSatisfy { $0 == "kept" })
  }

  @Test func markAboveIsReported() throws {
    let cli = try Self.sample()
    let file = "darkroom/Library/Application Support/Models/Labels.txt"
    let outcome = try cli.run(["include", file, "--root", "device"])
    #expect(outcome.code == 0)
    #expect(outcome.errors.contains("Support/Models' still excludes it"))
    let cache = try cli.run("include notebook/Library/Caches --root device")
    #expect(cache.errors.contains("a rule excludes it; 'sandboxctl explain' shows the rule"))
  }

  /// If one path has a mistake, none is changed; if one fails, the others are still changed.
  @Test func severalPathsAreChangedOneByOne() throws {
    let cli = try Self.sample()
    #expect(
      try cli.run("exclude notebook/Documents/Drafts /elsewhere --root device").code == 1)
    let findings = try Self.findings(cli).findings
    #expect(!Self.paths(findings, of: "user-data-marked").contains { $0.hasSuffix("Drafts") })
    let outcome = try cli.run(
      "exclude notebook/Documents/none notebook/Documents/Drafts --root device")
    #expect(outcome.code == 3 && outcome.errors.contains("Documents/none"))
    #expect(outcome.output.contains("Drafts: marked as"))
  }

  /// A mark for one destination does not affect backups to other destinations.
  @Test func aMarkForADestinationNamesIt() throws {
    let cli = try Self.sample()
    for (destination, backup) in [
      ("cloud", "backup to the cloud"), ("unencrypted", "unencrypted backup"),
    ] {
      let outcome = try cli.run(
        "exclude notebook/Documents/Drafts --root device --for \(destination)")
      #expect(outcome.code == 0)
      #expect(outcome.errors.contains("user data, which no \(backup) will"), "\(outcome.errors)")
      let entries = try cli.jsonLines("classify --root device --json notebook/Documents/Drafts")
      #expect(!entries.isEmpty && entries.allSatisfy { $0["stored"] as? String == "kept" })
    }
  }

  @Test func unknownDestinationIsAMistake() throws {
    let cli = try Self.sample()
    let outcome = try cli.run("exclude notebook/Documents --root device --for moon")
    #expect(outcome.code == 2 && outcome.errors.contains("there is no destination 'moon'"))
  }
}
