import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// A run that does not come to its end: the next one reads what it had not read yet.
@Suite(.spreadScans) struct InterruptionTests {
  private static let files = 600

  private func rig() throws -> Fixture {
    let rig = try Fixture()
    for number in 0..<Self.files {
      try rig.directory.write("file \(number)", at: ByteString("tree/\(number % 7)/\(number)"))
    }
    return rig
  }

  @Test func anInterruptedRunIsTakenUp() throws {
    let rig = try rig()
    var left = Self.files
    for _ in 0..<3 {
      let counters = ProgressCounters()
      let enough = 120
      let error = #expect(throws: LifecycleError.self) {
        try rig.backup(keeping: "cache") { request in
          request.counters = counters
          request.isStopping = { counters.progress.opened >= enough }
        }
      }
      #expect(error?.kind == .interrupted)
      #expect(try rig.names("repo/snapshots").isEmpty && rig.names("repo/leases").isEmpty)
      let opened = counters.progress.opened
      #expect(opened >= enough && opened < enough + 10)
      #expect(counters.progress.filesToDo == left)
      left -= opened
    }
    let last = try rig.backup(keeping: "cache")
    #expect(last.opened == left && last.files == Self.files)
    #expect(try rig.restore(last).isComplete)
    #expect(try rig.text("back/1/1") == "file 1")
    #expect(try rig.backup(keeping: "cache").opened == 0)
  }

  /// A crash: from some moment on nothing can be written any more, and nothing is tidied up.
  @Test(arguments: [100, 250, 400])
  func aCrashLosesWhatCameAfterTheLastCheckpoint(_ files: Int) throws {
    let rig = try rig()
    let counters = ProgressCounters()
    let storage = WatchedStorage(
      rig.repository.storage, fails: { counters.progress.opened >= files })
    let broken = try Repository.open(storage)
    #expect(throws: StoreError.self) {
      try rig.backup(to: broken, keeping: "cache") { request in
        request.counters = counters
        request.checkpointSeconds = 0
        request.workers = 1
      }
    }
    let opened = counters.progress.opened
    #expect(opened >= files && opened < Self.files)
    #expect(try !rig.names("repo/leases").isEmpty)
    let next = try rig.backup(keeping: "cache")
    // What was read since the last checkpoint is read again: at most the two units before.
    #expect(next.opened <= Self.files - files + 180, "\(opened), then \(next.opened)")
    #expect(next.files == Self.files)
    #expect(try rig.restore(next).isComplete)
  }

  @Test func noCheckpointIsMadeBeforeItIsDue() throws {
    // A checkpoint closes the packs that are open: one of contents and one of trees.
    let never = try rig().backup(keeping: "cache") { $0.checkpointSeconds = .infinity }
    #expect(never.statistics?.packs == 2)
    let often = try rig().backup(keeping: "cache") { $0.checkpointSeconds = 0 }
    #expect(often.statistics.map { $0.packs > 2 } == true)
  }
}
