import ArchiveStore
import Backup
import DeviceTransaction
import Restore
import SystemIO
import TestSupport
import Testing

/// Large pieces are written to the disk while others are still decoded.
@Suite(.spreadScans) struct EarlyWriteTests {
  private static let inputOutput: Int32 = 5

  /// Restores files of the given sizes; the first write to the disk fails. Returns the report.
  private func restore(
    _ files: [(name: String, bytes: Int)], _ fixture: Fixture, _ faults: Faults.Plan,
    threads: Int = 2
  ) throws -> RestoreReport {
    for (number, file) in files.enumerated() {
      let bytes = [UInt8](repeating: UInt8(number), count: file.bytes)
      try fixture.directory.write(bytes, at: ByteString("tree/\(file.name)"))
    }
    let report = try fixture.backup(keeping: "cache") { $0.workers = 1 }
    let reader = try fixture.repository.beginReading()
    let plan = try RestorePlan.make(
      try #require(report.snapshot), path: "folders/tree", to: fixture.directory.path("back"),
      from: reader)
    defer { #expect(faults.hasFired) }
    return try Faults.inject(faults) {
      try RestoreOperation(plan, from: reader, threads: threads).run()
    }
  }

  private static func firstSyncFails() -> Faults.Plan {
    Faults.Plan(failing: [.sync], at: 1, number: inputOutput)
  }

  /// The large file is written first, so the error is reported for it, and the other file is
  /// restored.
  @Test func aLargeFileIsWrittenBeforeTheVolumeIsSynced() throws {
    let files = [("file", 3 << 20), ("small", 5)]
    let report = try restore(files, Fixture(inMemory: true), Self.firstSyncFails())
    #expect(report.failed.map(\.path) == ["file"])
  }

  /// The restore waits for a large piece when it starts the next one. A write error ends the
  /// restore, like a failed sync of the volume.
  @Test func aWriteErrorInALargePieceEndsTheRestore() throws {
    let fixture = try Fixture(inMemory: true)
    let faults = Faults.Plan(failing: [.sync], at: 3, number: Self.inputOutput)
    let files = [("a", 3 << 20), ("b", 3 << 20), ("c", 3 << 20)]
    let error = #expect(throws: OperationError.self) {
      try restore(files, fixture, faults, threads: 1)
    }
    #expect(error?.description.contains("input/output") == true, "\(error as Any)")
    #expect(throws: SystemError.self) {
      _ = try Directory.open(path: fixture.directory.path("back"))
    }
  }

  /// Large pieces are dropped from the page cache after they are written.
  @Test func largeFilesLeaveThePageCache() throws {
    let fixture = try Fixture()
    guard try PageCache.canBeEmptied(in: fixture.directory, by: .range) else {
      return print("skipped: the temporary directory has no disk, or does not report cached ranges")
    }
    let bytes = Seeded(3).someBytes(48 << 20)
    try fixture.directory.write(bytes, at: "tree/large")
    try fixture.directory.write(Array(bytes[..<300_000]), at: "tree/small")
    _ = try fixture.restore(try fixture.backup())
    let large = try PageCache.pages(of: fixture.directory.path("back/large"))
    #expect(large.present < large.all / 10, "\(large)")
    let small = try PageCache.pages(of: fixture.directory.path("back/small"))
    #expect(small.present > small.all * 9 / 10, "\(small)")
    #expect(try fixture.directory.read("back/large") == bytes)
  }

  /// The pages of a database that changed between backups are in several packs. Its regions are
  /// written to the disk, and dropped from the page cache, when they are complete.
  @Test func regionsOfChangedDatabasesLeaveThePageCache() throws {
    let fixture = try Fixture()
    guard try PageCache.canBeEmptied(in: fixture.directory, by: .range) else {
      return print("skipped: the temporary directory has no disk, or does not report cached ranges")
    }
    let page = 16 << 10
    var bytes = [UInt8](repeating: 0, count: (5 << 10) * page)
    for day in 0..<3 {
      for number in stride(from: day, to: bytes.count / page, by: day == 0 ? 1 : 3) {
        let text = Array("SQLite format 3\0 page \(number) of day \(day)".utf8)
        bytes.replaceSubrange((number * page)..<(number * page + text.count), with: text)
      }
      try fixture.directory.write(bytes, at: "tree/database")
      let report = try fixture.backup()
      if day == 2 { _ = try fixture.restore(report) }
    }
    let cached = try PageCache.pages(of: fixture.directory.path("back/database"))
    #expect(cached.present < cached.all / 10, "\(cached)")
    #expect(try fixture.directory.read("back/database") == bytes)
  }

  /// Some of many small files are written before the volume is synced. A write error then is not
  /// reported a second time, so it ends the restore.
  @Test func manySmallFilesAreWrittenBeforeTheVolumeIsSynced() throws {
    let (fixture, faults) = (try Fixture(inMemory: true), Self.firstSyncFails())
    let files = (1...136).map { ("\($0)", 512 << 10) }
    let error = #expect(throws: OperationError.self) { try restore(files, fixture, faults) }
    // The last sync succeeds: the first failure is the one that is reported.
    #expect(faults.count == 1)
    #expect(error?.description.contains("input/output") == true, "\(error as Any)")
    #expect(throws: SystemError.self) {
      _ = try Directory.open(path: fixture.directory.path("back"))
    }
  }

  /// If no thread can be started for early writes, the restore continues without one.
  @Test func filesAreRestoredWithoutAThreadForEarlyWrites() throws {
    let files = (1...136).map { ("\($0)", 512 << 10) }
    let faults = Faults.Plan(failing: [.startThread], at: 1, number: 11)
    let report = try restore(files, Fixture(inMemory: true), faults)
    #expect(report.failed.isEmpty && report.restored.files == 136)
  }

  /// A small file is only written to the disk by the sync of the volume, without which nothing is
  /// restored.
  @Test func aSmallFileIsNotWrittenEarly() throws {
    let files = [("file", 300_000), ("small", 5)]
    #expect(throws: OperationError.self) {
      try restore(files, Fixture(inMemory: true), Self.firstSyncFails())
    }
  }
}
