import ArchiveStore
import Restore
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// If a backup does not finish, the next one reads only the remaining files.
@Suite(.spreadScans) struct InterruptionTests {
  private static let files = 600

  private func makeFixture() throws -> Fixture {
    let fixture = try Fixture()
    for number in 0..<Self.files {
      try fixture.directory.write("file \(number)", at: ByteString("tree/\(number % 7)/\(number)"))
    }
    return fixture
  }

  @Test func anInterruptedBackupIsResumed() throws {
    let fixture = try makeFixture()
    var left = Self.files
    for _ in 0..<3 {
      let counters = ProgressCounters()
      let enough = 120
      let error = #expect(throws: OperationError.self) {
        try fixture.backup(keeping: "cache") { request in
          request.counters = counters
          request.isStopping = { counters.progress.opened >= enough }
        }
      }
      #expect(error?.kind == .interrupted)
      #expect(try fixture.names("repo/snapshots").isEmpty && fixture.names("repo/leases").isEmpty)
      let opened = counters.progress.opened
      #expect(opened >= enough && opened < enough + 10)
      #expect(counters.progress.filesToDo == left)
      left -= opened
    }
    let last = try fixture.backup(keeping: "cache")
    #expect(last.opened == left && last.files == Self.files)
    #expect(try fixture.restore(last).isComplete)
    #expect(try fixture.text("back/1/1") == "file 1")
    #expect(try fixture.backup(keeping: "cache").opened == 0)
  }

  /// A crash: from some point on, all writes fail, and nothing is cleaned up.
  @Test(arguments: [100, 250, 400])
  func aCrashLosesOnlyFilesSinceTheLastCheckpoint(_ files: Int) throws {
    let fixture = try makeFixture()
    let counters = ProgressCounters()
    let storage = WatchedStorage(
      fixture.repository.storage, fails: { counters.progress.opened >= files })
    let broken = try Repository.open(storage)
    #expect(throws: StoreError.self) {
      try fixture.backup(to: broken, keeping: "cache") { request in
        request.counters = counters
        request.checkpointSeconds = 0
        request.workers = 1
      }
    }
    let opened = counters.progress.opened
    #expect(opened >= files && opened < Self.files)
    #expect(try !fixture.names("repo/leases").isEmpty)
    let next = try fixture.backup(keeping: "cache")
    // Files read since the last checkpoint are read again: at most the two work items before.
    #expect(next.opened <= Self.files - files + 180, "\(opened), then \(next.opened)")
    #expect(next.files == Self.files)
    #expect(try fixture.restore(next).isComplete)
  }

  @Test func noCheckpointIsMadeBeforeItIsDue() throws {
    // A checkpoint closes the open packs: one of file contents and one of trees.
    let never = try makeFixture().backup(keeping: "cache") { $0.checkpointSeconds = .infinity }
    #expect(never.statistics?.packs == 2)
    // With one thread, because several would store the whole remainder during a slow checkpoint,
    // before a pack is closed.
    let often = try makeFixture().backup(keeping: "cache") { request in
      request.checkpointSeconds = 0
      request.workers = 1
    }
    #expect(often.statistics.map { $0.packs > 2 } == true)
  }
}
