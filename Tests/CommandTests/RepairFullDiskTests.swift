import Foundation
import SystemIO
import TestSupport
import Testing

/// Repairs and pins on a full volume: no snapshot restores less than before, no lease is left, and
/// once there is space the same command completes the work.
@Suite(.serialized, .enabled(if: SmallVolume.isPermitted)) struct RepairFullDiskTests {
  typealias Work = PruneKillTests.Work

  private static let repository = "small/repo"

  /// Fills the volume: with `inodes` no file can be created, otherwise no byte written.
  private func fill(_ volume: SmallVolume, inodes: Bool, _ cli: CommandLine) throws {
    if inodes {
      let space = try Directory.open(path: cli.directory.path("small")).space()
      let used = 10_000 - space.availableInodes
      return try volume.grow("nr_inodes=\(used)")
    }
    _ = try Program.run("dd", ["if=/dev/zero", "of=small/filling", "bs=4k"], in: cli.directory.url)
  }

  @Test(arguments: [Work.repairPacks, .repairSnapshots, .repairIndex], [false, true])
  func repairOnAFullVolumeChangesNoSnapshot(_ work: Work, inodes: Bool) throws {
    let cli = try PruneKillTests.prepare(work)
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=24m,nr_inodes=10000")
    defer { volume.unmount() }
    try cli.copy("repo", to: Self.repository)
    let before = try PruneKillTests.restored(cli, from: Self.repository)
    try #require(before.count == 3)
    try fill(volume, inodes: inodes, cli)
    let line = "\(work.rawValue) --repo \(Self.repository)"
    let outcome = try cli.run(line)
    #expect(outcome.code == 1 && outcome.errors.contains("no space"), "\(outcome)")
    #expect(outcome.errors.contains("hint: free space"), "\(outcome.errors)")
    #expect(try cli.names(in: "small/repo/leases").isEmpty)
    #expect(try PruneKillTests.restored(cli, from: Self.repository) == before)
    try volume.grow("size=64m,nr_inodes=10000")
    let next = try cli.run(line)
    #expect([0, 13].contains(next.code), "\(next)")
    let after = try PruneKillTests.restored(cli, from: Self.repository)
    #expect(after.count == 3)
    #expect(after.values.allSatisfy(before.values.contains), "the same files are restored")
    #expect(try cli.names(in: "small/repo/leases").isEmpty)
  }

  @Test func pinOnAVolumeWithoutInodesIsAnError() throws {
    let cli = try PruneKillTests.prepare(.forget)
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=24m,nr_inodes=10000")
    defer { volume.unmount() }
    try cli.copy("repo", to: Self.repository)
    let ids = try cli.snapshots(Self.repository)
    try fill(volume, inodes: true, cli)
    let outcome = try cli.run("snapshots pin \(ids[0]) --repo \(Self.repository)")
    #expect(outcome.code == 1 && outcome.errors.contains("no space"), "\(outcome)")
    #expect(outcome.errors.contains("hint: free space"), "\(outcome.errors)")
    #expect(try cli.names(in: "small/repo/leases").isEmpty)
    try volume.grow("nr_inodes=10000")
    _ = try cli.succeed("snapshots pin \(ids[0]) --repo \(Self.repository)")
    _ = try cli.succeed("forget --keep-last 1 --repo \(Self.repository) --quiet")
    #expect(try cli.snapshots(Self.repository) == [ids[0], ids[2]])
  }
}
