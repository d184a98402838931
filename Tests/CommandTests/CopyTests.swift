import Foundation
import SystemIO
import TestSupport
import Testing

/// `copy` and `mirror` on the command line.
struct CopyTests {
  /// A repository with two backups of a directory, and an empty second repository.
  private func repositories(_ cli: CommandLine) throws {
    var random = Seeded(5)
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("init second --plain --no-default")
    for round in 0..<2 {
      for number in (4 * round)..<(4 * round + 6) {
        try cli.directory.write(random.bytes(100_000), at: ByteString("tree/\(number)"))
      }
      _ = try cli.succeed(
        "backup --layout folder --root tree --repo repo --quiet --tag round-\(round)")
    }
  }

  private func expectRestored(_ cli: CommandLine, from repository: String) throws {
    _ = try cli.succeed("restore latest:folders/tree --to back --repo \(repository) --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    try cli.directory.directory.removeTree("back")
  }

  @Test func snapshotsAreCopiedAndRestored() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    let dry = try cli.succeed("copy --to second --repo repo --dry-run")
    #expect(
      dry.contains("would copy 2 of 2 snapshots\nthe other repository lacks ")
        && !dry.contains("stored"), "\(dry)")
    let one = try cli.succeed("copy --to second --repo repo --tag round-1 --check")
    #expect(one.contains("copied 1 of 1 snapshot\n"), "\(one)")
    #expect(one.hasSuffix(" again: no damage found\n"), "\(one)")
    let all = try cli.succeed("copy --to second --repo repo")
    #expect(all.contains("copied 1 of 2 snapshots, 1 existed before\n"), "\(all)")
    #expect(try cli.succeed("copy --to second --repo repo --quiet").isEmpty)
    #expect(try cli.succeed("copy --to repo --repo second").contains("copied 0 of 2 snapshots"))
    #expect(try cli.succeed("check --read-data --repo second").hasSuffix("no damage found\n"))
    try expectRestored(cli, from: "second")
    #expect(try cli.names(in: "second/leases").isEmpty && cli.names(in: "repo/leases").isEmpty)
  }

  @Test func wrongUseIsRefused() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    _ = try cli.succeed("init repo/inner --plain --no-default")
    for (line, code, reason) in [
      ("copy --repo repo", Int32(2), "--to"),
      ("copy latest --to second --tag x --repo repo", 2, "both named and selected"),
      ("copy --to nowhere --repo repo", 10, "'nowhere'"),
      ("copy --to repo --repo repo", 1, "it is the source itself"),
      ("mirror --to repo --repo repo", 1, "it is the repository itself"),
      ("copy --to repo/inner --repo repo", 2, "is inside the other"),
      ("copy --to repo --repo repo/inner", 2, "is inside the other"),
      ("mirror --to repo/mirror --repo repo", 2, "is inside the other"),
      ("mirror --to second --repo repo", 1, "it is another repository"),
      ("mirror --to tree --repo repo", 1, "it is neither empty nor a repository"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
    #expect(try cli.snapshots("second").isEmpty)
    let nothing = try cli.run("copy --to second --tag other --repo repo")
    #expect(nothing.code == 0 && nothing.errors.contains("no snapshot matches"), "\(nothing)")
    // The command in the hint is for the repository that the error concerns.
    let unknown = try cli.run("copy ffffffff --to second --repo repo")
    #expect(unknown.code == 1, "\(unknown)")
    #expect(unknown.errors.contains("run 'sandboxctl snapshots --repo repo' to list"), "\(unknown)")
  }

  /// Lost data affects only the snapshots that need it, and is reported by name.
  @Test func damageIsNamedAndNotCopied() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    let latest = try #require(
      try cli.jsonLines("snapshots --json --repo repo").last?["id"] as? String)
    // The pack with the trees of the latest snapshot.
    let tree = try cli.json("snapshots show \(latest) --json --repo repo")["tree"] as? String
    let member = ".sandboxctl/trees/\(try #require(tree))"
    let packs = try cli.packs().filter { try Archive.members(of: $0).contains { $0 == member } }
    try cli.flip(byte: 1, of: try #require(packs.first))
    for command in ["copy --to second", "mirror --to mirror"] {
      let outcome = try cli.run("\(command) --repo repo")
      #expect(outcome.code == 13, "\(outcome)")
      #expect(outcome.errors.contains("snapshot \(latest.prefix(8)) of "), "\(outcome.errors)")
      #expect(outcome.errors.contains(", and was not copied\n"), "\(outcome.errors)")
    }
    #expect(try cli.snapshots("second").count == 1)
    #expect(try cli.snapshots("mirror").count == 1 && cli.snapshots("mirror").first != latest)
    #expect(try cli.run("check --read-data --quiet --repo second").code == 0)
    // The mirror has the index of the original, which names the missing pack. Nothing else is lost.
    let check = try cli.run("check --read-data --quiet --repo mirror")
    #expect(check.code == 13 && check.output.hasPrefix("damaged  packs/"), "\(check)")
    #expect(check.output.split(separator: "\n").count == 1, "\(check.output)")
  }

  @Test func aMirrorFollowsTheRepository() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    let new = try cli.succeed("mirror --to mirror --repo repo")
    #expect(new.hasPrefix("copied 2 snapshots, "), "\(new)")
    #expect(try cli.succeed("mirror --to mirror --repo repo --quiet").isEmpty)
    #expect(try cli.succeed("mirror --to mirror --repo repo").hasSuffix("is up to date\n"))
    _ = try cli.succeed("forget latest~1 --repo repo --prune --quiet")
    let next = try cli.succeed("mirror --to mirror --repo repo")
    #expect(next.contains("removed 1 snapshot, "), "\(next)")
    try expectRestored(cli, from: "mirror")
    #expect(try cli.succeed("check --read-data --repo mirror").hasSuffix("no damage found\n"))
    // In place of the original.
    try cli.directory.directory.removeTree("repo")
    try cli.directory.write("new", at: "tree/new")
    _ = try cli.succeed("backup --layout folder --root tree --repo mirror --quiet")
    try expectRestored(cli, from: "mirror")
    _ = try cli.succeed("mirror --to again --repo mirror --quiet")
    try expectRestored(cli, from: "again")
  }

  /// A damaged index object of the mirror is replaced, although this host has an intact copy of it.
  @Test func aDamagedIndexOfTheMirrorIsReplaced() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    _ = try cli.succeed("mirror --to mirror --repo repo --quiet")
    let index = try #require(try cli.names(in: "mirror/index").first)
    try cli.flip(byte: 70, of: "\(cli.directory.string)/mirror/index/\(index)")
    let next = try cli.succeed("mirror --to mirror --repo repo")
    #expect(next.hasPrefix("copied 0 snapshots, 1 index object, 0 packs"), "\(next)")
    #expect(try cli.succeed("check --read-data --repo mirror").hasSuffix("no damage found\n"))
  }

  /// A mistaken `forget --allow-last` is not mirrored and can be undone from the mirror.
  @Test func aLargeRemovalNeedsPermission() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    _ = try cli.succeed("mirror --to mirror --repo repo --quiet")
    let ids = try cli.snapshots()
    _ = try cli.succeed(
      "forget \(ids.joined(separator: " ")) --allow-last --repo repo --prune --quiet")
    try cli.directory.write("other", at: "other/file")
    _ = try cli.succeed("backup --layout folder --root other --repo repo --quiet")
    let refused = try cli.run("mirror --to mirror --repo repo --quiet")
    #expect(refused.code == 3 && refused.output.isEmpty, "\(refused)")
    #expect(
      refused.errors.contains(
        "the repository lacks 2 of the mirror's 3 snapshots, of 1 source all: nothing was removed"),
      "\(refused.errors)")
    #expect(refused.errors.contains("--allow-large-removal' once"), "\(refused.errors)")
    #expect(Set(try cli.snapshots("mirror")).isSuperset(of: ids))
    // The snapshots that are copied back have their original ids.
    _ = try cli.succeed("copy --repo mirror --to repo --quiet")
    #expect(Set(try cli.snapshots()).isSuperset(of: ids))
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
    _ = try cli.succeed("mirror --to mirror --repo repo --quiet")
    _ = try cli.succeed(
      "forget \(ids.joined(separator: " ")) --allow-last --repo repo --prune --quiet")
    _ = try cli.succeed("mirror --to mirror --repo repo --quiet --allow-large-removal")
    #expect(try cli.snapshots("mirror").count == 1)
  }

  @Test func onlyOneProgramMirrorsToADirectory() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    _ = try cli.succeed("mirror --to mirror --repo repo --quiet")
    let lock = try FileLock(Directory.open(path: cli.directory.path("mirror")))
    let outcome = try cli.run("mirror --to mirror --repo repo --quiet")
    #expect(outcome.code == 11, "\(outcome)")
    #expect(outcome.errors.contains("another program is mirroring to it"), "\(outcome.errors)")
    _ = consume lock
    _ = try cli.succeed("mirror --to mirror --repo repo --quiet")
  }

  /// The error names the process that holds the lock, as with the locks of backups and apps.
  @Test func aBusyMirrorNamesTheProcess() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    _ = try cli.succeed("mirror --to mirror --repo repo --quiet")
    let directory = try Directory.open(
      path: cli.directory.path("home/.local/share/sandboxctl/mirrors"))
    let name = try #require(cli.names(in: "home/.local/share/sandboxctl/mirrors").first)
    let lock = try FileLock(name, in: directory)
    let outcome = try cli.run("mirror --to mirror --repo repo --quiet")
    #expect(outcome.code == 11, "\(outcome)")
    #expect(
      outcome.errors.contains("mirroring to it (process \(getpid()), since 20"),
      "\(outcome.errors)")
    _ = consume lock
    _ = try cli.succeed("mirror --to mirror --repo repo --quiet")
  }

  /// A wait for another copy, which may take a long time, is reported.
  @Test func aCopyNamesTheProgramThatItWaitsFor() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    let lease = "second/leases/0123456789abcdef0123456789abcdef"
    for sign in ["alive", "by-7-elsewhere", "copy"] {
      try cli.directory.write("", at: ByteString("\(lease)/\(sign)"))
    }
    let script = """
      : > err
      "$0" copy --to second --repo repo > out 2> err & P=$!
      for i in $(seq 600); do grep -q waiting err && break; sleep 0.1; done
      rm -r \(lease)
      wait $P; echo $?; cat err out
      """
    let outcome = try cli.run([], under: ["bash", "-c", script])
    let text = outcome.output
    #expect(text.hasPrefix("0\n") && text.contains("copied 2 of 2 snapshots"), "\(outcome)")
    let note = "note: waiting until 1 other copy into 'second' has saved snapshots"
    #expect(text.contains("\(note) (process 7 on host 'elsewhere', since 20"), "\(text)")
    #expect(text.contains("at most 3 minutes for one that was killed ("), "\(text)")
    #expect(text.contains("'sandboxctl leases --repo second'"), "\(text)")
  }

  @Test func theConfigurationNamesTheTargets() throws {
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    try cli.directory.write(
      """
      repo: \(cli.directory.string)/repo
      copy: {to: \(cli.directory.string)/second, check: true}
      mirror: {to: \(cli.directory.string)/mirror}

      """, at: "home/.config/sandboxctl/config.yaml")
    #expect(try cli.succeed("copy").contains("again: no damage found"))
    _ = try cli.succeed("mirror --quiet")
    #expect(try cli.snapshots("mirror").count == 2)
  }

  /// A source that cannot be written to is used without a lease; a target is refused.
  @Test func aReadOnlySourceIsUsed() throws {
    guard try Mount.isPermitted() else { return }
    let cli = try CommandLine(inMemory: true)
    try repositories(cli)
    try cli.directory.directory.createDirectory("mounted")
    let mount = try Mount(binding: cli.directory.path("repo"), on: cli.directory.path("mounted"))
    _ = try Program.run("mount", ["-o", "remount,ro,bind", cli.directory.string + "/mounted"])
    _ = try cli.succeed("copy --repo mounted --to second --quiet")
    try expectRestored(cli, from: "second")
    _ = try cli.succeed("mirror --repo mounted --to mirror --quiet")
    try expectRestored(cli, from: "mirror")
    for line in ["copy --repo second --to mounted", "mirror --repo mirror --to mounted"] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 1 && outcome.errors.contains("read-only"), "\(outcome)")
    }
    withExtendedLifetime(mount) {}
  }
}
