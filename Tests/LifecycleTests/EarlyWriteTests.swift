import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// The disk begins with large pieces while the others are still decoded.
@Suite(.spreadScans) struct EarlyWriteTests {
  private static let inputOutput: Int32 = 5

  /// What restoring files of so many bytes comes to, when the first thing that is to be written to the
  /// disk cannot be.
  private func restore(
    _ files: [(name: String, bytes: Int)], _ rig: Fixture, _ faults: Faults.Plan, threads: Int = 2
  ) throws -> RestoreReport {
    for (number, file) in files.enumerated() {
      let bytes = [UInt8](repeating: UInt8(number), count: file.bytes)
      try rig.directory.write(bytes, at: ByteString("tree/\(file.name)"))
    }
    let report = try rig.backup(keeping: "cache") { $0.workers = 1 }
    let reader = try rig.repository.beginReading()
    let plan = try RestorePlan.make(
      try #require(report.snapshot), path: "folders/tree", to: rig.directory.path("back"),
      from: reader)
    defer { #expect(faults.hasFired) }
    return try Faults.inject(faults) {
      try RestoreOperation(plan, from: reader, threads: threads).run()
    }
  }

  private static func firstSyncFails() -> Faults.Plan {
    Faults.Plan(failing: [.sync], at: 1, number: inputOutput)
  }

  /// A large file's is the first, so the failure is that file's, by name, and the other one is there.
  @Test func aLargeFileIsBegunBeforeTheVolumeIsSynced() throws {
    let files = [("file", 3 << 20), ("small", 5)]
    let report = try restore(files, Fixture(inMemory: true), Self.firstSyncFails())
    #expect(report.failed.map(\.path) == ["file"])
  }

  /// A large piece is waited for when the next one is on its way. That the disk could not take it ends
  /// the restore, as if the volume could not be synced.
  @Test func aLargePieceThatTheDiskRefusesEndsTheRestore() throws {
    let rig = try Fixture(inMemory: true)
    let faults = Faults.Plan(failing: [.sync], at: 3, number: Self.inputOutput)
    let files = [("a", 3 << 20), ("b", 3 << 20), ("c", 3 << 20)]
    let error = #expect(throws: LifecycleError.self) {
      try restore(files, rig, faults, threads: 1)
    }
    #expect(error?.description.contains("input/output") == true, "\(error as Any)")
    #expect(throws: SystemError.self) { _ = try Directory.open(path: rig.directory.path("back")) }
  }

  /// What was written in large pieces leaves the system's memory.
  @Test func largeFilesLeaveTheMemory() throws {
    let rig = try Fixture()
    guard try PageCache.canBeEmptied(in: rig.directory, by: .range) else {
      return print("skipped: the temporary directory has no disk, or cannot tell of a range")
    }
    let bytes = Seeded(3).someBytes(48 << 20)
    try rig.directory.write(bytes, at: "tree/large")
    try rig.directory.write(Array(bytes[..<300_000]), at: "tree/small")
    _ = try rig.restore(try rig.backup())
    let large = try PageCache.pages(of: rig.directory.path("back/large"))
    #expect(large.present < large.all / 10, "\(large)")
    let small = try PageCache.pages(of: rig.directory.path("back/small"))
    #expect(small.present > small.all * 9 / 10, "\(small)")
    #expect(try rig.directory.read("back/large") == bytes)
  }

  /// Of much that is small the disk has a part before the volume is synced: what it could not take then
  /// is not asked for again, and ends the restore.
  @Test func muchThatIsSmallIsBegunBeforeTheVolumeIsSynced() throws {
    let (rig, faults) = (try Fixture(inMemory: true), Self.firstSyncFails())
    let files = (1...136).map { ("\($0)", 512 << 10) }
    let error = #expect(throws: LifecycleError.self) { try restore(files, rig, faults) }
    // The last time that it is asked for all goes well: it is the first failure that is told.
    #expect(faults.count == 1)
    #expect(error?.description.contains("input/output") == true, "\(error as Any)")
    #expect(throws: SystemError.self) { _ = try Directory.open(path: rig.directory.path("back")) }
  }

  /// Where there is no thread to be had for that, the restore goes without.
  @Test func muchIsRestoredWithoutAThreadForTheDisk() throws {
    let files = (1...136).map { ("\($0)", 512 << 10) }
    let faults = Faults.Plan(failing: [.startThread], at: 1, number: 11)
    let report = try restore(files, Fixture(inMemory: true), faults)
    #expect(report.failed.isEmpty && report.restored.files == 136)
  }

  /// A small one waits for the volume, without which nothing is restored.
  @Test func aSmallFileWaitsForTheVolume() throws {
    let files = [("file", 300_000), ("small", 5)]
    #expect(throws: LifecycleError.self) {
      try restore(files, Fixture(inMemory: true), Self.firstSyncFails())
    }
  }
}
