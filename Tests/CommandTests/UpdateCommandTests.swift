import Foundation
import SystemIO
import TestSupport
import Testing

/// `install`, `update` and `rollback` as people use them.
@Suite struct UpdateCommandTests {
  private let rig: AppUpdateFixture
  init() throws { rig = try AppUpdateFixture() }

  @Test func anUpdateKeepsTheDataAndItsInodes() throws {
    let data = try rig.data()
    let before = try rig.records("apps/org.example.notebook/data")
    let plan = try rig.cli.json("update New.app --root device --dry-run --json")
    #expect(plan["operation"] as? String == "update")
    #expect((plan["refusals"] as? [Any])?.isEmpty == true)
    let bound = try #require(plan["snapshot_at_most"] as? [String: Any])
    #expect(bound["files"] as? Int ?? 0 > 10 && bound["bytes"] as? Int ?? 0 > 1000, "\(bound)")
    let told = try rig.cli.succeed("update New.app --root device --dry-run")
    #expect(told.contains("\nsnapshot first: up to "), "\(told)")
    #expect(try rig.version() == "3.2", "a dry run changes nothing")
    let report = try rig.cli.json("update New.app --root device --repo repo --json")
    #expect(try rig.version() == "9.0")
    #expect(try rig.data() == data)
    let after = try rig.records("apps/org.example.notebook/data")
    #expect(Set(before.keys) == Set(after.keys))
    #expect(before["Documents/Latest.md"]?.target != after["Documents/Latest.md"]?.target)
    #expect((report["not_in_snapshot"] as? [[String: Any]])?.isEmpty == false)
    let left = try #require(report["not_in_snapshot_by_class"] as? [String: Any])
    #expect(left["cache"] != nil && left["temporary"] != nil)
    #expect((report["carried"] as? [String: Any])?["user-data"] != nil)
    let saved = try #require(report["saved"] as? String)
    #expect(try rig.cli.snapshots().contains(saved))
    // The same package again is no earlier version, and moves everything once more.
    _ = try rig.cli.succeed("update New.app --root device --repo repo --quiet")
    #expect(try rig.data() == data)
  }

  @Test func thenARollbackBringsTheOldVersionBack() throws {
    let data = try rig.data()
    _ = try rig.cli.succeed("update New.app --root device --repo repo --quiet")
    let report = try rig.cli.json("rollback notebook --root device --repo repo --json")
    #expect(try rig.version() == "3.2")
    #expect(try rig.data() == data)
    #expect((report["newer"] as? [Any])?.isEmpty == true)
    let reasons = try rig.cli.jsonLines("snapshots --json --repo repo").map {
      $0["reason"] as? String
    }
    #expect(reasons == ["pre-update", "pre-rollback"])
  }

  @Test func whatIsRefusedChangesNothing() throws {
    try rig.makePackage("Old.app", version: "1.0", build: "1")
    let before = try rig.data()
    for (line, code, words) in [
      ("update New.app --repo repo", 2, "--root"),
      ("update New.app --root device", 1, "--no-snapshot"),
      ("update Old.app --root device --repo repo", 1, "--allow-downgrade"),
      ("install New.app --root device --repo repo", 1, "sandboxctl update"),
      ("update nothing.app --root device --repo repo", 1, "nothing.app"),
      ("rollback notebook --root device --repo repo", 1, "before an update"),
      ("rollback nobody --root device --repo repo", 1, "no such app"),
    ] {
      // 'init' has written the repository into the configuration.
      let outcome = try rig.cli.run(
        line.split(separator: " ").map(String.init),
        environment: ["XDG_CONFIG_HOME": rig.cli.directory.string + "/none"])
      #expect(outcome.code == Int32(code), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains(words), "\(line): \(outcome.errors)")
    }
    #expect(try rig.version() == "3.2")
    #expect(try rig.data() == before)
  }

  /// A dry run tells what would be refused, too, and its exit status.
  @Test func aDryRunOfWhatIsRefusedFails() throws {
    try rig.makePackage("Old.app", version: "1.0", build: "1")
    let outcome = try rig.cli.run("update Old.app --root device --dry-run --json")
    #expect(outcome.code == 1)
    let plan = try CommandLine.object(outcome.output)
    let codes = (plan["refusals"] as? [[String: Any]])?.map { $0["code"] as? String }
    #expect(codes == ["downgrade"])
  }

  /// Data that comes before its app waits, is listed, and becomes the app's own.
  @Test func restoredDataWaitsForItsApp() throws {
    _ = try rig.cli.succeed("backup --root device --repo repo --quiet")
    let data = try rig.data().filter { $0.key.isWithin("apps/org.example.notebook/data/Documents") }
    for container in try rig.cli.containers(of: "device")
    where container.path.isWithin("apps/org.example.notebook") {
      try Directory.open(path: container.realPath.directoryPath)
        .removeTree(container.realPath.lastComponent ?? "")
    }
    _ = try rig.cli.succeed(
      "restore latest:apps/org.example.notebook/data --in-place --repo repo --quiet")
    let waiting = try rig.cli.json("apps --root device --json")["safe_harbors"] as? [[String: Any]]
    #expect(waiting?.count == 1)
    _ = try rig.cli.succeed("install New.app --root device --repo repo --quiet")
    let left = try rig.cli.json("apps --root device --json")["safe_harbors"] as? [[String: Any]]
    #expect(left?.isEmpty ?? true)
    #expect(try rig.version() == "9.0")
    let found = try rig.data().filter {
      $0.key.isWithin("apps/org.example.notebook/data/Documents")
    }
    #expect(found == data)
  }

  /// After an update a backup opens the new bundle's files and the containers' metadata, and no file
  /// that moved.
  @Test func theNextBackupReadsNothingThatMoved() throws {
    let older = try Program.run(
      "find", ["device", "-exec", "touch", "-h", "-d", "2024-01-01", "{}", "+"],
      in: rig.cli.directory.url)
    try #require(older.code == 0)
    _ = try rig.cli.succeed("backup --root device --repo repo --quiet")
    let again = try rig.cli.json("backup --root device --repo repo --json")
    let before = try #require(again["opened"] as? Int)
    let report = try rig.cli.json("update New.app --root device --repo repo --json")
    let written = try #require(report["written_entries"] as? Int)
    let next = try rig.cli.json("backup --root device --repo repo --json")
    let opened = try #require(next["opened"] as? Int)
    #expect(opened <= before + written + 3, "\(opened) after \(before) and \(written)")
  }
}
