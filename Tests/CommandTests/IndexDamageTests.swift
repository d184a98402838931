import Foundation
import SystemIO
import TestSupport
import Testing

/// A repository with a damaged or missing index: every command continues with the contents recorded
/// in the packs, and reports this.
struct IndexDamageTests {
  /// Makes two backups of a directory with one changed file.
  private static func make() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(11)
    for name in ["a", "b", "deep/er/c"] {
      try cli.directory.write(random.bytes(20_000), at: ByteString("tree/" + name))
    }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo")
    try cli.directory.write(random.bytes(30_000), at: "tree/b")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo")
    return cli
  }

  private static func indexes(_ cli: CommandLine) throws -> [String] {
    try cli.names(in: "repo/index").map { "\(cli.directory.string)/repo/index/\($0)" }
  }

  private static func damage(_ cli: CommandLine, _ how: String) throws {
    for path in try indexes(cli) {
      switch how {
      case "flipped": try cli.flip(byte: 150, of: path)
      case "cut":
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 100)
        try file.close()
      default: try FileManager.default.removeItem(atPath: path)
      }
    }
  }

  private static let lines = [
    "ls latest:folders/tree --recursive --long", "dump latest:folders/tree/deep/er/c",
    "diff latest~1 latest", "versions folders/tree/b", "find b", "stats latest",
  ]

  @Test(arguments: ["flipped", "cut", "removed"]) func commandsContinueWithoutTheIndex(
    _ how: String
  ) throws {
    let cli = try Self.make()
    let before = try Self.lines.map { try cli.succeed($0 + " --repo repo") }
    let stored = try cli.succeed("stats --repo repo")
    try Self.damage(cli, how)
    if how != "removed" {
      // This host's own copy of the index is intact; only sizes are compared.
      let outcome = try cli.run(Self.lines[0] + " --repo repo")
      #expect(outcome.code == 0 && outcome.output == before[0])
      #expect(outcome.errors.contains("copy is used instead") == (how == "cut"))
      #expect(outcome.errors.isEmpty == (how == "flipped"), "\(outcome.errors)")
      if how == "flipped" { #expect(try cli.succeed("stats --repo repo") == stored) }
      let restore = try cli.run("restore latest:folders/tree --to early --quiet --repo repo")
      #expect(restore.code == 0 && restore.errors.isEmpty == (how == "flipped"))
      try ChangeDetector.expectSame(cli.directory, "tree", "early")
    }
    try FileManager.default.removeItem(atPath: cli.directory.string + "/home/.cache")
    if how != "removed" {
      let outcome = try cli.run("stats --repo repo")
      #expect(outcome.code == 13 && outcome.output.contains("distinct"), "\(outcome)")
      #expect(outcome.errors.contains("warning: the figures are uncertain: blobs that only "))
    }
    for (line, wanted) in zip(Self.lines, before) {
      let outcome = try cli.run(line + " --repo repo")
      #expect(outcome.code == 0 && outcome.output == wanted, "\(line): \(outcome.errors)")
      #expect(outcome.errors.hasPrefix("sandboxctl: warning: cannot "), "\(line)")
      #expect(outcome.errors.contains("index"))
      #expect(outcome.errors.contains("sandboxctl: hint: "))
    }
    let restore = try cli.run("restore latest:folders/tree --to back --quiet --repo repo")
    #expect(restore.code == 0 && restore.errors.contains("warning: "), "\(restore.errors)")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    let check = try cli.run("check --read-data --quiet --repo repo")
    #expect(check.code == 13 && check.output.contains("damaged  index"), "\(check.output)")
    #expect(!check.output.contains("lost "), "\(check.output)")
  }

  /// The sizes are shown, with a warning, and the exit status reports it.
  @Test func statisticsNameMissingPacks() throws {
    let cli = try Self.make()
    #expect(try cli.json("stats --json --repo repo")["missing_packs"] as? Int == 0)
    let packs = try cli.names(in: "repo/packs").flatMap { directory in
      let path = "repo/packs/\(directory)"
      return try cli.names(in: ByteString(path)).map { "\(path)/\($0)" }
    }
    try FileManager.default.removeItem(atPath: cli.directory.string + "/" + packs[0])
    let outcome = try cli.run("stats --repo repo")
    #expect(outcome.code == 13 && outcome.output.contains("distinct"), "\(outcome)")
    #expect(outcome.errors.contains("warning: the index names 1 pack that does not exist"))
    #expect(outcome.errors.contains("hint: 'sandboxctl check --repo repo'"), "\(outcome.errors)")
    for pack in packs.dropFirst() {
      try FileManager.default.removeItem(atPath: cli.directory.string + "/" + pack)
    }
    let all = try cli.run("stats --json --repo repo")
    #expect(all.code == 13 && all.output.contains("\"missing_packs\":\(packs.count)"), "\(all)")
  }

  /// Removes this host's copies of the index and keeps its other cached data.
  private static func removeCopies(_ cli: CommandLine) throws {
    for name in try cli.names(in: caches) {
      try Directory.open(path: cli.directory.path(caches.appending(name))).removeTree("index")
    }
  }

  private static let caches: ByteString = "home/.cache/sandboxctl"

  /// A backup does not rely on blobs that only a damaged index object names and of which the host
  /// has no copy: it stores them again, so its snapshot is complete without the old packs.
  @Test(arguments: ["flipped", "cut", "removed"]) func backupContinuesWithoutTheIndex(_ how: String)
    throws
  {
    let cli = try Self.make()
    let packs = try cli.packs()
    try Self.damage(cli, how)
    // Copies of unlisted objects are not used.
    if how != "removed" { try Self.removeCopies(cli) }
    let backup = try cli.run("backup --layout folder --root tree --repo repo --quiet")
    #expect(backup.code == 0)
    #expect(backup.errors.contains("index/") == (how != "removed"), "\(backup.errors)")
    for pack in packs { try FileManager.default.removeItem(atPath: pack) }
    let restore = try cli.run("restore latest:folders/tree --to back --repo repo")
    #expect(restore.code == 0, "\(restore.errors)")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    let check = try cli.run("check --read-data --repo repo")
    #expect(check.code == 13)
    let last = try #require(try cli.snapshots().last)
    #expect(!check.output.contains(last.prefix(8)), "\(check.output)")
  }

  /// A host with an intact copy of the damaged object stores nothing twice, and its next merge
  /// replaces the damaged object.
  @Test(arguments: ["flipped", "cut"]) func backupRepairsTheIndexFromItsCopy(_ how: String) throws {
    let cli = try Self.make()
    let packs = try cli.packs()
    try Self.damage(cli, how)
    let damaged = Set(try Self.indexes(cli))
    let backup = try cli.run("backup --layout folder --root tree --repo repo --quiet")
    #expect(backup.code == 0 && backup.errors.contains("index/") == (how == "cut"))
    #expect(try cli.packs() == packs)
    var check = try cli.run("check --read-data --repo repo")
    #expect(check.code == 13 && !check.output.contains("lost "), "\(check.output)")
    for number in 0..<14 where try !damaged.isDisjoint(with: Self.indexes(cli)) {
      try cli.directory.write("\(number)", at: "tree/changing")
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    }
    try Self.removeCopies(cli)
    check = try cli.run("check --read-data --repo repo")
    #expect(check.code == 0 && check.errors.isEmpty, "\(check.output)")
    let restore = try cli.run("restore latest:folders/tree --to back --quiet --repo repo")
    #expect(restore.code == 0 && restore.errors.isEmpty, "\(restore.errors)")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  /// If a blob is in two packs, the intact copy is used although no index names it.
  @Test func secondCopyOfABlobIsUsed() throws {
    let cli = try Self.make()
    let old = try cli.packs()
    try Self.damage(cli, "removed")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo")
    for pack in try cli.packs() where !old.contains(pack) { try cli.flip(byte: 300, of: pack) }
    let restore = try cli.run("restore latest:folders/tree --to back --repo repo")
    #expect(restore.code == 0 && restore.errors.contains("index"), "\(restore.errors)")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    let check = try cli.run("check --read-data --repo repo")
    #expect(check.code == 13 && !check.output.contains("lost "), "\(check.output)")
  }

  /// Many small backups leave few index objects and no temporary files.
  @Test func manyBackupsLeaveFewIndexObjects() throws {
    let cli = try Self.make()
    for number in 0..<14 {
      try cli.directory.write("\(number)", at: "tree/changing")
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    }
    #expect(try Self.indexes(cli).count <= 5)
    #expect(try cli.names(in: "repo/leases").isEmpty)
    _ = try cli.succeed("check --read-data --repo repo")
    try Recover.succeed(cli, "repo verify --read-data")
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }
}
