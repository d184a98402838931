import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// Before Linux 5.8 a sync of a volume does not report that a file could not be written: large files are
/// synced one by one there.
@Suite(.spreadScans) struct VolumeSyncTests {
  @Test(arguments: [
    ("5.7.19", false), ("5.8.0", true), ("5.10", true), ("6.1.0-18-amd64", true),
    ("4.19-rc1", false),
  ])
  func theKernelTellsWhetherAVolumeSyncReports(release: String, reports: Bool) {
    #expect(KernelVersion(release: release)?.reportsErrorsOfVolumeSync == reports)
  }

  @Test(arguments: ["", "linux", "6", "six.one"]) func otherReleasesAreNone(_ release: String) {
    #expect(KernelVersion(release: release) == nil)
  }

  @Test func largeFilesAreSyncedByThemselvesOnOldKernels() throws {
    let rig = try Fixture(inMemory: true)
    var random = Seeded(18)
    for name: ByteString in ["one", "two"] {
      try rig.directory.write(random.bytes(3 << 20), at: ByteString("tree").appending(name))
    }
    try rig.directory.write("small", at: "tree/small")
    let report = try rig.backup()
    func syncs(on kernel: KernelVersion) throws -> Int {
      let plan = try rig.plan(report, into: ByteString("on-\(kernel.minor)"), .never)
      let counting = Faults.Plan(failing: [.sync], at: .max, number: 5)
      try Faults.inject(counting) {
        var operation = RestoreOperation(plan, from: try rig.repository.beginReading())
        operation.kernel = kernel
        _ = try operation.run()
      }
      return counting.count
    }
    #expect(try syncs(on: KernelVersion(5, 7)) == syncs(on: KernelVersion(5, 8)) + 2)
  }

  /// On an old kernel the failure of such a file is one of the restore.
  @Test func aLargeFileThatCannotBeSyncedFails() throws {
    let rig = try Fixture(inMemory: true)
    var random = Seeded(19)
    try rig.directory.write(random.bytes(3 << 20), at: "tree/one")
    let plan = try rig.plan(try rig.backup(), into: "into", .never)
    let failing = Faults.Plan(failing: [.sync], at: 1, number: 5)
    let outcome = try Faults.inject(failing) {
      var operation = RestoreOperation(plan, from: try rig.repository.beginReading())
      operation.kernel = KernelVersion(5, 4)
      do { return try operation.run().isComplete } catch is LifecycleError { return false }
    }
    #expect(failing.hasFired && !outcome)
  }
}
