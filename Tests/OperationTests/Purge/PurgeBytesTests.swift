import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import Purge

/// The freed bytes that a purge reports match the free space of the volume.
@Suite(.serialized, .spreadScans) struct PurgeBytesTests {
  @Test(.enabled(if: try Mount.isPermitted())) func freedBytesAreRightInMemory() throws {
    let directory = try TemporaryDirectory("purge")
    let mount = try Mount(on: directory.directory, at: directory.path, "volume")
    try expectRightBytes(directory, fillTo: 256 << 10)
    withExtendedLifetime(mount) {}
  }

  @Test(arguments: ["ext4", "xfs", "btrfs"]) func freedBytesAreRightOnADisk(kind: String) throws {
    guard Mount.isPermitted(new: kind) else { return }
    let directory = try TemporaryDirectory("purge")
    let mount = try Mount(new: kind, mebibytes: 310, in: directory, "volume")
    if kind == "ext4" { try expectSpaceWithoutPrivileges(directory) }
    try expectRightBytes(directory, fillTo: 1 << 20, sharing: kind != "ext4")
    withExtendedLifetime(mount) {}
  }

  /// The space that the file system reserves for the superuser does not count as free.
  private func expectSpaceWithoutPrivileges(_ directory: TemporaryDirectory) throws {
    let reported = try Program.run("stat", ["-f", "-c", "%a %f %S", directory.string + "/volume"])
      .output
    let figures = reported.split { " \n".contains($0) }.compactMap { UInt64($0) }
    try #require(figures.count == 3)
    #expect(figures[0] < figures[1], "the file system has no reserve to test")
    let space = try Directory.open(path: directory.path("volume")).space()
    #expect(space.available == figures[0] * figures[2])
  }

  /// Fills a volume and purges it.
  private func expectRightBytes(
    _ directory: TemporaryDirectory, fillTo rest: UInt64, sharing: Bool = false
  ) throws {
    let fixture = try PurgeFixture(directory, below: "volume/device")
    let volume = try Directory.open(path: directory.path("volume"))
    for number in 0..<20 { try fixture.put(ByteString("Library/Caches/f\(number)"), kib: 100) }
    for number in 0..<20 {
      try fixture.put(ByteString("Library/Caches/w/fsCachedData/\(number)"), kib: 9)
    }
    try makeOddFiles(fixture)
    let data = fixture.directory.path(fixture.data())
    let caches = try Directory.open(path: data.appending("Library/Caches"))
    let documents = try Directory.open(path: data.appending("Documents"))
    if sharing {
      try Self.clone("Documents/kept", "Library/Caches/shared", fixture)
      try Self.clone("Library/Caches/f0", "Library/Caches/twin", fixture)
    }
    try volume.syncVolume()
    let filler = try volume.space().available - rest
    let filled = try Program.run(
      "fallocate", ["-l", "\(filler)", "\(directory.string)/volume/filler"])
    #expect(filled.code == 0, "\(filled.errors)")
    try volume.syncVolume()
    let before = try volume.space().available
    #expect(before < 4 << 20)
    let scan = try fixture.scan()
    var request = try PurgeRequest.now(.everything, level: .critical, for: scan)
    request.running = [:]
    let plan = PurgePlan.make(scan, request)
    let files = plan.volumes[0].chosen.reduce(0) { $0 + plan.units[Int($1)].files }
    let report = PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
    #expect(report.failed.isEmpty && report.changed.isEmpty, "\(report.failed) \(report.changed)")
    try volume.syncVolume()
    let gained = Int64(try volume.space().available) - Int64(before)
    let slack = Int64(files) * 4096
    #expect(abs(Int64(report.freed) - gained) <= slack, "\(report.freed) \(gained)")
    // If the count were wrong, the difference would be far larger because of the links and holes
    // alone.
    #expect(report.freed > 2 << 20 && slack < 1 << 20)
    #expect(try documents.status("kept").size == 1 << 20)
    #expect(try caches.isEmpty())
  }

  /// Creates files with holes, and hard-linked files.
  private func makeOddFiles(_ fixture: PurgeFixture) throws {
    try fixture.put("Documents/kept", kib: 1024)
    let data = fixture.directory.path(fixture.data())
    let caches = try Directory.open(path: data.appending("Library/Caches"))
    let documents = try Directory.open(path: data.appending("Documents"))
    let sparse = try caches.create("sparse")
    try sparse.write([UInt8](repeating: 1, count: 4096))
    try sparse.truncate(to: 64 << 20)
    try caches.createHardLink("outside", to: "kept", in: documents)
    try fixture.put("Library/Caches/one", kib: 1024)
    try caches.createHardLink("another", to: "one", in: caches)
  }

  private static func clone(_ from: ByteString, _ to: ByteString, _ fixture: PurgeFixture) throws {
    let data = fixture.directory.path(fixture.data())
    let outcome = try Program.run(
      "cp", ["--reflink=always", "\(data)/\(from)", "\(data)/\(to)"])
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }
}
