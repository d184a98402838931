import Foundation
import SystemIO
import TestSupport
import Testing

/// A full volume: no operation is left half done, and existing data stays readable.
@Suite(.serialized, .enabled(if: SmallVolume.isPermitted))
struct FullDiskTests {
  @Test func backupThatDoesNotFitKeepsTheEarlierOne() throws {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=9m")
    defer { volume.unmount() }
    var random = Seeded(3)
    try cli.directory.write(random.bytes(1_000_000), at: "tree/first")
    _ = try cli.succeed("init small/repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo small/repo")
    let before = try cli.snapshots("small/repo")
    for number in 0..<6 {
      try cli.directory.write(random.bytes(3_000_000), at: ByteString("tree/more-\(number)"))
    }
    var transcript = Transcript(cli)
    try transcript.run("backup --layout folder --root tree --repo small/repo --quiet", exits: 1)
    try transcript.expectSnapshot("disk-full-backup")
    #expect(try cli.snapshots("small/repo") == before)
    #expect(try cli.names(in: "small/repo/leases").isEmpty)
    for pack in try cli.packs("small/repo") { try Archive.check(pack) }
    _ = try cli.succeed("restore latest:folders/tree --to back --repo small/repo")
    #expect(try cli.names(in: "back") == ["first"])
    // Without the check, the backup begins, and ends when the volume is full.
    let unchecked = try cli.run(
      "backup --layout folder --root tree --repo small/repo --quiet --no-space-check")
    #expect(unchecked.code == 1 && unchecked.errors.contains("no space"), "\(unchecked.errors)")
    #expect(!unchecked.errors.contains("must be stored"))
    #expect(try cli.snapshots("small/repo") == before)
    // With enough space the same command succeeds.
    try volume.grow("size=64m")
    _ = try cli.succeed("backup --layout folder --root tree --repo small/repo --quiet")
    _ = try cli.succeed("restore latest:folders/tree --to whole --repo small/repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "whole")
  }

  /// The remains of an `init` for which the volume had no space are reported as such.
  @Test func remainsOfAnInitAreNamed() throws {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=3m")
    defer { volume.unmount() }
    let line = "init small/repo --plain --no-default"
    let full = try cli.run(line)
    #expect(full.code == 1 && full.errors.contains("no space"), "\(full)")
    try volume.grow("size=64m")
    try cli.directory.write("secret", at: "word")
    let key = "--passphrase-file word --recovery-key key"
    for line in [line, line.replacing("--plain", with: key)] {
      let again = try cli.run(line)
      #expect(again.code == 1 && again.errors.contains("was not completed"), "\(again.errors)")
      #expect(again.errors.contains("hint: delete the directory"), "\(again.errors)")
    }
    // Other content is not reported that way.
    try cli.directory.write("mine", at: "small/repo/snapshots/mine")
    #expect(try cli.run(line).errors.contains("the directory is not empty"))
    try cli.directory.directory.removeTree("small/repo")
    _ = try cli.succeed(line)
  }

  /// A volume that fills up during the run, which no check in advance can detect.
  @Test func volumeThatFillsUpKeepsTheEarlierBackup() throws {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=64m,nr_inodes=1000")
    defer { volume.unmount() }
    try cli.directory.write("first", at: "tree/first")
    _ = try cli.succeed("init small/repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo small/repo")
    let before = try cli.snapshots("small/repo")
    try cli.directory.write("second", at: "tree/second")
    let free = try Directory.open(path: cli.directory.path("small")).space().availableInodes
    // There is space for the lease, its heartbeat file and one pack.
    try volume.grow("nr_inodes=\(1000 - free + 3)")
    let outcome = try cli.run("backup --layout folder --root tree --repo small/repo --quiet")
    #expect(outcome.code == 1 && outcome.errors.contains("no space or inodes left"))
    #expect(try cli.snapshots("small/repo") == before)
    #expect(try cli.names(in: "small/repo/leases").isEmpty)
    try volume.grow("nr_inodes=1000")
    _ = try cli.succeed("backup --layout folder --root tree --repo small/repo --quiet")
    _ = try cli.succeed("restore latest:folders/tree --to whole --repo small/repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "whole")
  }

  /// A copy and a mirror onto a full volume end with an error, and continue once there is space.
  @Test(arguments: ["copy --to small/second", "mirror --to small/mirror"])
  func copyThatDoesNotFitIsContinued(_ command: String) throws {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=9m")
    defer { volume.unmount() }
    var random = Seeded(3)
    for number in 0..<6 {
      try cli.directory.write(random.bytes(3_000_000), at: ByteString("tree/\(number)"))
    }
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("init small/second --plain --no-default")
    if command.hasPrefix("mirror") { try cli.directory.directory.removeTree("small/second") }
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let target = command.hasPrefix("mirror") ? "small/mirror" : "small/second"
    let outcome = try cli.run("\(command) --repo repo --quiet")
    #expect(outcome.code == 1 && outcome.errors.contains("no space"), "\(outcome)")
    #expect(
      try cli.snapshots(target).isEmpty && cli.names(in: ByteString("\(target)/leases")).isEmpty)
    #expect(try cli.run("check --read-data --quiet --repo \(target)").code == 0)
    try volume.grow("size=64m")
    _ = try cli.succeed("\(command) --repo repo --quiet")
    _ = try cli.succeed("restore latest:folders/tree --to back --repo \(target) --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  /// On a full volume the removal of snapshots and a prune use the reserve, and then create it
  /// again.
  @Test(arguments: [false, true])
  func fullVolumeIsPruned(isFullBefore: Bool) throws {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=80m")
    defer { volume.unmount() }
    var random = Seeded(9)
    _ = try cli.succeed("init small/repo --plain")
    for number in 0..<3 {
      try cli.directory.write(random.bytes(15_000_000), at: "tree/file")
      try cli.directory.write(random.bytes(1000), at: ByteString("tree/\(number)"))
      _ = try cli.succeed("backup --layout folder --root tree --repo small/repo --quiet")
    }
    let fill = {
      _ = try Program.run(
        "dd", ["if=/dev/zero", "of=small/filling", "bs=4k"], in: cli.directory.url)
    }
    if isFullBefore { try fill() }
    _ = try cli.succeed("forget --keep-last 1 --repo small/repo --quiet")
    if !isFullBefore { try fill() }
    let available = try Directory.open(path: cli.directory.path("small")).space().available
    #expect(available < (isFullBefore ? 64 << 10 : 1))
    let packs = try cli.packs("small/repo").count
    let output = try cli.succeed("prune --repo small/repo")
    #expect(output.hasSuffix(" freed\n"), "\(output)")
    #expect(try cli.packs("small/repo").count < packs)
    #expect(try cli.directory.read("small/repo/reserve").count == 4 << 20)
    #expect(try cli.names(in: "small/repo/leases").isEmpty)
    #expect(try cli.succeed("check --read-data --repo small/repo").hasSuffix("no damage found\n"))
    _ = try cli.succeed("restore latest:folders/tree --to whole --repo small/repo --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "whole")
  }

  @Test func restoreThatDoesNotFitIsNotStarted() throws {
    let cli = try CommandLine()
    var random = Seeded(4)
    for number in 0..<4 {
      try cli.directory.write(random.bytes(2_000_000), at: ByteString("tree/\(number)"))
    }
    _ = try cli.succeed("init repo --plain")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo")
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=4m")
    defer { volume.unmount() }
    let line = "restore latest:folders/tree --to small/back --repo repo"
    var transcript = Transcript(cli)
    try transcript.run(line, exits: 1)
    try transcript.run(line + " --dry-run", exits: 1)
    try transcript.expectSnapshot("disk-full-restore")
    let dry = try cli.run(line + " --dry-run --json")
    #expect(dry.code == 1)
    let space = try #require(CommandLine.object(dry.output)["space"] as? [[String: Any]])
    #expect(space.count == 1 && space[0]["path"] as? String == "small")
    #expect(space[0]["bytes_needed"] as? Int == 4 * 489 * 4096)
    #expect(space[0]["bytes_free"] as? Int == 4 << 20)
    // Four files and their directory, and the staging directory with its two subdirectories.
    #expect(space[0]["entries_needed"] as? Int == 8)
    #expect(space[0]["entries_free"] as? Int ?? 0 > 8)
    #expect(space[0]["fits"] as? String == "no")
    #expect(try cli.names(in: "small").isEmpty)
    // A part of the snapshot fits.
    _ = try cli.succeed("restore latest:folders/tree/1 --to small/one --repo repo")
  }

  /// Holes need no space, whether recorded in the file's entry or in lists; neither do additional
  /// hard links.
  @Test func holesAndHardLinksNeedNoSpace() throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(5)
    let tree = try Directory.make(path: cli.directory.path("tree"))
    let large = try tree.create("large")
    try large.truncate(to: 64 << 20)
    try large.write(random.bytes(9000))
    let pieces = try tree.create("pieces")
    try pieces.truncate(to: 300 << 16)
    for number in 0..<300 {
      try pieces.seek(to: UInt64(number) << 16)
      try pieces.write(random.bytes(4096))
    }
    try cli.directory.write(random.bytes(1_500_000), at: "tree/names/0")
    let names = try tree.directory("names")
    for number in 1..<4 { try names.createHardLink(ByteString("\(number)"), to: "0", in: names) }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=4m")
    defer { volume.unmount() }
    let line = "restore latest:folders/tree --to small/back --repo repo"
    let plan = try cli.json(line + " --dry-run --json")
    let space = try #require((plan["space"] as? [[String: Any]])?.first)
    let needed = 3 * 4096 + 300 * 4096 + (1_500_000 + 4095) / 4096 * 4096
    #expect(space["bytes_needed"] as? Int == needed && space["fits"] as? String == "yes")
    _ = try cli.succeed(line)
    try ChangeDetector.expectSame(cli.directory, "tree", "small/back")
    // The whole volume except this amount was needed.
    let free = try Directory.open(path: cli.directory.path("small")).space().available
    #expect(free + UInt64(needed) == 4 << 20)
  }

  /// Staged files of a killed run are removed before anything is refused; a dry run cannot know how
  /// much space that frees, and says so.
  @Test func remainsOfAKilledRunDoNotBlockARestore() throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(7)
    try cli.directory.write(random.bytes(2_000_000), at: "tree/file")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=4m")
    defer { volume.unmount() }
    let left: ByteString = "small/.sandboxctl-restore-0123456789abcdef"
    try cli.directory.write([], at: left.appending("lock"))
    try cli.directory.write(random.bytes(3_000_000), at: left.appending("tree/back/file"))
    let line = "restore latest:folders/tree --to small/back --repo repo"
    let dry = try cli.run(line + " --dry-run")
    #expect(dry.code == 0)
    #expect(
      dry.errors.contains("there may not be enough space in 'small': 1.9 MiB are needed"),
      "\(dry.errors)")
    _ = try cli.succeed(line)
    #expect(try cli.names(in: "small") == ["back"])
  }

  /// Into an existing directory on a volume without bytes or inodes: everything in it is unchanged;
  /// with enough space the same command succeeds.
  @Test(arguments: ["size=6m", "size=64m,nr_inodes=60"])
  func restoreThatDoesNotFitKeepsTheDirectory(_ options: String) throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(6)
    let volume = try SmallVolume(at: cli.directory.string + "/small", options)
    defer { volume.unmount() }
    for name in ["tree", "small/into"] {
      try cli.directory.write(random.bytes(2_000_000), at: ByteString("\(name)/large"))
      for number in 0..<40 {
        try cli.directory.write(random.bytes(100), at: ByteString("\(name)/\(number)"))
      }
    }
    try cli.directory.write(random.bytes(2_500_000), at: "tree/larger")
    try cli.directory.write("mine", at: "small/into/mine")
    let before = try cli.records("small/into")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let merge =
      "restore latest:folders/tree --to small/into --repo repo --overwrite always --delete --quiet"
    let outcome = try cli.run(merge)
    let reason =
      options.contains("nr") ? "files and directories are needed" : "are needed, but only"
    #expect(outcome.code == 1 && outcome.errors.contains(reason), "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: free space on the volume"), "\(outcome.errors)")
    #expect(try cli.records("small/into") == before)
    try volume.grow("size=64m,nr_inodes=1000")
    _ = try cli.succeed(merge)
    try ChangeDetector.expectSame(cli.directory, "tree", "small/into")
  }

  @Test func newDirectoryIsNotCreatedWithoutInodes() throws {
    let cli = try CommandLine(inMemory: true)
    for number in 0..<40 { try cli.directory.write("x", at: ByteString("tree/\(number)")) }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=4m,nr_inodes=30")
    defer { volume.unmount() }
    let outcome = try cli.run("restore latest:folders/tree --to small/back --repo repo")
    #expect(outcome.code == 1 && outcome.errors.contains("44 files and directories are needed"))
    #expect(outcome.errors.contains("only 29 more fit"), "\(outcome.errors)")
    #expect(try cli.names(in: "small").isEmpty)
  }

  @Test func repositoryThatDoesNotFitIsNotCreated() throws {
    let cli = try CommandLine()
    for options in ["size=1m", "size=64m,nr_inodes=50"] {
      let volume = try SmallVolume(at: cli.directory.string + "/small", options)
      defer { volume.unmount() }
      let outcome = try cli.run("init small/repo --plain")
      #expect(outcome.code == 1)
      #expect(outcome.errors.contains("no space"), "\(outcome.errors)")
      #expect(try cli.run("snapshots --repo small/repo").code == 10)
    }
  }
}
