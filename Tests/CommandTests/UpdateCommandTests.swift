import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// `install`, `update` and `rollback` on the command line.
struct UpdateCommandTests {
  private let fixture: AppUpdateFixture
  init() throws { fixture = try AppUpdateFixture() }

  @Test func updateKeepsTheDataAndItsInodes() throws {
    let data = try fixture.data()
    let before = try fixture.records("apps/org.example.notebook/data")
    let plan = try fixture.cli.json("update New.app --root device --dry-run --json")
    #expect(plan["operation"] as? String == "update")
    #expect((plan["refusals"] as? [Any])?.isEmpty == true)
    let bound = try #require(plan["snapshot_at_most"] as? [String: Any])
    #expect(bound["files"] as? Int ?? 0 > 10 && bound["bytes"] as? Int ?? 0 > 1000, "\(bound)")
    let reported = try fixture.cli.succeed("update New.app --root device --dry-run")
    #expect(reported.contains("\nsnapshot first: up to "), "\(reported)")
    #expect(try fixture.version() == "3.2", "a dry run changes nothing")
    let report = try fixture.cli.json("update New.app --root device --repo repo --json")
    #expect(try fixture.version() == "9.0")
    #expect(try fixture.data() == data)
    let after = try fixture.records("apps/org.example.notebook/data")
    #expect(Set(before.keys) == Set(after.keys))
    #expect(before["Documents/Latest.md"]?.target != after["Documents/Latest.md"]?.target)
    #expect((report["not_in_snapshot"] as? [[String: Any]])?.isEmpty == false)
    let left = try #require(report["not_in_snapshot_by_class"] as? [String: Any])
    #expect(left["cache"] != nil && left["temporary"] != nil)
    #expect((report["carried"] as? [String: Any])?["user-data"] != nil)
    let saved = try #require(report["saved"] as? String)
    #expect(try fixture.cli.snapshots().contains(saved))
    // The same package is not an earlier version, and is installed again.
    _ = try fixture.cli.succeed("update New.app --root device --repo repo --quiet")
    #expect(try fixture.data() == data)
  }

  @Test func rollbackRestoresTheOldVersion() throws {
    let data = try fixture.data()
    _ = try fixture.cli.succeed("update New.app --root device --repo repo --quiet")
    let report = try fixture.cli.json("rollback notebook --root device --repo repo --json")
    #expect(try fixture.version() == "3.2")
    #expect(try fixture.data() == data)
    #expect((report["newer"] as? [Any])?.isEmpty == true)
    let reasons = try fixture.cli.jsonLines("snapshots --json --repo repo").map {
      $0["reason"] as? String
    }
    #expect(reasons == ["pre-update", "pre-rollback"])
  }

  /// The update's policy kept drafts in a cache. The rollback's policy does not restore them.
  @Test func rollbackReportsDataThatItsPolicyDoesNotRestore() throws {
    let cli = fixture.cli
    let container = try #require(
      try fixture.device().containers.first {
        $0.logicalPrefix == "apps/org.example.notebook/data"
      })
    let data = ByteString(container.absolutePath.bytes.dropFirst(cli.directory.path.count + 1))
    try cli.directory.write("draft", at: data.appending("Library/Caches/drafts/one"))
    let policy = """
      overlay: [coresimulator]
      schema: 1
      rules:
        - {id: drafts, in: [data], match: "Library/Caches/drafts/**", class: user-data}

      """
    try cli.directory.write(policy, at: "keep.yaml")
    let update = "update New.app --root device --repo repo --policy ./keep.yaml"
    #expect(try omittedFiles("\(update) --dry-run") == 0)
    _ = try cli.succeed("\(update) --quiet")
    let rollback = "rollback notebook --root device --repo repo"
    #expect(try omittedFiles("\(rollback) --policy ./keep.yaml --dry-run") == 0)
    #expect(try omittedFiles("\(rollback) --dry-run") == 1)
    for options in ["--dry-run", ""] {
      let outcome = try cli.run("\(rollback) \(options)")
      #expect(outcome.code == 0, "\(outcome.errors)")
      let note = "the policy 'ios' does not restore 5 B in 1 file of the snapshot: "
      #expect(outcome.errors.contains(note), "\(outcome.errors)")
    }
  }

  /// The number of files in the member `omitted` of a command's report.
  private func omittedFiles(_ line: String) throws -> Int? {
    (try fixture.cli.json("\(line) --json")["omitted"] as? [String: Any])?["files"] as? Int
  }

  @Test func refusedCommandsChangeNothing() throws {
    try fixture.makePackage("Old.app", version: "1.0", build: "1")
    let before = try fixture.data()
    for (line, code, words) in [
      ("update New.app --repo repo", 2, "--root"),
      ("update New.app --root device", 1, "--no-snapshot"),
      ("update Old.app --root device --repo repo", 1, "--allow-downgrade"),
      ("install New.app --root device --repo repo", 1, "sandboxctl update"),
      ("update nothing.app --root device --repo repo", 1, "nothing.app"),
      ("rollback notebook --root device --repo repo", 1, "before an update"),
      ("rollback nobody --root device --repo repo", 1, "no such app"),
    ] {
      // `init` has written the repository into the configuration.
      let outcome = try fixture.cli.run(
        line.split(separator: " ").map(String.init),
        environment: ["XDG_CONFIG_HOME": fixture.cli.directory.string + "/none"])
      #expect(outcome.code == Int32(code), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains(words), "\(line): \(outcome.errors)")
    }
    #expect(try fixture.version() == "3.2")
    #expect(try fixture.data() == before)
  }

  /// A dry run also reports a refusal and returns its exit status.
  @Test func dryRunOfARefusedCommandFails() throws {
    try fixture.makePackage("Old.app", version: "1.0", build: "1")
    let outcome = try fixture.cli.run("update Old.app --root device --dry-run --json")
    #expect(outcome.code == 1)
    let plan = try CommandLine.object(outcome.output)
    let codes = (plan["refusals"] as? [[String: Any]])?.map { $0["code"] as? String }
    #expect(codes == ["downgrade"])
  }

  /// Data restored before its app waits, is listed, and then becomes the app's data.
  @Test func restoredDataWaitsForItsApp() throws {
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    let data = try fixture.data().filter {
      $0.key.isWithin("apps/org.example.notebook/data/Documents")
    }
    for container in try fixture.cli.containers(of: "device")
    where container.path.isWithin("apps/org.example.notebook") {
      try Directory.open(path: container.realPath.directoryPath)
        .removeTree(container.realPath.lastComponent ?? "")
    }
    _ = try fixture.cli.succeed(
      "restore latest:apps/org.example.notebook/data --in-place --repo repo --quiet")
    let waiting =
      try fixture.cli.json("apps --root device --json")["safe_harbors"] as? [[String: Any]]
    #expect(waiting?.count == 1)
    _ = try fixture.cli.succeed("install New.app --root device --repo repo --quiet")
    let left = try fixture.cli.json("apps --root device --json")["safe_harbors"] as? [[String: Any]]
    #expect(left?.isEmpty ?? true)
    #expect(try fixture.version() == "9.0")
    let found = try fixture.data().filter {
      $0.key.isWithin("apps/org.example.notebook/data/Documents")
    }
    #expect(found == data)
  }

  /// After an update a backup opens the files of the new bundle and the metadata of the containers,
  /// and no moved file.
  @Test func nextBackupReadsNoMovedFile() throws {
    let older = try Program.run(
      "find", ["device", "-exec", "touch", "-h", "-d", "2024-01-01", "{}", "+"],
      in: fixture.cli.directory.url)
    try #require(older.code == 0)
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    let again = try fixture.cli.json("backup --root device --repo repo --json")
    let before = try #require(again["opened"] as? Int)
    let report = try fixture.cli.json("update New.app --root device --repo repo --json")
    let written = try #require(report["written_entries"] as? Int)
    let next = try fixture.cli.json("backup --root device --repo repo --json")
    let opened = try #require(next["opened"] as? Int)
    #expect(opened <= before + written + 3, "\(opened) after \(before) and \(written)")
  }

  /// Flatpak and snapd update apps themselves, so the commands change nothing and save nothing.
  @Test(arguments: ["update", "rollback"])
  func operationsOfThePlatformNeedNoRepository(operation: String) throws {
    let cli = fixture.cli
    try cli.directory.write("x", at: "other/.var/app/org.example.Paint/data/x")
    let output = try cli.succeed(
      "\(operation) org.example.Paint --root other/.var/app --layout flatpak --repo missing")
    #expect(output.contains("run: flatpak update"), "\(output)")
  }
}
