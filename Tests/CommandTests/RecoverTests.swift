import Foundation
import SystemIO
import TestSupport
import Testing

/// Recovery without the program, with the reader that was written from docs/repository-format.md
/// alone.
struct RecoverTests {
  private static func makeOddRepository() throws -> CommandLine {
    let cli = try CommandLine()
    try OddTree.make(in: cli.directory, at: "tree")
    let root = try Directory.open(path: cli.directory.path("tree"))
    try root.attributes(of: "folder").set("system.posix_acl_default", to: defaultAccessList)
    if Host.userID == 0 {
      let device = DeviceFile.random
      try root.createSpecial(
        "device", kind: .characterDevice, permissions: 0o640, device: device.number)
      try root.attributes(of: "dangling").set("trusted.note", to: Array("on a link".utf8))
    }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo")
    return cli
  }

  private enum DeviceFile: UInt64 {
    /// /dev/random, as makedev(3) has it: major 1, minor 8.
    case random = 0x108
    var number: UInt64 { rawValue }
  }

  /// A default ACL of a directory (acl(5)): user 65534 may read.
  private static let defaultAccessList: [UInt8] = [
    2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 4, 0, 0xfe, 0xff, 0, 0, 4, 0, 5, 0, 255, 255,
    255, 255, 16, 0, 5, 0, 255, 255, 255, 255, 32, 0, 5, 0, 255, 255, 255, 255,
  ]

  // MARK: - Restores

  @Test func repositoryContainsTheReader() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain")
    let script = try Descriptor.open(path: ByteString(Recover.script)).readAll(limit: 1 << 20)
    #expect(try cli.directory.read("repo/recover.py") == script)
    let readme = String(decoding: try cli.directory.read("repo/README.txt"), as: UTF8.self)
    #expect(readme.contains("python3 recover.py . restore latest --to"))
    let line = "Run this copy only if no other user could write to this directory"
    #expect(readme.split(separator: "\n").contains { $0.contains(line) })
    let help = try Recover.run(cli, ["--help"], script: cli.directory.string + "/repo/recover.py")
    #expect(help.code == 0 && help.output.contains("--without-index"))
  }

  /// Without `repository.json` everything else is restored, and the error explains how.
  @Test func missingRepositoryFileLosesNothingElse() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("kept", at: "tree/folder/file")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.directory.directory("repo").remove("repository.json")
    let ours = try cli.run("snapshots --repo repo")
    #expect(ours.code == 10 && ours.errors.contains("python3 recover.py"), "\(ours.errors)")
    let restore = ["repo", "restore", "latest:folders/tree", "--to", "back"]
    let outcome = try Recover.run(cli, restore)
    #expect(outcome.code == 0 && outcome.errors.contains("is missing"), "\(outcome.errors)")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    let verified = try Recover.run(cli, ["repo", "verify", "--read-data"])
    #expect(verified.code != 0 && verified.output.contains("1 problem found"), "\(verified.output)")
    // A directory that is not a repository is refused as before.
    let none = try Recover.run(cli, ["tree", "list"])
    #expect(none.code == 1 && none.errors.contains("no repository at tree"), "\(none.errors)")
  }

  /// The command lines in README.txt that join parts work, even with missing parts.
  @Test func readmeCommandsJoinParts() throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(22)
    let file = try cli.directory.directory.openOrCreate("sparse")
    try file.write(random.bytes(700_000))
    try file.seek(to: 20 << 20)
    try file.write(random.bytes(9 << 20))
    try FileManager.default.createDirectory(
      atPath: cli.directory.string + "/tree", withIntermediateDirectories: false)
    try cli.directory.directory.rename(
      "sparse", to: "sparse", in: cli.directory.directory.directory("tree"))
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let readme = String(decoding: try cli.directory.read("repo/README.txt"), as: UTF8.self)
    let from = try #require(readme.range(of: "(cd .sandboxctl/parts")).lowerBound
    let until = try #require(readme.range(of: "rm -rf .sandboxctl/parts")).upperBound
    let script =
      "set -e; mkdir out; cd out; for p in ../repo/packs/??/*.tar.zst; do "
      + "zstd -dc \"$p\" | tar -x; [ -d .sandboxctl/parts ] || continue; \(readme[from..<until]); "
      + "done; cmp folders/tree/sparse ../tree/sparse"
    let outcome = try Program.run(
      "sh", ["-c", "cd '\(cli.directory.string)'; \(script)"])
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.output) \(outcome.errors)")
  }

  /// Holes and each name of a hard-linked file count, as they do in the list of the snapshots.
  @Test func totalsAreThoseOfTheSnapshot() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("text", at: "tree/a")
    let made = try Program.run(
      "sh", ["-c", "cd '\(cli.directory.string)/tree' && ln a b && truncate -s 3M sparse"])
    #expect(made.code == 0, "\(made.errors)")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let restored = try Recover.succeed(cli, "repo restore latest:folders/tree --to back")
    #expect(restored.hasSuffix(", 3.0 MiB in 3 files\n"), "\(restored)")
    #expect(try Recover.succeed(cli, "repo list").contains(" 3     3.0 MiB "))
  }

  @Test func oddTreeIsRestored() throws {
    let cli = try Self.makeOddRepository()
    try Recover.succeed(cli, "repo verify --read-data")
    try Recover.succeed(cli, "repo restore latest:folders/tree --to back")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    #expect(try OddTree.listing(cli.directory, "back") == OddTree.listing(cli.directory, "tree"))
    _ = try cli.succeed("restore latest:folders/tree --to ours --repo repo")
    #expect(try OddTree.listing(cli.directory, "back") == OddTree.listing(cli.directory, "ours"))
    let status = try Directory.open(path: cli.directory.path("back")).status()
    let source = try Directory.open(path: cli.directory.path("tree")).status()
    #expect(status.modified == source.modified && status.permissions == source.permissions)
  }

  @Test func withoutTheIndexEverythingIsRestored() throws {
    let cli = try Self.makeOddRepository()
    for name in try FileManager.default.contentsOfDirectory(
      atPath: cli.directory.string + "/repo/index")
    {
      try cli.directory.write("not an index", at: ByteString("repo/index/\(name)"))
    }
    let refused = try Recover.run(cli, ["repo", "restore", "latest", "--to", "refused"])
    #expect(refused.code == 13 && refused.errors.contains("damaged: index "))
    try Recover.succeed(cli, "--without-index repo verify --read-data")
    try Recover.succeed(cli, "--without-index repo restore latest:folders/tree --to back")
    #expect(try OddTree.listing(cli.directory, "back") == OddTree.listing(cli.directory, "tree"))
  }

  @Test func sampleDeviceIsRestoredForEachDay() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo")
    _ = try cli.succeed("sample device --day 1")
    _ = try cli.succeed("backup --root device --repo repo")
    let ids = try cli.snapshots()
    let list = try Recover.succeed(cli, "repo list").split(separator: "\n").dropFirst()
    #expect(list.map { String($0.prefix(16)) } == ids.map { String($0.prefix(16)) })
    for (number, id) in ids.enumerated() {
      try Recover.succeed(cli, "repo restore \(id.prefix(8)) --to theirs-\(number)")
      _ = try cli.succeed("restore \(id.prefix(8)) --to ours-\(number) --repo repo")
      let (ours, theirs) = (ByteString("ours-\(number)"), ByteString("theirs-\(number)"))
      #expect(try OddTree.listing(cli.directory, theirs) == OddTree.listing(cli.directory, ours))
    }
    try PolicyComparison.expectRestored(cli, device: "device", back: "theirs-1")
  }

  @Test func singlePathIsRestored() throws {
    let cli = try Self.makeOddRepository()
    try Recover.succeed(cli, "repo restore latest:folders/tree/media/large.bin --to one.bin")
    #expect(try cli.directory.read("one.bin") == cli.directory.read("tree/media/large.bin"))
    try Recover.succeed(cli, "repo restore latest:folders/tree/folder --to part")
    #expect(try cli.directory.read("part/inner/file") == Array("in".utf8))
    try Recover.succeed(cli, "repo restore latest:folders/tree/link --to alone")
    let link = try Directory.open(path: cli.directory.path).target(of: "alone")
    #expect(link == "folder/inner/file")
  }

  @Test func listingsNameEachPath() throws {
    let cli = try Self.makeOddRepository()
    let output = try Recover.run(cli, ["repo", "ls", "-0", "latest:folders/tree"]).standardOutput
    let paths = output.split(separator: 0).map { ByteString(Array($0)) }
    let expected = try OddTree.listing(cli.directory, "tree").keys
      .map { ByteString("folders/tree").appending($0) }
    #expect(Set(paths) == Set(expected) && paths.count == expected.count)
    let text = try Recover.succeed(cli, "repo ls latest:folders/tree")
    #expect(text.contains("folders/tree/a\\x0anewline\n"))
    #expect(text.contains("folders/tree/\\xff\\xfex\n"))
    #expect(text.contains("folders/tree/link -> folder/inner/file\n"))
    #expect(text.contains("-rwsr-xr-x"))
  }

  // MARK: - Damage and errors

  @Test func userWithoutPrivilegesRestoresAllButOwners() throws {
    let cli = try Self.makeOddRepository()
    let nobody = "--reuid=65534 --regid=65534 --clear-groups".split(separator: " ").map(String.init)
    guard Host.userID == 0 else { return }
    _ = try Program.run("chown", ["-R", "65534", "repo"], in: cli.directory.url)
    _ = try cli.directory.directory.makeDirectory("open", permissions: 0o777)
    try cli.directory.directory.setPermissions(0o777, of: "open")
    let outcome = try Recover.run(
      cli, ["repo", "restore", "latest:folders/tree", "--to", "open/back"],
      under: ["setpriv"] + nobody)
    #expect(outcome.code == 3)
    #expect(outcome.errors.contains("not restored: device: Operation not permitted"))
    #expect(outcome.errors.contains("only root can restore owners"))
    let listing = try OddTree.listing(cli.directory, "open/back")
    let source = try OddTree.listing(cli.directory, "tree")
    #expect(Set(source.keys).subtracting(listing.keys) == ["device"])
    #expect(listing["empty"]?.permissions == 0o755, "a set-user-id bit for another user is not set")
    #expect(listing["large"]?.attributes == source["large"]?.attributes)
    #expect(listing.values.allSatisfy { $0.user == 65534 })
  }

  @Test func damageLosesOnlyAffectedFiles() throws {
    let cli = try CommandLine()
    var random = Seeded(7)
    for name: ByteString in ["a-first", "b-second"] {
      try cli.directory.write(random.bytes(3_000_000), at: ByteString("tree").appending(name))
    }
    _ = try cli.succeed("init repo --plain")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo")
    let pack = try cli.largestPack()
    let id = URL(fileURLWithPath: pack).lastPathComponent.prefix(64)
    try cli.flip(byte: 1_000_000, of: pack)
    let check = try Recover.run(cli, ["repo", "verify", "--read-data"])
    #expect(check.code == 13)
    #expect(check.errors.contains("damaged: pack \(id): its hash does not match its name"))
    #expect(check.errors.contains("damaged: pack \(id): frame 0 cannot be decoded"))
    #expect(check.errors.contains(": folders/tree/a-first: "))
    #expect(!check.errors.contains("b-second"))
    let outcome = try Recover.run(cli, ["repo", "restore", "latest:folders/tree", "--to", "back"])
    #expect(outcome.code == 13 && outcome.errors.contains("damaged: a-first: "))
    #expect(try cli.names(in: "back") == ["b-second"])
    #expect(try cli.directory.read("back/b-second") == cli.directory.read("tree/b-second"))
    try FileManager.default.removeItem(atPath: pack)
    let without = try Recover.run(cli, ["repo", "verify"])
    #expect(without.code == 13 && without.errors.contains("\(id): an index refers to it"))
  }

  /// A damaged byte loses the files whose blobs contain it, not its whole frame: as many files as
  /// the program loses.
  @Test(arguments: [0.1, 0.5, 0.8]) func damagedByteDoesNotLoseItsFrame(part: Double) throws {
    let cli = try CommandLine()
    var random = Seeded(11)
    for number in 0..<300 {
      let text = (0..<600).map { _ in String(random.next() % 5000, radix: 26) }
      try cli.directory.write(text.joined(separator: " "), at: ByteString("tree/\(number)"))
    }
    _ = try cli.succeed("init repo --plain")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo")
    let pack = try cli.largestPack()
    let size = try #require(
      try FileManager.default.attributesOfItem(atPath: pack)[.size] as? Int)
    try cli.flip(byte: UInt64(Double(size) * part), of: pack)
    #expect(try cli.run("restore latest:folders/tree --to own --repo repo").code == 13)
    let outcome = try Recover.run(cli, ["repo", "restore", "latest:folders/tree", "--to", "back"])
    #expect(outcome.code == 13)
    let restored = try cli.names(in: "own")
    #expect(restored.count > 150 && restored.count < 300)
    #expect(try cli.names(in: "back") == restored)
  }

  @Test func hardLinkToALostFileIsReported() throws {
    let cli = try CommandLine()
    var random = Seeded(7)
    try cli.directory.write(random.bytes(100_000), at: "tree/a-first")
    let tree = try cli.directory.directory.directory("tree")
    try tree.createHardLink("b-second", to: "a-first", in: tree)
    _ = try cli.succeed("init repo --plain")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo")
    try cli.flip(byte: 50_000, of: cli.largestPack())
    let outcome = try Recover.run(cli, ["repo", "restore", "latest:folders/tree", "--to", "back"])
    #expect(outcome.code == 13)
    #expect(
      outcome.errors.contains("damaged: b-second: it is a hard link to a-first, which is lost"),
      "\(outcome.errors)")
  }

  @Test(arguments: [
    ("nowhere list", 1, "no repository at nowhere"),
    ("repo ls beef", 1, "0 snapshot ids begin with beef"),
    ("repo ls yesterday", 1, "is not a snapshot"),
    ("repo ls latest:no/such", 1, "no does not exist"),
    ("repo restore latest --to home", 1, "not an empty directory"),
    ("repo restore latest --to repo/back", 1, "is inside the repository"),
    ("repo restore latest --to no/such/folder", 1, "No such file or directory"),
    ("--zstd no-zstd repo verify", 1, "program no-zstd not found"),
    ("repo restore latest", 2, "--to"), ("repo", 2, "COMMAND"), ("repo burn", 2, "burn"),
  ]) func errorsAreNamed(line: String, code: Int32, words: String) throws {
    let cli = try CommandLine()
    try cli.directory.write("x", at: "home/x")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root home --repo repo")
    let outcome = try Recover.run(cli, line.split(separator: " ").map(String.init))
    #expect(outcome.code == code)
    #expect(outcome.errors.contains(words), "\(outcome.errors)")
    #expect(!outcome.errors.contains("Traceback"))
  }

  /// Both readers list, check and restore a snapshot with only the members that a restore needs,
  /// and a backup beside it works.
  @Test func minimalSnapshotIsSufficient() throws {
    var forged = ForgedRepository()
    let bytes = Array("content".utf8)
    forged.add(bytes, kind: 0)
    forged.addBareSnapshot(forged.addTree([ForgedEntry.file(Array("file".utf8), bytes)]))
    let cli = try CommandLine()
    try forged.write(to: cli.directory.url.appendingPathComponent("repo"))
    // An uncommitted file of a later version is not a snapshot.
    let pending = "repo/pending/\(String(repeating: "0", count: 64)).json"
    try cli.directory.write("of a later version", at: ByteString(pending))
    try Recover.succeed(cli, "repo list")
    try Recover.succeed(cli, "repo verify --read-data")
    try Recover.succeed(cli, "repo restore latest --to theirs")
    _ = try cli.succeed("restore latest --to ours --repo repo")
    for back: ByteString in ["theirs/file", "ours/file"] {
      #expect(try cli.directory.read(back) == bytes)
    }
    for command in ["snapshots", "snapshots show latest", "ls latest", "stats", "snapshots --json"]
    {
      let reported = try cli.run(command + " --repo repo")
      #expect(reported.code == 0 && reported.errors.isEmpty, "\(command): \(reported.errors)")
    }
    let refused = try cli.run("restore latest --in-place --repo repo")
    #expect(refused.code == 1 && refused.errors.contains("hint: '--to DIR'"), "\(refused.errors)")
    try cli.directory.write("x", at: "tree/x")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    #expect(try cli.snapshots().count == 2)
  }

  /// Both readers select the same snapshot as the latest: within one source, the last in its
  /// sequence even if the clock was set back by an hour; between sources, by time.
  @Test func clockSetBackHidesNoSnapshot() throws {
    var forged = ForgedRepository()
    for (text, time) in [("first", "10:00:01"), ("second", "09:00:02"), ("third", "09:30:03")] {
      let bytes = Array(text.utf8)
      forged.add(bytes, kind: 0)
      let tree = forged.addTree([ForgedEntry.file(bytes, bytes)])
      forged.addSnapshot(tree) { snapshot in
        let count = ["first", "second", "third"].firstIndex(of: text) ?? 0
        let moved = snapshot.replacingOccurrences(of: "10:00:0\(count + 1)", with: time)
        // The third snapshot has another source.
        let source = "\"source\":\"0"
        return text == "third"
          ? moved.replacingOccurrences(of: source, with: "\"source\":\"1") : moved
      }
    }
    let hostile = try Hostile(forged)
    #expect(try hostile.ours("restore latest --to ours").code == 0)
    #expect(try hostile.theirs("repo restore latest --to theirs").code == 0)
    for name: ByteString in ["ours", "theirs"] {
      #expect(try hostile.cli.names(in: name) == ["second"], "\(name)")
    }
    let listed = try hostile.cli.snapshots()
    let list = try hostile.theirs("repo list").output
    let locations = listed.map { id in list.range(of: id.prefix(12))?.lowerBound }
    #expect(listed.count == 3 && !locations.contains(nil))
    #expect(locations.compactMap { $0 } == locations.compactMap { $0 }.sorted(), "\(list)")
  }
}
