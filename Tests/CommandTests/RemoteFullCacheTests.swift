import Foundation
import SystemIO
import TestSupport
import Testing

/// A full volume with this host's cache, during commands on repositories of other hosts. The cache
/// is optional: commands work without it, and a backup that needs space for a pack reports this and
/// loses nothing.
@Suite(.serialized, .enabled(if: SmallVolume.isPermitted)) struct RemoteFullCacheTests {
  private static let options = "size=8m,nr_inodes=1000,mode=700"

  /// Mounts the volume with the cache of the program.
  private func mountCache(_ cli: CommandLine) throws -> SmallVolume {
    try SmallVolume(at: cli.directory.string + "/home/.cache", Self.options)
  }

  /// Fills the volume: with `inodes` no file can be created, otherwise no byte written.
  private func fill(_ volume: SmallVolume, inodes: Bool) throws {
    if inodes {
      let space = try Directory.open(path: ByteString(volume.path)).space()
      return try volume.grow("nr_inodes=\(1000 - space.availableInodes)")
    }
    _ = try Program.run("dd", ["if=/dev/zero", "of=\(volume.path)/filling", "bs=4k"])
    let space = try Directory.open(path: ByteString(volume.path)).space()
    #expect(space.available == 0)
  }

  @Test(arguments: [false, true]) func commandsDoWithoutACache(inodes: Bool) throws {
    let fixture = try S3CommandFixture()
    let cli = fixture.cli
    let volume = try mountCache(cli)
    defer { volume.unmount() }
    _ = try fixture.succeed("init s3://bucket/place --plain")
    _ = try fixture.backUp()
    try fill(volume, inodes: inodes)
    try cli.directory.write("changed", at: "data/d0/0")
    _ = try fixture.backUp()
    #expect(try fixture.snapshots().count == 2)
    for line in [
      "ls latest --recursive", "find 11", "stats", "diff latest~1 latest", "check --read-data",
      "restore latest:folders/data --to back", "forget --keep-last 1 --prune", "prune",
      "snapshots pin latest", "repair index", "check --read-data-subset 50%", "leases",
    ] { _ = try fixture.succeed("\(line) --repo s3://bucket/place") }
    try ChangeDetector.expectSame(cli.directory, "data", "back")
    #expect(try fixture.snapshots().count == 1)
    #expect(try fixture.store.keys().allSatisfy { !$0.contains("/leases/") })
    _ = try fixture.succeed("init copy --plain --no-default")
    _ = try fixture.succeed("copy --to copy --repo s3://bucket/place")
    _ = try fixture.succeed("mirror --to mirror --repo s3://bucket/place")
    for name in ["copy", "mirror"] { _ = try fixture.succeed("check --read-data --repo \(name)") }
  }

  /// A pack of more than 1 MiB for a bucket is spooled on the volume.
  @Test(arguments: [false, true]) func aBackupWithoutRoomForAPackIsContinued(inodes: Bool) throws {
    let fixture = try S3CommandFixture()
    let cli = fixture.cli
    let volume = try mountCache(cli)
    defer { volume.unmount() }
    _ = try fixture.succeed("init s3://bucket/place --plain")
    _ = try fixture.backUp()
    var random = Seeded(11)
    try cli.directory.write(random.bytes(3_000_000), at: "data/large")
    try fill(volume, inodes: inodes)
    let outcome = try fixture.run(
      "backup --root data --layout folder --repo s3://bucket/place")
    #expect(outcome.code == 1, "\(outcome)")
    #expect(outcome.errors.contains("no space or inodes left"), "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: free space"), "\(outcome.errors)")
    #expect(outcome.errors.contains("XDG_CACHE_HOME"), "\(outcome.errors)")
    #expect(try fixture.snapshots().count == 1)
    #expect(try fixture.store.keys().allSatisfy { !$0.contains("/leases/") })
    _ = try fixture.succeed("check --read-data --repo s3://bucket/place")
    try volume.grow("size=64m,nr_inodes=1000")
    _ = try fixture.backUp()
    #expect(try fixture.snapshots().count == 2)
    _ = try fixture.succeed(
      "restore latest:folders/data --to back --repo s3://bucket/place")
    try ChangeDetector.expectSame(cli.directory, "data", "back")
  }

  /// A server with files receives the bytes of a pack while the pack is made.
  @Test(SFTPServer.isInstalled) func aBackupToAServerNeedsNoRoomForAPack() throws {
    let cli = try CommandLine()
    let server = try SFTPServer(for: cli)
    let volume = try mountCache(cli)
    defer { volume.unmount() }
    _ = try cli.succeed("init \(server.location()) --plain \(server.option)")
    var random = Seeded(12)
    try cli.directory.write(random.bytes(3_000_000), at: "data/large")
    try fill(volume, inodes: false)
    _ = try cli.succeed("backup --root data --layout folder")
    _ = try cli.succeed("restore latest:folders/data --to back")
    try ChangeDetector.expectSame(cli.directory, "data", "back")
    _ = try cli.succeed("check --read-data")
  }
}
