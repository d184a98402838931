import Foundation
import SystemIO
import TestSupport
import Testing

/// A backup that is killed at any moment: what was there stays whole, and the next one succeeds.
@Suite(.serialized) struct KillTests {
  @Test func aBackupThatIsKilledHarmsNothing() throws {
    var random = Seeded.fresh()
    let cli = try CommandLine()
    try Self.addFiles(cli, "first", count: 2000, &random)
    _ = try Program.run("cp", ["-a", "tree", "original"], in: cli.folder.url)
    _ = try cli.succeed("init repo --plain")
    let start = Host.monotonicSeconds()
    _ = try cli.succeed(Self.backup)
    let duration = Host.monotonicSeconds() - start
    var known = try cli.snapshots()
    let first = try #require(known.first)
    var kills = 0
    var round = 0
    while kills < 5, round < 40 {
      round += 1
      try Self.addFiles(cli, "round \(round)", count: 600, &random)
      let moment = Double.random(in: 0.01...max(0.1, duration), using: &random)
      guard try Self.wasKilled(cli, after: moment) else {
        known = try cli.snapshots()
        continue
      }
      kills += 1
      // Killed after the snapshot was in place, a backup was done all the same.
      let listed = try cli.snapshots()
      #expect(Array(listed.prefix(known.count)) == known && listed.count <= known.count + 1)
      for pack in try cli.packs() { try Archive.check(pack) }
      try Self.expectRestored(cli, "\(first):folders/tree", "original", "old-\(round)")
      _ = try cli.succeed(Self.backup)
      try Self.expectRestored(cli, "latest:folders/tree", "tree", "new-\(round)")
      known = try cli.snapshots()
    }
    #expect(kills == 5, "in \(round) rounds of at most \(duration) s")
  }

  @Test func aRestoreThatIsKilledLeavesNoTarget() throws {
    var random = Seeded.fresh()
    let cli = try CommandLine()
    try Self.addFiles(cli, "first", count: 2000, &random)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(Self.backup)
    let restore = "restore latest:folders/tree --repo repo --to "
    let start = Host.monotonicSeconds()
    _ = try cli.succeed(restore + "whole")
    let duration = Host.monotonicSeconds() - start
    for round in 1...5 {
      let moment = Double.random(in: 0.01...duration, using: &random)
      let outcome = try cli.run(restore + "back-\(round)", under: Self.killer(after: moment))
      if try cli.isThere(ByteString("back-\(round)")) {
        // All of it is there or nothing.
        try TreeComparison.expectSame(cli.folder, "tree", ByteString("back-\(round)"))
      } else {
        #expect(outcome.code != 0)
        try Self.expectRestored(cli, "latest:folders/tree", "tree", "back-\(round)")
      }
    }
  }

  private static let backup = "backup --layout folder --root tree --repo repo --quiet"

  private static func killer(after seconds: Double) -> [String] {
    ["timeout", "--signal=KILL", String(format: "%.3f", seconds)]
  }

  private static func wasKilled(_ cli: CommandLine, after moment: Double) throws -> Bool {
    let outcome = try cli.run(backup, under: killer(after: moment))
    #expect([0, 137, -9].contains(outcome.code), "\(outcome.code): \(outcome.errors)")
    return outcome.code != 0
  }

  private static func expectRestored(
    _ cli: CommandLine, _ what: String, _ expected: ByteString, _ target: String
  ) throws {
    _ = try cli.succeed("restore \(what) --to \(target) --repo repo --quiet")
    try TreeComparison.expectSame(cli.folder, expected, ByteString(target))
  }

  /// Files of up to 8 KB, in folders of a hundred, and one of 3 MB.
  private static func addFiles(
    _ cli: CommandLine, _ name: String, count: Int, _ random: inout Seeded
  ) throws {
    let top = ByteString("tree").appending(ByteString(name))
    for number in 0..<count {
      let folder = top.appending(ByteString("\(number / 100)"))
      let bytes = random.bytes(Int.random(in: 0...8_000, using: &random))
      try cli.folder.write(bytes, at: folder.appending(ByteString("file \(number)")))
    }
    try cli.folder.write(random.bytes(3_000_000), at: top.appending("large"))
  }
}
