import Foundation
import SystemIO
import TestSupport
import Testing

/// `prune` and `leases` on the command line.
struct PruneTests {
  /// A repository with the backups of a directory before and after most of it was replaced, of
  /// which only the last snapshot remains.
  private func pruneable(_ cli: CommandLine) throws {
    var random = Seeded(7)
    _ = try cli.succeed("init repo --plain")
    for round in 0..<2 {
      for number in round..<12 {
        try cli.directory.write(random.bytes(200_000), at: ByteString("tree/\(number)"))
      }
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    }
    let snapshots = try cli.jsonLines("snapshots --json --repo repo")
    let first = try #require(snapshots.first?["id"] as? String)
    try FileManager.default.removeItem(atPath: cli.path(ofSnapshot: first))
  }

  @Test func unusedDataIsRemoved() throws {
    let cli = try CommandLine(inMemory: true)
    try pruneable(cli)
    let dry = try cli.succeed("prune --dry-run --repo repo")
    #expect(dry.contains("1 snapshot, 4 packs: ") && dry.contains("would free 2."), "\(dry)")
    #expect(try cli.packs().count == 4)
    let done = try cli.succeed("prune --repo repo")
    #expect(done.contains("rewrite  1 pack, ") && done.contains(": more than half"), "\(done)")
    #expect(done.contains("wrote 1 pack: 2.") && done.hasSuffix(" freed\n"), "\(done)")
    #expect(try cli.succeed("prune --repo repo").hasSuffix("nothing to prune\n"))
    #expect(try cli.succeed("prune --quiet --repo repo").isEmpty)
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  /// A dry run shows which packs marked by the last prune the next one will remove.
  @Test func dryRunIncludesPacksThatAnEarlierPruneMarked() throws {
    let cli = try CommandLine(inMemory: true)
    try pruneable(cli)
    let lease = "0123456789abcdef0123456789abcdef"
    try cli.directory.write("", at: ByteString("repo/leases/\(lease)/alive"))
    let waits = "2 packs may be needed by 1 running program: a later prune removes them"
    #expect(try cli.succeed("prune --dry-run --repo repo").contains(waits))
    #expect(try cli.succeed("prune --repo repo").contains(waits))
    let waiting = try cli.succeed("prune --dry-run --repo repo")
    #expect(waiting.contains(waits) && waiting.hasSuffix("would free 0 B\n"), "\(waiting)")
    try FileManager.default.removeItem(atPath: cli.directory.string + "/repo/leases/\(lease)")
    let shown = try cli.succeed("prune --dry-run --repo repo")
    #expect(
      shown.contains("\nremove  2 packs, ") && shown.contains(": marked by an earlier prune\n"))
    #expect(shown.contains("would free ") && !shown.contains("would free 0 B"), "\(shown)")
    let planned = try cli.jsonLines("prune --dry-run --json --repo repo").last
    let done = try cli.jsonLines("prune --json --repo repo").last
    let bytes = try #require(planned?["removed_bytes"] as? Int)
    #expect(bytes > 2_000_000 && bytes == done?["removed_bytes"] as? Int)
    #expect(planned?["removed_packs"] as? Int == 2)
    #expect(try cli.succeed("prune --dry-run --repo repo").hasSuffix("nothing to prune\n"))
  }

  @Test func lostSnapshotsCostNoData() throws {
    let cli = try CommandLine(inMemory: true)
    try pruneable(cli)
    let snapshots = cli.directory.string + "/repo/snapshots"
    try FileManager.default.moveItem(atPath: snapshots, toPath: snapshots + "-lost")
    let missing = try cli.run("prune --repo repo")
    #expect(missing.code == 13 && !missing.errors.contains("empty directory"), "\(missing.errors)")
    try FileManager.default.createDirectory(
      atPath: snapshots, withIntermediateDirectories: false)
    for line in ["prune --dry-run", "prune", "forget --keep-daily 7 --prune"] {
      let outcome = try cli.run(line + " --repo repo")
      #expect(outcome.code == 1, "\(line): \(outcome.output)")
      #expect(outcome.errors.contains("it has 4 packs and no snapshot"), "\(outcome.errors)")
    }
    #expect(try cli.packs().count == 4)
    // A user who removes the last snapshot also intends to remove its data.
    try FileManager.default.removeItem(atPath: snapshots)
    try FileManager.default.moveItem(atPath: snapshots + "-lost", toPath: snapshots)
    _ = try cli.succeed("forget latest --allow-last --prune --dry-run --repo repo")
    _ = try cli.succeed("forget latest --allow-last --prune --repo repo")
    #expect(try cli.packs().isEmpty)
  }

  @Test func limitsAreChecked() throws {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("init repo --plain")
    for limit in ["0%", "99.5%", "5G", "0", "unlimited"] {
      _ = try cli.succeed("prune --max-unused \(limit) --repo repo")
    }
    for limit in ["100%", "-1%", "x%", "much", "-5"] {
      let outcome = try cli.run("prune --max-unused=\(limit) --repo repo")
      #expect(outcome.code == 2 && outcome.errors.contains("--max-unused"), "\(limit)")
    }
  }

  /// A prune beside another program names that program, and exits with 0.
  @Test func runningProgramsAreListed() throws {
    let cli = try CommandLine(inMemory: true)
    try pruneable(cli)
    let none = try cli.run("leases --repo repo")
    #expect(none.code == 0 && none.output.isEmpty && none.errors.contains("no program is using"))
    let lease: ByteString = "repo/leases/0123456789abcdef0123456789abcdef"
    for name: ByteString in ["alive", "by-4711-nas-2"] {
      try cli.directory.write([], at: lease.appending(name))
    }
    let waiting = try cli.succeed("prune --repo repo")
    #expect(waiting.contains("packs may be needed by 1 running program"), "\(waiting)")
    let leases = try cli.succeed("leases --repo repo")
    #expect(leases.contains("01234567  write  nas-2     4711"), "\(leases)")
    let json = try cli.json("leases --json --repo repo")
    #expect(json["host"] as? String == "nas-2" && json["process"] as? Int == 4711)
    // Without a heartbeat for an hour, the program has lost its lease.
    let alive = cli.directory.string + "/repo/leases/0123456789abcdef0123456789abcdef/alive"
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -3700)], ofItemAtPath: alive)
    let dry = try cli.succeed("prune --dry-run --repo repo")
    #expect(dry.contains("marked by an earlier prune") && !dry.contains("running"), "\(dry)")
    #expect(try cli.names(in: "repo/leases").count == 1)
    #expect(try cli.succeed("prune --repo repo").contains(" freed\n"))
    #expect(try cli.names(in: "repo/leases").isEmpty)
    #expect(try cli.names(in: "repo/condemned").isEmpty)
  }

  @Test func aDamagedListOfCondemnedPacksIsRemoved() throws {
    for line in ["backup --layout folder --root tree", "prune", "repair packs", "repair snapshots"]
    {
      let cli = try CommandLine(inMemory: true)
      try pruneable(cli)
      let lease: ByteString = "repo/leases/0123456789abcdef0123456789abcdef"
      try cli.directory.write([], at: lease.appending("alive"))
      _ = try cli.succeed("prune --repo repo")
      try Directory.open(path: cli.directory.path("repo/leases")).removeTree(
        "0123456789abcdef0123456789abcdef")
      let name = try #require(try cli.names(in: "repo/condemned").first)
      try cli.directory.write("{}", at: ByteString("repo/condemned/\(name)"))
      let check = try cli.run("check --repo repo")
      #expect(check.code == 13, "\(check.errors)")
      #expect(check.output.contains("the next backup or prune removes it"), "\(check.output)")
      let dry = try cli.run("prune --dry-run --repo repo")
      #expect(dry.code == 0 && dry.errors.contains("does not match its id"), "\(dry.errors)")
      let run = try cli.run(line + " --repo repo")
      #expect(run.code == 0 && run.errors.contains("and it was removed"), "\(run.errors)")
      #expect(try cli.names(in: "repo/condemned").isEmpty)
      #expect(try cli.run("check --repo repo").code == 0)
      #expect(try cli.succeed("prune --repo repo").contains("snapshot"))
      #expect(try cli.succeed("prune --repo repo").hasSuffix("nothing to prune\n"))
    }
  }

  /// Damage stops a prune before it removes anything, and the error names a remedy.
  @Test func damageStopsAPrune() throws {
    let cli = try CommandLine(inMemory: true)
    try pruneable(cli)
    let packs = try cli.packs()
    try FileManager.default.removeItem(atPath: packs[0])
    let outcome = try cli.run("prune --repo repo")
    #expect(outcome.code == 13 && outcome.errors.contains("repair packs"), "\(outcome.errors)")
    #expect(try cli.packs().count == packs.count - 1)
  }

  /// A restore holds a lease while it runs, and a read-only repository is restored without one.
  @Test func aReadOnlyRepositoryIsRestored() throws {
    guard try Mount.isPermitted() else { return }
    let cli = try CommandLine(inMemory: true)
    try pruneable(cli)
    try cli.directory.directory.createDirectory("mounted")
    let mount = try Mount(
      binding: cli.directory.path("repo"), on: cli.directory.path("mounted"))
    _ = try Program.run("mount", ["-o", "remount,ro,bind", cli.directory.string + "/mounted"])
    _ = try cli.succeed("restore latest:folders/tree --to back --repo mounted --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    let outcome = try cli.run("prune --repo mounted")
    #expect(outcome.code == 1 && outcome.errors.contains("read-only"), "\(outcome.errors)")
    withExtendedLifetime(mount) {}
  }
}
