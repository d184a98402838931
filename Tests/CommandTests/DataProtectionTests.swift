import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Classes of data protection in commands, and `backup --locked` (docs/data-protection.md).
struct DataProtectionTests {
  private let cli: CommandLine
  private static let notebook = "apps/org.example.notebook/data"
  private static let backup = "backup --root device --repo repo"

  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
  }

  /// Writes a file in an app's documents, with a class of data protection.
  private func write(_ text: String, _ name: ByteString, _ digit: String?) throws {
    let object = try #require(
      try cli.jsonLines("classify --root device --json \(Self.notebook)/Documents").first)
    let real = try #require(object.path("real_path"))
    let path = real.isAbsolute ? real : cli.directory.path(real)
    let documents = try Directory.open(path: path)
    if try documents.statusIfPresent(name) != nil { try documents.remove(name) }
    try documents.create(name).write(Array(text.utf8))
    guard let digit else { return }
    try documents.attributes(of: name).set(ProtectionClass.attribute, to: Array(digit.utf8))
  }

  @Test func aLockedBackupNamesWhatWaitsAndTheNextTakesIt() throws {
    try write("one", "secret", "1")
    try write("one", "open", "4")
    _ = try cli.succeed(Self.backup + " --quiet")
    try write("three", "secret", "1")
    try write("three", "open", "4")
    try write("fresh text", "fresh", "2")
    let planned = try cli.run(Self.backup + " --locked --dry-run")
    #expect(planned.code == 0 && planned.errors.contains("2 files (15 B) cannot be read"))
    let locked = try cli.run(Self.backup + " --locked --quiet")
    #expect(locked.code == 3 && locked.output.isEmpty)
    let head =
      "sandboxctl: warning: 2 files (15 B) cannot be read while the device is locked; the snapshot "
      + "has an earlier version of 1\n"
    #expect(locked.errors.hasPrefix(head), "\(locked.errors)")
    let lines = locked.errors.split(separator: "\n").map { String($0) }
    #expect(lines.count == 3)
    #expect(lines.dropFirst().allSatisfy { $0.contains("warning: waiting: apps/org.example.") })
    #expect(locked.errors.contains("complete-unless-open; there is no earlier version, 10 B"))
    func stored(_ name: String) throws -> String {
      try cli.succeed("dump latest:\(Self.notebook)/Documents/\(name) --repo repo")
    }
    #expect(try stored("secret") == "one" && stored("open") == "three")
    #expect(try cli.run("dump latest:\(Self.notebook)/Documents/fresh --repo repo").code != 0)
    let again = try cli.run(Self.backup + " --locked --json")
    #expect(again.code == 3)
    let report = try CommandLine.object(again.output)
    let waiting = report["waiting"] as? [[String: Any]] ?? []
    #expect(waiting.map { $0["bytes"] as? Int } == [10, 5])
    #expect(waiting.map { $0["earlier_version"] as? Bool } == [false, true])
    let next = try cli.run(Self.backup + " --quiet")
    #expect(next.code == 0 && next.errors.isEmpty)
    #expect(try stored("secret") == "three" && stored("fresh") == "fresh text")
  }

  @Test func lsAndClassifyAndExplainShowTheClass() throws {
    try write("one", "secret", "1")
    let path = "\(Self.notebook)/Documents/secret"
    _ = try cli.succeed(Self.backup + " --quiet")
    let long = try cli.succeed("ls latest:\(Self.notebook)/Documents --long --repo repo")
    #expect(long.contains("/secret  protection complete\n"), "\(long)")
    let listed = try cli.jsonLines("ls latest:\(Self.notebook)/Documents --json --repo repo")
    #expect(listed.compactMap { $0["protection"] as? String } == ["complete"])
    #expect(try cli.succeed("classify --root device \(path)").hasSuffix("  protection complete\n"))
    let line = try #require(try cli.jsonLines("classify --root device --json \(path)").first)
    #expect(line["protection"] as? String == "complete")
    #expect(line["protection_by"] as? String == "metadata")
    let explained = try cli.succeed("explain --root device \(path)")
    #expect(explained.contains("\nprotection complete, by the file's attribute user.sandboxctl."))
  }

  @Test func aPolicyStatesTheClassOfAnApp() throws {
    try cli.directory.write(
      """
      overlay: all
      schema: 1
      apps:
        org.example.notebook:
          rules:
            - {id: notes, match: Documents/**, protection: complete}
      """, at: "site.yaml")
    try write("one", "plain", nil)
    let options = "--root device --policy site.yaml"
    let path = "\(Self.notebook)/Documents/plain"
    let explained = try cli.json("explain \(options) --json \(path)")
    #expect(explained["protection"] as? String == "complete")
    #expect(explained["protection_by"] as? String == "policy")
    let run = "backup \(options) --repo repo --locked --quiet --all"
    let app = try cli.run(run + " --app notebook --when unmetered")
    #expect(app.code == 3 && app.errors.contains("/plain"))
    #expect(try cli.run(run + " --app reader").code == 0)
    let usual = try cli.json("explain --root device --json \(path)")
    #expect(usual["protection"] as? String == "until-first-unlock")
  }

  @Test func aScheduleMakesLockedBackups() throws {
    let units = try cli.succeed("schedule install --systemd --dry-run -- --locked")
    #expect(units.contains("--scheduled --locked\n"), "\(units)")
    let line = try cli.succeed("schedule install --cron --dry-run -- --locked")
    #expect(line.contains("--scheduled --locked"), "\(line)")
  }
}
