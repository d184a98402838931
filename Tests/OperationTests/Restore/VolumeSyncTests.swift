import ArchiveStore
import Restore
import SystemIO
import TestSupport
import Testing

/// Before Linux 5.8, syncing a volume does not report write errors of files: large files are synced
/// one by one.
@Suite(.spreadScans) struct VolumeSyncTests {
  @Test(arguments: [
    ("5.7.19", false), ("5.8.0", true), ("5.10", true), ("6.1.0-18-amd64", true),
    ("4.19-rc1", false),
  ])
  func theKernelVersionDecidesWhetherAVolumeSyncReportsErrors(release: String, reports: Bool) {
    #expect(KernelVersion(release: release)?.reportsErrorsOfVolumeSync == reports)
  }

  @Test(arguments: ["", "linux", "6", "six.one"]) func otherReleasesAreNotParsed(_ release: String)
  {
    #expect(KernelVersion(release: release) == nil)
  }

  @Test func largeFilesAreSyncedOneByOneOnOldKernels() throws {
    let fixture = try Fixture(inMemory: true)
    var random = Seeded(18)
    for name: ByteString in ["one", "two"] {
      try fixture.directory.write(random.bytes(3 << 20), at: ByteString("tree").appending(name))
    }
    try fixture.directory.write("small", at: "tree/small")
    let report = try fixture.backup()
    func syncs(on kernel: KernelVersion) throws -> Int {
      let plan = try fixture.plan(report, into: ByteString("on-\(kernel.minor)"), .never)
      let counting = Faults.Plan(failing: [.sync], at: .max, number: 5)
      try Faults.inject(counting) {
        var operation = RestoreOperation(plan, from: try fixture.repository.beginReading())
        operation.kernel = kernel
        _ = try operation.run()
      }
      return counting.count
    }
    #expect(try syncs(on: KernelVersion(5, 7)) == syncs(on: KernelVersion(5, 8)) + 2)
  }

  /// On an old kernel, a write error of such a file is reported for that file.
  @Test func aLargeFileThatCannotBeSyncedIsReported() throws {
    let fixture = try Fixture(inMemory: true)
    var random = Seeded(19)
    try fixture.directory.write(random.bytes(3 << 20), at: "tree/one")
    let plan = try fixture.plan(try fixture.backup(), into: "into", .never)
    let failing = Faults.Plan(failing: [.sync], at: 1, number: 5)
    let outcome = try Faults.inject(failing) {
      var operation = RestoreOperation(plan, from: try fixture.repository.beginReading())
      operation.kernel = KernelVersion(5, 4)
      do { return try operation.run().isComplete } catch is OperationError { return false }
    }
    #expect(failing.hasFired && !outcome)
  }
}
