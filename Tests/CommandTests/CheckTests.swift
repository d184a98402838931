import Foundation
import SystemIO
import TestSupport
import Testing

/// The output and the exit status of `check`.
struct CheckTests {
  private static func make() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(7)
    try cli.directory.write(random.bytes(3_000_000), at: "tree/a-first")
    try cli.directory.write(random.bytes(3_000_000), at: "tree/b-second")
    _ = try cli.succeed("init repo --plain")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo --quiet")
    return cli
  }

  @Test func textOutputIsAsRecorded() throws {
    let cli = try Self.make()
    var transcript = Transcript(cli)
    try transcript.run("check --repo repo", exits: 0)
    try transcript.run("check --read-data --repo repo", exits: 0)
    try transcript.run("check --read-data --quiet --repo repo", exits: 0)
    let pack = try cli.largestPack()
    try cli.flip(byte: 1_000_000, of: pack)
    try transcript.run("check --repo repo", exits: 0)
    try transcript.run("check --read-data --repo repo", exits: 13)
    try transcript.run("check --read-data --quiet --repo repo", exits: 13)
    try FileManager.default.removeItem(atPath: pack)
    try transcript.run("check --quiet --repo repo", exits: 13)
    try transcript.expectSnapshot("check")
  }

  /// The host that made the snapshots knows that there were some. The last one may be removed.
  @Test func lostSnapshotsAreDamageAndRemovedOnesAreNot() throws {
    let cli = try Self.make()
    let id = try #require(try cli.snapshots().first)
    _ = try cli.succeed("forget \(id) --allow-last --repo repo")
    let removed = try cli.run("check --repo repo")
    #expect(removed.code == 0 && removed.output.hasSuffix("no damage found\n"), "\(removed)")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo --quiet")
    let lost = try #require(try cli.snapshots().first)
    try FileManager.default.removeItem(atPath: cli.path(ofSnapshot: lost))
    #expect(try cli.snapshots().isEmpty)
    let found = try cli.run("check --repo repo")
    #expect(found.code == 13, "\(found)")
    let names = "snapshots: the snapshot that this host knows does not exist: \(lost.prefix(8)) of "
    #expect(found.output.contains("damaged  " + names), "\(found.output)")
    #expect(found.output.hasSuffix("1 object damaged; there is no readable snapshot\n"))
    #expect(found.errors.contains("from a copy of the repository"), "\(found.errors)")
    // The next backup is the last one that knows it.
    let line = "backup --layout folder --root tree --repo repo --quiet"
    let after = try cli.run(line + " --dry-run")
    #expect(after.code == 0 && !after.errors.contains("does not exist"), "\(after)")
    let warned = try cli.run(line)
    let warning = "cannot find the earlier 'snapshots': the snapshot that this host knows does not "
    #expect(warned.code == 0 && warned.errors.contains(warning), "\(warned)")
    #expect(try cli.run(line).errors.isEmpty)
    #expect(try cli.run("check --repo repo").code == 0)
    let next = try #require(try cli.snapshots().last)
    for id in try cli.snapshots() {
      try FileManager.default.removeItem(atPath: cli.path(ofSnapshot: id))
    }
    let several = try cli.run("check --repo repo")
    #expect(several.code == 13 && several.output.contains("none of the 2 snapshots"), "\(several)")
    #expect(several.output.contains("exists: \(next.prefix(8)) of "), "\(several)")
    // As the hint says, for snapshots that another host has removed.
    _ = try cli.succeed("cache clear --repo repo")
    #expect(try cli.run("check --repo repo").code == 0)
  }

  /// Runs with a percentage read different packs each time, and together read each pack once; so do
  /// groups.
  @Test func partialRunsTogetherReadAll() throws {
    let cli = try Self.make()
    var random = Seeded(9)
    for size in [1_000_000, 2_000_000, 1_500_000] {
      try cli.directory.write(random.bytes(size), at: "tree/c-third")
      try cli.succeedInOrder("backup --layout folder --root tree --repo repo --quiet")
    }
    func read(_ part: String) throws -> [Int] {
      let line = "check --read-data-subset \(part) --json --repo repo"
      let summary = try cli.jsonLines(line).last?["summary"] as? [String: Any]
      return ["packs_read", "bytes_read", "packs", "stored_bytes"].map {
        summary?[$0] as? Int ?? -1
      }
    }
    var (packs, bytes) = (0, 0)
    var wholes = 0
    for run in 1...8 {
      let found = try read("25%")
      packs += found[0]
      bytes += found[1]
      #expect(found[0] > 0 && found[0] < found[2])
      guard packs == found[2], bytes == found[3] else { continue }
      // A round is complete within four runs.
      wholes += 1
      (packs, bytes) = (0, 0)
      #expect(run <= 4 * wholes)
    }
    #expect(wholes >= 2)
    let groups = try (1...3).map { try read("\($0)/3") }
    #expect(groups.map { $0[0] }.reduce(0, +) == groups[0][2])
    #expect(groups.map { $0[1] }.reduce(0, +) == groups[0][3])
    let all = try read("100%")
    #expect(all[0] == all[2] && all[1] == all[3])
  }

  @Test func jsonOutputNamesDamageAndCost() throws {
    let cli = try Self.make()
    let whole = try cli.jsonLines("check --read-data --json --repo repo")
    #expect(whole.count == 1)
    let summary = try #require(whole.first?["summary"] as? [String: Any])
    #expect(summary["damaged"] as? Int == 0 && summary["packs_read"] as? Int == 2)
    #expect(summary["bytes_read"] as? Int == summary["stored_bytes"] as? Int)
    try cli.flip(byte: 1_000_000, of: try cli.largestPack())
    let outcome = try cli.run("check --read-data --json --repo repo")
    #expect(outcome.code == 13 && outcome.errors.isEmpty)
    let lines = try outcome.output.split(separator: "\n").map { try CommandLine.object($0) }
    #expect(lines.compactMap { $0["finding"] as? String } == ["damage", "cost"])
    #expect((lines[0]["object"] as? String)?.hasPrefix("packs/") == true)
    #expect(lines[1].path() == "folders/tree/a-first")
    #expect(lines[1]["snapshots"] as? [String] == (try cli.snapshots()))
    #expect((lines[2]["summary"] as? [String: Any])?["costs"] as? Int == 1)
  }

  /// A damaged snapshot can be restored from a copy, or removed.
  @Test func aDamagedSnapshotHasARemedy() throws {
    let cli = try Self.make()
    let name = try #require(try cli.names(in: "repo/snapshots").first)
    try cli.directory.write("x", at: ByteString("repo/snapshots/\(name)"))
    try Self.expectRemedy("forget --force ID", in: cli)
  }

  /// A pinned snapshot that is lost can be copied again or abandoned.
  @Test func aLostPinnedSnapshotHasARemedy() throws {
    let cli = try Self.make()
    _ = try cli.succeed("snapshots pin latest --repo repo")
    let name = try #require(try cli.names(in: "repo/snapshots").first)
    // Without any snapshot, more than the pinned one would be reported.
    _ = try cli.succeed("backup --layout folder --root tree --repo repo")
    try FileManager.default.removeItem(
      atPath: "\(cli.directory.string)/repo/snapshots/\(name)")
    try Self.expectRemedy("snapshots unpin", in: cli)
  }

  /// Expects one damaged object, with a remedy that contains `words` in text and in JSON.
  private static func expectRemedy(_ words: String, in cli: CommandLine) throws {
    let text = try cli.run("check --repo repo")
    #expect(text.code == 13 && text.errors.contains("hint: "), "\(text)")
    #expect(text.errors.contains(words), "\(text.errors)")
    let outcome = try cli.run("check --json --repo repo")
    #expect(outcome.code == 13 && outcome.errors.isEmpty, "\(outcome)")
    let lines = try outcome.output.split(separator: "\n").map { try CommandLine.object($0) }
    let hint = try #require(lines.first?["hint"] as? String)
    #expect(lines[0]["finding"] as? String == "damage" && hint.contains(words))
    let summary = try #require(lines.last?["summary"] as? [String: Any])
    #expect(summary["damaged"] as? Int == 1 && summary["hints"] as? [String] == [hint])
  }

  /// Read permission is sufficient for a check.
  @Test func checkDoesNotChangeTheRepository() throws {
    let cli = try Self.make()
    let before = try OddTree.listing(cli.directory, "repo")
    _ = try cli.succeed("check --repo repo")
    #expect(try OddTree.listing(cli.directory, "repo") == before)
    // A check that reads data holds a lease, which changes only the time of the directory.
    for line in ["check --read-data", "check --read-data-subset 50%"] {
      _ = try cli.succeed(line + " --repo repo")
    }
    #expect(try cli.names(in: "repo/leases").isEmpty)
    let after = try OddTree.listing(cli.directory, "repo")
    #expect(Set(after.keys) == Set(before.keys))
    #expect(after.filter { $0.value != before[$0.key] }.map(\.key) == ["leases"])
  }
}
