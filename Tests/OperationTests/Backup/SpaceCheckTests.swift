import ArchiveStore
import Backup
import Synchronization
import SystemIO
import TestSupport
import Testing

/// A backup checks in advance that there is space for new data. Most of a changed file may already
/// be stored, so a lack of space for more than its growth is only a warning.
@Suite(.spreadScans) struct SpaceCheckTests {
  private static let mebibyte = 1 << 20

  private let fixture: Fixture
  private let storage: WatchedStorage
  private let repository: Repository

  init() throws {
    fixture = try Fixture(inMemory: true)
    storage = WatchedStorage(fixture.repository.storage)
    repository = try Repository.open(storage)
  }

  private func bytes(_ count: Int, seed: UInt64 = 3) -> [UInt8] { Seeded(seed).someBytes(count) }

  /// Backs up at the time of the last change, when no file counts as stable, on a volume with free
  /// space. Returns the report and the warnings.
  private func backup(
    free: Int, of total: UInt64 = 1 << 30, _ change: (inout BackupRequest) -> Void = { _ in }
  ) throws -> (report: BackupReport, warnings: [String]) {
    let space = VolumeSpace(available: UInt64(free), total: total)
    storage.state.withLock { $0.space = space }
    var request = fixture.request(keeping: "cache")
    (request.now, request.keepFree) = (nil, 0)
    change(&request)
    var warnings: [String] = []
    var operation = BackupOperation(try BackupPlan.make(fixture.scan()), to: repository, request)
    operation.didFindRisk = { warnings.append($0) }
    return (try operation.run(), warnings)
  }

  private func expectRefusal(free: Int, _ needed: String) {
    let error = #expect(throws: OperationError.self) { try backup(free: free) }
    #expect(
      error?.description.contains("up to \(needed) must be stored") == true, "\(error as Any)")
  }

  @Test func aFileThatWasStoredAMomentAgoNeedsNoSpace() throws {
    try fixture.directory.write(bytes(20 * Self.mebibyte), at: "tree/written")
    #expect(try backup(free: 64 * Self.mebibyte).warnings.isEmpty)
    // It is read again, because it may have changed without a new time.
    let again = try backup(free: 1000)
    #expect(again.report.opened == 1 && again.report.storedBytes < 1500)
    #expect(again.warnings.count == 1)
    try fixture.directory.write(bytes(10 * Self.mebibyte, seed: 4), at: "tree/added")
    expectRefusal(free: 8 * Self.mebibyte, "10.0 MiB")
    let added = try backup(free: 12 * Self.mebibyte)
    #expect(added.report.opened == 2)
    let warning = try #require(added.warnings.first)
    #expect(
      warning.contains("may become full: 10.0 MiB are new") && warning.contains("20.0 MiB of"),
      "\(warning)")
    #expect(try backup(free: 64 * Self.mebibyte).warnings.isEmpty)
  }

  @Test func aDatabaseOfWhichAFewPagesChangedNeedsNoSpaceForTheOthers() throws {
    let head = Array("SQLite format 3\0".utf8)
    var pages = bytes(16 * Self.mebibyte)
    pages.replaceSubrange(..<head.count, with: head)
    try fixture.directory.write(pages, at: "tree/database")
    _ = try backup(free: 64 * Self.mebibyte)
    pages.replaceSubrange(8_000_000..<8_004_096, with: bytes(4096, seed: 5))
    try fixture.directory.write(pages, at: "tree/database")
    let changed = try backup(free: 3 * Self.mebibyte)
    #expect(changed.report.databases.count == 1 && changed.warnings.count == 1)
    #expect(changed.report.storedBytes < 3 * UInt64(Self.mebibyte))
    // Its growth is new, and so is its log.
    try fixture.directory.write(pages + bytes(4 * Self.mebibyte, seed: 6), at: "tree/database")
    expectRefusal(free: 3 * Self.mebibyte, "4.0 MiB")
    try fixture.directory.write(bytes(2 * Self.mebibyte, seed: 7), at: "tree/database-wal")
    expectRefusal(free: 5 * Self.mebibyte, "6.0 MiB")
  }

  /// A volume in memory, or a FUSE file system, may report a size of 0.
  @Test func aVolumeWithoutASizeIsNotFull() throws {
    try fixture.directory.write(bytes(2 * Self.mebibyte), at: "tree/new")
    let made = try backup(free: 0, of: 0) { $0.keepFree = 1 << 30 }
    #expect(made.report.isComplete && made.warnings.isEmpty)
  }

  @Test func withoutTheCheckABackupBegins() throws {
    try fixture.directory.write(bytes(2 * Self.mebibyte), at: "tree/new")
    expectRefusal(free: 1000, "2.0 MiB")
    let unchecked = try backup(free: 1000) { $0.checksSpace = false }
    #expect(unchecked.report.isComplete && unchecked.warnings.isEmpty)
  }
}
