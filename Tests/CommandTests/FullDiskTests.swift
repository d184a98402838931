import Foundation
import SystemIO
import TestSupport
import Testing

/// A volume that is full: nothing is half done, and what was there stays readable.
@Suite(.serialized, .enabled(if: SmallVolume.isPermitted))
struct FullDiskTests {
  @Test func aBackupThatDoesNotFitLeavesTheEarlierOne() throws {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.folder.string + "/small", "size=9m")
    defer { volume.unmount() }
    var random = Seeded(3)
    try cli.folder.write(random.bytes(1_000_000), at: "tree/first")
    _ = try cli.succeed("init small/repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo small/repo")
    let before = try cli.snapshots("small/repo")
    for number in 0..<6 {
      try cli.folder.write(random.bytes(3_000_000), at: ByteString("tree/more-\(number)"))
    }
    var transcript = Transcript(cli)
    try transcript.run("backup --layout folder --root tree --repo small/repo --quiet", exits: 1)
    try transcript.expectSnapshot("disk-full-backup")
    #expect(try cli.snapshots("small/repo") == before)
    #expect(try cli.names(in: "small/repo/leases").isEmpty)
    for pack in try cli.packs("small/repo") { try Archive.check(pack) }
    _ = try cli.succeed("restore latest:folders/tree --to back --repo small/repo")
    #expect(try cli.names(in: "back") == ["first"])
    // Once there is room the same command succeeds.
    try volume.grow("size=64m")
    _ = try cli.succeed("backup --layout folder --root tree --repo small/repo --quiet")
    _ = try cli.succeed("restore latest:folders/tree --to whole --repo small/repo")
    try TreeComparison.expectSame(cli.folder, "tree", "whole")
  }

  /// What no look beforehand can know: the volume is full when the run is under way.
  @Test func aVolumeThatFillsMeanwhileKeepsTheEarlierBackup() throws {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.folder.string + "/small", "size=64m,nr_inodes=1000")
    defer { volume.unmount() }
    try cli.folder.write("first", at: "tree/first")
    _ = try cli.succeed("init small/repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo small/repo")
    let before = try cli.snapshots("small/repo")
    try cli.folder.write("second", at: "tree/second")
    let free = try Folder.open(path: cli.folder.path("small")).space().availableInodes
    // The lease, its sign of life and one pack have room.
    try volume.grow("nr_inodes=\(1000 - free + 3)")
    let outcome = try cli.run("backup --layout folder --root tree --repo small/repo --quiet")
    #expect(outcome.code == 1 && outcome.errors.contains("no space or no inode left"))
    #expect(try cli.snapshots("small/repo") == before)
    #expect(try cli.names(in: "small/repo/leases").isEmpty)
    try volume.grow("nr_inodes=1000")
    _ = try cli.succeed("backup --layout folder --root tree --repo small/repo --quiet")
    _ = try cli.succeed("restore latest:folders/tree --to whole --repo small/repo")
    try TreeComparison.expectSame(cli.folder, "tree", "whole")
  }

  @Test func aRestoreThatDoesNotFitLeavesNothing() throws {
    let cli = try CommandLine()
    var random = Seeded(4)
    for number in 0..<4 {
      try cli.folder.write(random.bytes(2_000_000), at: ByteString("tree/\(number)"))
    }
    _ = try cli.succeed("init repo --plain")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo")
    let volume = try SmallVolume(at: cli.folder.string + "/small", "size=4m")
    defer { volume.unmount() }
    var transcript = Transcript(cli)
    let line = "restore latest:folders/tree --to small/back --repo repo"
    let outcome = try cli.run(line, under: ["taskset", "-c", "0"])
    #expect(outcome.code == 1)
    transcript.note(line, outcome)
    try transcript.expectSnapshot("disk-full-restore")
    #expect(try cli.names(in: "small").isEmpty)
  }

  /// Into a folder that is there: full by bytes or by inodes, everything in it is as it was; with room
  /// the same command succeeds.
  @Test(arguments: ["size=6m", "size=64m,nr_inodes=60"])
  func aRestoreIntoAFolderThatDoesNotFitLeavesItAsItWas(_ options: String) throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(6)
    let volume = try SmallVolume(at: cli.folder.string + "/small", options)
    defer { volume.unmount() }
    for name in ["tree", "small/into"] {
      try cli.folder.write(random.bytes(2_000_000), at: ByteString("\(name)/large"))
      for number in 0..<40 {
        try cli.folder.write(random.bytes(100), at: ByteString("\(name)/\(number)"))
      }
    }
    try cli.folder.write(random.bytes(2_500_000), at: "tree/larger")
    try cli.folder.write("mine", at: "small/into/mine")
    let before = try cli.records("small/into")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let merge =
      "restore latest:folders/tree --to small/into --repo repo --overwrite always --delete --quiet"
    let outcome = try cli.run(merge)
    #expect(outcome.code == 1 && outcome.errors.contains("no space"), "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: "), "\(outcome.errors)")
    #expect(try cli.records("small/into") == before)
    try volume.grow("size=64m,nr_inodes=1000")
    _ = try cli.succeed(merge)
    try TreeComparison.expectSame(cli.folder, "tree", "small/into")
  }

  @Test func aNewFolderForWhichInodesLackIsNotMade() throws {
    let cli = try CommandLine(inMemory: true)
    for number in 0..<40 { try cli.folder.write("x", at: ByteString("tree/\(number)")) }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let volume = try SmallVolume(at: cli.folder.string + "/small", "size=4m,nr_inodes=30")
    defer { volume.unmount() }
    let outcome = try cli.run("restore latest:folders/tree --to small/back --repo repo")
    #expect(outcome.code == 1 && outcome.errors.contains("no inode left"), "\(outcome.errors)")
    #expect(try cli.names(in: "small").isEmpty)
  }

  @Test func aRepositoryThatDoesNotFitIsNone() throws {
    let cli = try CommandLine()
    for options in ["size=1m", "size=64m,nr_inodes=50"] {
      let volume = try SmallVolume(at: cli.folder.string + "/small", options)
      defer { volume.unmount() }
      let outcome = try cli.run("init small/repo --plain")
      #expect(outcome.code == 1)
      #expect(outcome.errors.contains("no space"), "\(outcome.errors)")
      #expect(try cli.run("snapshots --repo small/repo").code == 10)
    }
  }
}

/// A small volume in memory, mounted for a test.
private struct SmallVolume {
  let path: String

  /// Whether this user may mount one.
  static let isPermitted: Bool = {
    guard Host.userID == 0, let folder = try? TemporaryFolder("mount") else { return false }
    guard let volume = try? SmallVolume(at: folder.string + "/small", "size=1m") else {
      print("skipped: no volume can be mounted here")
      return false
    }
    volume.unmount()
    return true
  }()

  init(at path: String, _ options: String) throws {
    self.path = path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try mount(options)
  }

  /// Mounts it anew, larger, with what is in it.
  func grow(_ options: String) throws { try mount("remount," + options) }

  private func mount(_ options: String) throws {
    let outcome = try Program.run("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path])
    if outcome.code != 0 { throw Program.Failure(description: outcome.errors) }
  }

  func unmount() { _ = try? Program.run("umount", ["-l", path]) }
}
