import ArchiveStore
import Backup
import SystemIO
import TestSupport
import Testing

/// Files with holes, on file systems that report holes reliably and on others.
@Suite(.spreadScans) struct HoleTests {
  private static let (zfs, ext4): (UInt, UInt) = (0x2fc1_2fc1, 0xef53)

  /// On ZFS, a hole that SEEK_HOLE reports may be data that is not on the disk yet
  /// (openzfs/zfs#15526), so it is read.
  @Test(arguments: [300 << 10, 9 << 20] as [UInt64])
  func holesThatZFSReportsAreRead(size: UInt64) throws {
    let fixture = try Fixture(inMemory: true)
    let file = try Directory.open(path: fixture.directory.path("tree")).create("sparse")
    try file.write(Array("beginning".utf8))
    try file.seek(to: size - 3)
    try file.write(Array("end".utf8))
    try #require(try file.extents(size: size).contains { $0.isHole }, "no sparse files here")
    let bytes = try fixture.directory.read("tree/sparse")
    #expect(try holes(fixture, on: Self.ext4, "ext4") > size / 2, "the file has no hole to test")
    #expect(try holes(fixture, on: Self.zfs, "zfs") == 0)
    for name: ByteString in ["ext4/sparse", "zfs/sparse"] {
      #expect(try fixture.directory.read(name) == bytes)
    }
  }

  /// Backs up and restores as on a given file system. Returns the number of bytes stored as holes.
  private func holes(_ fixture: Fixture, on magic: UInt, _ name: ByteString) throws -> UInt64 {
    let repository = try Repository.create(in: MemoryStorage(), program: "test")
    let report = try Faults.inject(Faults.Plan(onFileSystem: magic)) {
      try fixture.backup(to: repository, keeping: ByteString("cache ").appending(name))
    }
    #expect(report.isComplete)
    _ = try fixture.restore(report, to: name, from: repository)
    let tree = try #require(report.snapshot).snapshot.tree
    let reader = try repository.beginReading()
    let entry = try #require(try reader.entry(at: "folders/tree/sparse", in: tree))
    guard case .file(let content) = entry.node, content.level == 0 else { return 0 }
    return content.pieces.reduce(0) { sum, piece in
      if case .hole(let length) = piece { sum + length } else { sum }
    }
  }
}
