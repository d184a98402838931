import ArchiveStore
import Backup
import DeviceDiscovery
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceScan

/// Files that report a size of 0 and have content, as file systems have them that do not know a
/// file's size before it is read. Those of proc(5) are an example on each machine.
@Suite(.spreadScans) struct UnsizedFileTests {
  private static let source: ByteString = "/proc/sys/kernel/random"

  private func backup(_ fixture: Fixture) throws -> BackupReport {
    let device = try Device.find(root: Self.source, layout: .folder)
    let scan = DeviceScan.run(
      device, policy: try Fixture.policy(.folder), options: ScanOptions())
    return try BackupOperation(
      BackupPlan.make(scan), to: fixture.repository, fixture.request(keeping: "cache")
    ).run()
  }

  @Test func filesThatReportNoSizeAreReadToTheirEnd() throws {
    let fixture = try Fixture()
    let file = try Descriptor.open(path: Self.source.appending("boot_id"))
    let (size, bytes) = (try file.status().size, try file.read(count: 100, at: 0))
    try #require(size == 0 && bytes.count == 37, "not the file system that this test is about")
    // Their size shows no change, so each backup reads them.
    for name: ByteString in ["first", "second"] {
      let report = try backup(fixture)
      #expect(report.isComplete, "\(report.unreadable)")
      #expect(report.opened == report.files && report.bytes >= 37)
      _ = try fixture.restore(report, "folders/random", to: name)
      #expect(try fixture.directory.read(name.appending("boot_id")) == bytes)
    }
  }

  /// An empty file that grows while it is read is read again up to its size then, and not as far as
  /// its writer gets.
  @Test func aFileThatGrowsIsNotReadToItsEnd() throws {
    let counting = Faults.Plan(before: [.read], at: .max) {}
    #expect(try size(afterGrowing: counting, Fixture()) == 0)
    for call in 1...counting.count {
      let fixture = try Fixture()
      let plan = Faults.Plan(before: [.read], at: call) { [tree = fixture.directory.path("tree")] in
        try? Directory.open(path: tree).fileForWriting("a").write(Array("grown".utf8))
      }
      #expect(try [0, 5].contains(size(afterGrowing: plan, fixture)), "call \(call)")
    }
  }

  /// Backs up an empty file under a plan. Returns its stored size, which is the number of bytes
  /// read.
  private func size(afterGrowing plan: Faults.Plan, _ fixture: Fixture) throws -> UInt64 {
    try fixture.directory.write("", at: "tree/a")
    let scan = try fixture.scan()
    var request = BackupRequest(program: "test")
    request.counters = ProgressCounters()
    let report = try Faults.inject(plan) {
      try BackupOperation(BackupPlan.make(scan), to: fixture.repository, request).run()
    }
    #expect(report.isComplete && report.bytes == request.counters.progress.bytesDone)
    return report.bytes
  }

  /// An empty file on a disk is one that need not be read again.
  @Test func emptyFilesAreReadOnce() throws {
    let fixture = try Fixture()
    try fixture.directory.write("", at: "tree/empty")
    #expect(try fixture.backup(keeping: "cache").opened == 1)
    let second = try fixture.backup(keeping: "cache")
    #expect(second.opened == 0 && second.isComplete)
    _ = try fixture.restore(second)
    #expect(try fixture.directory.read("back/empty").isEmpty)
  }
}
