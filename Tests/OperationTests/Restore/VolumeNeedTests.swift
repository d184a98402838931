import ArchiveStore
import Backup
import Restore
import SystemIO
import TestSupport
import Testing

/// The space that a restore needs, and whether it is refused for lack of space, on simulated
/// volumes.
@Suite(.spreadScans) struct VolumeNeedTests {
  private static func space(
    _ available: UInt64, reserved: UInt64 = 0, inodes: UInt64? = nil,
    _ keeping: VolumeSpace.Keeping
  ) -> VolumeSpace {
    var space = VolumeSpace(available: available, total: 1 << 30, availableInodes: inodes ?? 0)
    space.reserved = reserved
    space.countsInodes = inodes != nil
    space.keeping = keeping
    return space
  }

  private static func need(_ bytes: UInt64, _ entries: UInt64, _ space: VolumeSpace) -> VolumeNeed {
    VolumeNeed(directory: "small", bytes: bytes, entries: entries, space: space)
  }

  @Test func filesTakeWholeBlocksIfTheBlockSizeIsKnown() {
    let blocks = Self.space(0, .blocks(4096))
    #expect([0, 1, 4096, 4097].map { blocks.allocated(by: $0) } == [0, 4096, 4096, 8192])
    let inodes = Self.space(0, .blocksOrInode(1024))
    #expect([0, 1023, 1024, 1025].map { inodes.allocated(by: $0) } == [0, 1023, 1024, 2048])
    let unknown = Self.space(0, .unknown)
    #expect([0, 1, 4097].map { unknown.allocated(by: $0) } == [0, 1, 4097])
    #expect(blocks.allocated(by: .max) == .max)
  }

  @Test func aVolumeWithoutASizeIsNotFull() throws {
    let space = VolumeSpace(available: 0, total: 0)
    #expect(!space.isKnown && Self.need(1 << 40, 1 << 20, space).verdict == .fits)
    guard try Mount.isPermitted() else { return }
    let directory = try TemporaryDirectory("ramfs")
    try directory.directory.createDirectory("volume")
    let mount = try Mount(new: "ramfs", on: directory.path("volume"))
    let found = try Directory.open(path: directory.path("volume")).space()
    #expect(!found.isKnown && Self.need(1 << 40, 1 << 20, found).verdict == .fits)
    withExtendedLifetime(mount) {}
  }

  @Test func spaceIsCheckedToTheByteAndTheFile() {
    let space = Self.space(8192, inodes: 5, .blocks(4096))
    #expect(Self.need(8192, 5, space).verdict == .fits)
    #expect(Self.need(8193, 5, space).verdict == .lacksRoom)
    #expect(Self.need(0, 6, space).verdict == .lacksRoom)
    #expect(Self.need(8192, .max, Self.space(8192, .blocks(4096))).verdict == .fits, "uncounted")
    #expect(Self.need(0, 1, Self.space(8192, inodes: 0, .blocks(4096))).verdict == .lacksRoom)
    #expect(Self.need(8193, 5, Self.space(8192, .unknown)).verdict == .uncertain)
    let kept = Self.need(8193, 0, Self.space(8192, reserved: 4096, .blocks(4096)))
    #expect(
      kept.verdict == (Host.userID == 0 ? .fits : .lacksRoom),
      "the space reserved for the superuser")
  }

  /// Unchanged files are not written; replaced files stay until the new ones are written.
  @Test func writtenFilesAreCounted() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("same", at: "tree/same")
    try fixture.directory.write(Seeded(1).someBytes(5000), at: "tree/a/other")
    try fixture.directory.write(Seeded(2).someBytes(100), at: "tree/b/c/new")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.createHardLink("same too", to: "same", in: tree)
    try tree.createLink("link", to: "same")
    try tree.create("holes").truncate(to: 1 << 40)
    let report = try fixture.backup()
    let reader = try fixture.repository.beginReading()
    let blocks = Self.space(0, .blocks(4096))
    let whole = try fixture.plan(report, into: "new/er/back", .ifChanged).need(on: blocks)
    #expect(whole.bytes == 4096 + 8192 + 4096)
    // The directory and the three in it, five files and links, one of which has two names, and the
    // staging directory.
    #expect(whole.entries == 4 + 5 + 3)
    #expect(try fixture.plan(report, into: "back", .ifChanged).volumeNeeds(from: reader).count == 1)
    #expect(try fixture.restore(report).isComplete)
    let idle = try fixture.plan(report, into: "back", .ifChanged)
    #expect(idle.isIdle && idle.volumeNeeds(from: reader).isEmpty)
    try fixture.directory.write("something else", at: "back/a/other")
    let part = try fixture.plan(report, into: "back", .ifChanged).need(on: blocks)
    #expect(part.bytes == 8192)
    #expect(part.entries == 2 + 3, "the file and its directory, in which it is staged")
    let all = try fixture.plan(report, into: "back", .always).need(on: blocks)
    #expect(all.bytes == whole.bytes && all.entries <= whole.entries)
  }

  /// The parent directories that the restore has to create count as well.
  @Test func missingDirectoriesAreCounted() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("text", at: "tree/file")
    let report = try fixture.backup()
    let reader = try fixture.repository.beginReading()
    let names: [ByteString] = ["back", "new/er/back"]
    let counts = try names.map { name in
      let plan = try RestorePlan.make(
        try #require(report.snapshot), path: "folders/tree", to: fixture.directory.path(name),
        from: reader
      )
      return try #require(plan.volumeNeeds(from: reader).first).entries
    }
    #expect(counts == [5, 7])
  }

  /// File systems differ: the required space is not certain if a file may be compressed or may
  /// share data.
  @Test(arguments: [("ext4", true), ("xfs", true), ("btrfs", false)])
  func spaceIsOnlyCertainOnSomeFileSystems(kind: String, isSure: Bool) throws {
    guard Mount.isPermitted(new: kind) else { return }
    let scratch = try TemporaryDirectory("keeping")
    let mount = try Mount(new: kind, mebibytes: 310, in: scratch, "m")
    let space = try scratch.directory.directory("m").space()
    #expect((space.keeping != .unknown) == isSure)
    #expect(space.countsInodes == isSure)
    #expect((space.reserved > 0) == (kind == "ext4"), "\(space)")
    withExtendedLifetime(mount) {}
  }
}
