import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// The disk begins with large pieces while the others are still decoded.
@Suite struct EarlyWriteTests {
  private static let inputOutput: Int32 = 5

  /// What restoring a file of so many bytes beside a small one comes to, when the first thing that is
  /// to be written to the disk cannot be.
  private func restore(bytes: Int) throws -> RestoreReport {
    let rig = try Rig(inMemory: true)
    try rig.folder.write([UInt8](repeating: 7, count: bytes), at: "tree/file")
    try rig.folder.write("small", at: "tree/small")
    let report = try rig.backup()
    let reader = try rig.repository.beginReading()
    let plan = try RestorePlan.make(
      try #require(report.snapshot), path: "folders/tree", to: rig.folder.path("back"),
      from: reader)
    let faults = Faults.Plan(failing: [.sync], at: 1, number: Self.inputOutput)
    defer { #expect(faults.hasFired) }
    return try Faults.inject(faults) { try RestoreOperation(plan, from: reader, threads: 2).run() }
  }

  /// A large file's is the first, so the failure is that file's, by name, and the other one is there.
  @Test func aLargeFileIsBegunBeforeTheVolumeIsSynced() throws {
    let report = try restore(bytes: 3 << 20)
    #expect(report.failed.map(\.path) == ["file"])
  }

  /// Of much that is small the disk has a part before the volume is synced: what it could not take then
  /// is not asked for again, and ends the restore.
  @Test func muchThatIsSmallIsBegunBeforeTheVolumeIsSynced() throws {
    let rig = try Rig(inMemory: true)
    for number in 1...136 {
      let bytes = [UInt8](repeating: UInt8(number), count: 512 << 10)
      try rig.folder.write(bytes, at: ByteString("tree/\(number)"))
    }
    let report = try rig.backup()
    let reader = try rig.repository.beginReading()
    let plan = try RestorePlan.make(
      try #require(report.snapshot), path: "folders/tree", to: rig.folder.path("back"),
      from: reader)
    let faults = Faults.Plan(failing: [.sync], at: 1, number: Self.inputOutput)
    let error = #expect(throws: LifecycleError.self) {
      try Faults.inject(faults) { try RestoreOperation(plan, from: reader, threads: 2).run() }
    }
    // The last time that it is asked for all goes well: it is the first failure that is told.
    #expect(faults.hasFired && faults.count == 1)
    #expect(error?.description.contains("input/output") == true, "\(error as Any)")
    #expect(throws: SystemError.self) { _ = try Folder.open(path: rig.folder.path("back")) }
  }

  /// A small one waits for the volume, without which nothing is restored.
  @Test func aSmallFileWaitsForTheVolume() throws {
    #expect(throws: LifecycleError.self) { try restore(bytes: 300_000) }
  }
}
