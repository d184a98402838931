import Foundation
import SystemIO
import TestSupport
import Testing

/// Backups and restores of directories and of the sample device by the built program.
struct BackupTests {
  @Test func restoredDirectoryEqualsTheSource() throws {
    let cli = try CommandLine()
    try OddTree.make(in: cli.directory, at: "tree")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo")
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    #expect(try OddTree.listing(cli.directory, "back") == OddTree.listing(cli.directory, "tree"))
    #expect(try OddTree.listing(cli.directory, "tree").count > 30)
  }

  @Test func storedContentIsNotStoredAgain() throws {
    let cli = try CommandLine()
    try cli.directory.write([UInt8](repeating: 7, count: 3_000_000), at: "tree/one")
    try cli.directory.write([UInt8](repeating: 7, count: 3_000_000), at: "tree/two")
    _ = try cli.succeed("init repo --plain")
    let first = try cli.json("backup --layout folder --root tree --repo repo --json")
    let packs = try cli.packs()
    let second = try cli.json("backup --layout folder --root tree --repo repo --json")
    #expect(try #require(first["new_blobs"] as? Int) > 0)
    #expect(second["new_blobs"] as? Int == 0)
    #expect(second["stored_bytes"] as? Int == 0)
    #expect(try cli.packs() == packs)
    #expect(second["parent"] as? String == first["snapshot"] as? String)
  }

  @Test func eachPackIsAnOrdinaryArchive() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    try OddTree.make(in: cli.directory, at: "tree")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo")
    let packs = try cli.packs()
    #expect(packs.count >= 4)
    for pack in packs { try Archive.check(pack) }
  }

  @Test func sampleDeviceIsBackedUpByPolicyAndRestored() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo")
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "device", back: "back")
  }

  @Test func dryRunStoresNothing() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    let plan = try cli.json("backup --root device --repo repo --dry-run --json")
    #expect((plan["keeps"] as? [String: Any])?["files"] as? Int ?? 0 > 10)
    #expect(try cli.packs().isEmpty)
    #expect(try cli.succeed("snapshots --repo repo").isEmpty)
  }

  @Test func unreadableFileIsNamedAndTheRestIsStored() throws {
    let cli = try CommandLine()
    try cli.directory.write("secret", at: "tree/closed")
    try cli.directory.write("open", at: "tree/open")
    try cli.directory.write("below", at: "tree/locked/below")
    _ = try Program.run("chmod", ["000", cli.directory.string + "/tree/closed"])
    _ = try Program.run("chmod", ["000", cli.directory.string + "/tree/locked"])
    defer { cli.open() }
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    #expect(try cli.runAsNobody("init repo --plain").code == 0)
    let outcome = try cli.runAsNobody("backup --layout folder --root tree --repo repo")
    #expect(outcome.code == 3)
    #expect(
      outcome.errors.contains("closed (\(cli.directory.path("tree/closed"))): permission denied"))
    #expect(
      outcome.errors.contains("locked (\(cli.directory.path("tree/locked"))): permission denied"))
    let listed = try cli.runAsNobody("ls latest:folders/tree --repo repo").output
    #expect(listed.contains("open"))
    #expect(!listed.contains("closed"))
  }

  @Test func repositoryIsExcludedFromItsBackup() throws {
    let cli = try CommandLine()
    try cli.directory.write("kept", at: "tree/kept")
    _ = try cli.succeed("init tree/inner/repo --plain")
    _ = try cli.succeed("init tree/other --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo tree/inner/repo")
    let listed = try cli.succeed("ls latest:folders/tree --recursive --repo tree/inner/repo")
    #expect(listed.contains("folders/tree/kept"))
    #expect(!listed.contains("packs"))
    #expect(!listed.contains("repository.json"))
  }

  /// Even with `--quiet`, exit status 3 comes with its reason.
  @Test func quietBackupReportsWhyItIsIncomplete() throws {
    guard try Mount.isPermitted() else { return }
    let cli = try CommandLine()
    try cli.directory.write("x", at: "tree/file")
    let mount = try Mount(
      on: cli.directory.directory.directory("tree"), at: cli.directory.path("tree"), "disk")
    defer { withExtendedLifetime(mount) {} }
    _ = try cli.succeed("init repo --plain --no-default")
    let line = "backup --layout folder --root tree --repo repo --quiet"
    let lenient = try cli.run(line)
    #expect(lenient.code == 0 && lenient.output.isEmpty && lenient.errors.isEmpty)
    let strict = try cli.run(line + " --strict")
    #expect(strict.code == 3 && strict.output.isEmpty)
    #expect(
      strict.errors
        == "sandboxctl: warning: folders/tree/disk (\(cli.directory.path("tree/disk"))): another file "
        + "system is mounted there and is skipped ('backup --cross-mounts' includes it)\n")
  }
}
