import Foundation
import SystemIO
import TestSupport
import Testing

/// `repair index`, `repair packs` and `repair snapshots` on the command line.
struct RepairTests {
  /// The numbers of files that a changed byte may affect, of twelve in frames of five: in an
  /// encrypted repository, all files in the frames to which its piece of 64 KiB belongs.
  private static let losses = TestEncryption.isOn ? 1...10 : 1...1

  @Test func damagedIndexIsRebuilt() throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(21)
    for name in ["a", "b"] {
      try cli.directory.write(random.bytes(20_000), at: ByteString("tree/" + name))
    }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    #expect(
      try cli.succeed("repair index --repo repo") == "the index is intact: nothing to repair\n")
    let index = try #require(try cli.names(in: "repo/index").first)
    try cli.flip(byte: 150, of: "\(cli.directory.string)/repo/index/\(index)")
    let check = try cli.run("check --repo repo")
    #expect(check.code == 13, "\(check.output)")
    #expect(
      check.errors.contains("hint: 'sandboxctl repair index --repo repo' rebuilds"),
      "\(check.errors)")
    let dry = try cli.succeed("repair index --repo repo --dry-run")
    let answer = try cli.json("repair index --repo repo --json")
    // The names of the packs differ in each run, and so may their order in the index: a new object
    // with the same bytes replaces the damaged one, which is then not removed.
    let inPlace = try cli.names(in: "repo/index").contains(index)
    #expect(
      dry == "would index 2 packs with 5 blobs\n"
        + (inPlace ? "" : "would remove 1 damaged index object\n"))
    #expect(answer["packs"] as? Int == 2 && answer["unreadable"] as? Int == 0)
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
    try FileManager.default.removeItem(atPath: cli.directory.string + "/home/.cache")
    let restore = try cli.run("restore latest:folders/tree --to back --repo repo --quiet")
    #expect(restore.code == 0 && restore.errors.isEmpty, "\(restore.errors)")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    // Nothing is stored again.
    let packs = try cli.packs()
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    #expect(try cli.packs() == packs)
  }

  /// An unlisted, unreadable pack is named, and the exit status reports it.
  @Test func unreadablePackIsNamed() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("text", at: "tree/file")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    for name in try cli.names(in: "repo/index") {
      try FileManager.default.removeItem(atPath: "\(cli.directory.string)/repo/index/\(name)")
    }
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: try cli.largestPack()))
    try file.truncate(atOffset: 40)
    try file.close()
    let outcome = try cli.run("repair index --repo repo")
    #expect(outcome.code == 13)
    #expect(outcome.output.hasPrefix("indexed 1 pack with "), "\(outcome.output)")
    #expect(outcome.output.contains("1 pack cannot be read"), "\(outcome.output)")
    #expect(outcome.errors.contains("packs/"), "\(outcome.errors)")
  }

  /// From the check to a repository without damage, following the program's own hints.
  @Test func damagedPacksAreRepaired() throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(22)
    for number in 0..<12 {
      try cli.directory.write(random.bytes(200_000), at: ByteString("tree/\(number)"))
    }
    _ = try cli.succeed("init repo --plain")
    let backup = "backup --layout folder --root tree --repo repo --quiet"
    _ = try cli.succeed(backup)
    let idle = try cli.run("repair packs --repo repo")
    #expect(idle.code == 0 && idle.output == "no pack is damaged or missing: nothing to repair\n")
    #expect(idle.errors.contains("hint: 'sandboxctl check --read-data --repo repo'"))
    try cli.flip(byte: 1_000_000, of: try cli.largestPack())
    let check = try cli.run("check --read-data --repo repo")
    #expect(check.code == 13)
    #expect(check.errors.contains("'sandboxctl repair packs --repo repo'"), "\(check.errors)")
    let dry = try cli.run("repair packs --repo repo --dry-run")
    #expect(dry.code == 13)
    let repair = try cli.run("repair packs --repo repo --json")
    #expect(repair.code == 13 && repair.errors.contains("backup"), "\(repair.errors)")
    let answer = try CommandLine.object(Substring(repair.output.dropLast()))
    let packs = try #require(answer["packs"] as? [[String: Any]])
    #expect(packs.count == 1 && packs[0]["state"] as? String == "damaged")
    let lost = try #require(packs[0]["lost_blobs"] as? Int)
    let saved = try #require(packs[0]["saved_blobs"] as? Int)
    #expect(Self.losses.contains(lost) && saved + lost == 12)
    let kibibytes = Double(saved) * 200_000 / 1024
    let size =
      kibibytes < 1000
      ? String(format: "%.0f KiB", kibibytes) : String(format: "%.1f MiB", kibibytes / 1024)
    #expect(
      dry.output.contains(
        "would store \(saved) blobs (\(size)) again, \(lost) blob\(lost == 1 ? "" : "s") lost"),
      "\(dry.output)")
    let restore = try cli.run("restore latest:folders/tree --to part --repo repo --quiet")
    let restored = try cli.names(in: "part").count
    #expect(restore.code == 13 && restored == saved, "\(restore.errors)")
    // The source has the lost data.
    _ = try cli.succeed(backup)
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  /// From lost data to a repository that prune accepts, and to a complete backup.
  @Test func damagedSnapshotsAreWrittenAgain() throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(23)
    for number in 0..<12 {
      try cli.directory.write(random.bytes(200_000), at: ByteString("tree/\(number)"))
    }
    _ = try cli.succeed("init repo --plain")
    let backup = "backup --layout folder --root tree --repo repo --quiet"
    _ = try cli.succeed(backup)
    let idle = try cli.run("repair snapshots --repo repo")
    #expect(idle.code == 0, "\(idle.errors)")
    #expect(idle.output == "1 snapshot checked, nothing is lost: nothing to repair\n")
    #expect(idle.errors.contains("hint: 'sandboxctl check --read-data --repo repo'"))
    try cli.flip(byte: 1_000_000, of: try cli.largestPack())
    #expect(try cli.run("check --read-data --repo repo").code == 13)
    #expect(try cli.run("repair packs --repo repo --quiet").code == 13)
    let check = try cli.run("check --repo repo")
    #expect(
      check.code == 13 && check.errors.contains("'sandboxctl repair snapshots --repo repo'"),
      "\(check.errors)")
    let old = try #require(try cli.snapshots().first)
    let before = try cli.json("snapshots show latest --json --repo repo")
    let dry = try cli.run("repair snapshots latest --repo repo --dry-run")
    #expect(dry.code == 13 && dry.output.contains(": its content is lost"), "\(dry.output)")
    #expect(dry.output.hasSuffix("would repair 1 of 1 snapshot\n"), "\(dry.output)")
    #expect(try cli.snapshots() == [old])
    let repair = try cli.run("repair snapshots --forget --json --repo repo")
    #expect(repair.code == 13 && repair.errors.contains("backup"), "\(repair.errors)")
    let lines = try repair.output.split(separator: "\n").map { try CommandLine.object($0) }
    #expect(lines.count == 2 && lines[0]["id"] as? String == old)
    let lost = try #require(lines[0]["losses"] as? Int)
    #expect(lines[0]["removed"] as? Bool == true && Self.losses.contains(lost))
    let paths = "\(lost) lost path\(lost == 1 ? "" : "s")"
    #expect(dry.output.hasPrefix("snapshot \(old.prefix(8)): \(paths)\n"), "\(dry.output)")
    let new = try cli.snapshots()
    #expect(new == [lines[0]["new"] as? String])
    try expectTotals(of: cli, before, lost: lost)
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
    _ = try cli.succeed("prune --repo repo --quiet")
    _ = try cli.succeed("restore latest:folders/tree --to part --repo repo --quiet")
    #expect(try cli.names(in: "part").count == 12 - lost)
    // The source has the lost data.
    _ = try cli.succeed(backup)
    #expect(try cli.snapshots().count == 2 && cli.snapshots().first == new.first)
    #expect(try cli.json("snapshots show latest --json --repo repo")["sequence"] as? Int == 2)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
  }

  /// Expects the totals of a backup without some lost files of 200,000 bytes.
  private func expectTotals(of cli: CommandLine, _ before: [String: Any], lost: Int) throws {
    let now = try cli.json("snapshots show latest --json --repo repo")
    let old = try #require(before["totals"] as? [String: Any])
    let new = try #require(now["totals"] as? [String: Any])
    for (name, difference) in [
      ("entries", lost), ("files", lost), ("bytes", 200_000 * lost), ("stored", 0),
    ] {
      let count = try #require(old[name] as? Int)
      #expect(new[name] as? Int == count - difference, "\(name)")
    }
    let classes = try #require(new["classes"] as? [[String: Any]])
    #expect(classes.compactMap { $0["bytes"] as? Int }.reduce(0, +) == new["bytes"] as? Int)
    #expect(now["sequence"] as? Int == 1 && now["time"] as? String == before["time"] as? String)
    #expect(now["original"] is [String: Any])
  }
}
