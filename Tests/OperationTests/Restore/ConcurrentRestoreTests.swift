import ArchiveStore
import Backup
import DeviceTransaction
import Dispatch
import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Restores into plain directories, which have no device locks: two restores that would change the
/// same entries do not run at the same time.
@Suite(.spreadScans) struct ConcurrentRestoreTests {
  private let fixture: Fixture
  private let report: BackupReport

  init() throws {
    fixture = try Fixture(inMemory: true)
    for name: ByteString in ["db", "db-wal", "deep/er/db", "deep/er/db-wal", "plain/file"] {
      try fixture.directory.write("stored", at: ByteString("tree").appending(name))
      try fixture.directory.write("there", at: ByteString("into").appending(name))
    }
    report = try fixture.backup()
  }

  private func directory(_ path: ByteString) throws -> Directory {
    try Directory.open(path: fixture.directory.path(path))
  }

  /// Expects that a restore is refused with the process that uses the other staging directory, and
  /// leaves no files.
  private func expectBusy(_ plan: RestorePlan, _ location: SourceLocation = #_sourceLocation) throws
  {
    let before = try (Set(fixture.directory.directory.names()), fixture.records("into").keys)
    let error = failure {
      try RestoreOperation(plan, from: fixture.repository.beginReading()).run()
    }
    let found = error as? OperationError
    #expect(
      found?.kind == .busy && found?.code == .targetLocked, "\(error as Any)",
      sourceLocation: location)
    let holder = "another restore is in progress in"
    #expect(found?.description.contains(holder) == true, sourceLocation: location)
    #expect(
      found?.description.contains("(process \(Host.processID), since ") == true,
      sourceLocation: location)
    let after = try (Set(fixture.directory.directory.names()), fixture.records("into").keys)
    #expect(after == before, sourceLocation: location)
  }

  private func failure(_ body: () throws -> RestoreReport) -> (any Error)? {
    do {
      _ = try body()
      return nil
    } catch { return error }
  }

  @Test(arguments: [StagedWork.merge, .entry("db"), .locked])
  func aMergedDirectoryIsNotSharedWithAnother(_ work: StagedWork) throws {
    let plan = try fixture.plan(report, into: "into", .always)
    let other = try StagingDirectory.make(in: directory("into"), for: work)
    try expectBusy(plan)
    try other.remove()
    #expect(try fixture.merge(report, into: "into", .always).isComplete)
    #expect(try fixture.text("into/db-wal") == "stored")
  }

  /// The plan does not know the state after the other restore.
  @Test func aPlanMadeDuringAnotherRestoreIsNotCarriedOut() throws {
    let other = try StagingDirectory.make(in: directory("into"), for: .merge)
    let plan = try fixture.plan(report, into: "into", .always)
    try other.remove()
    let error = failure {
      try RestoreOperation(plan, from: fixture.repository.beginReading()).run()
    }
    #expect((error as? OperationError)?.code == .targetLocked)
    #expect(try fixture.text("into/db") == "there")
  }

  @Test func targetsInsideEachOtherAreNotShared() throws {
    let whole = try fixture.plan(report, into: "into", .always)
    let deep = try fixture.plan(
      report, "folders/tree/deep/er", into: "into/deep/er", .always)
    let new = try fixture.plan(report, "folders/tree/plain", into: "into/deep/new", .always)
    let above = try StagingDirectory.make(in: directory("into"), for: .merge)
    try expectBusy(deep)
    try expectBusy(new)
    try above.remove()
    // Between the target and a database of it, also for another new directory there.
    for path: ByteString in ["into/deep", "into/deep/er"] {
      for work: StagedWork in [.merge, .entry("db")] {
        let below = try StagingDirectory.make(in: directory(path), for: work)
        try expectBusy(whole)
        try below.remove()
      }
    }
    let error = failure {
      try RestoreOperation(new, from: fixture.repository.beginReading()).run()
    }
    #expect(error == nil)
  }

  /// A deletion would remove the staging directory of the other restore.
  @Test func aStagingDirectoryInUseIsNotDeleted() throws {
    let other = try StagingDirectory.make(in: directory("into/plain"), for: .entry("x"))
    try expectBusy(fixture.plan(report, into: "into", .always, deletes: true))
    try other.remove()
  }

  @Test func newTargetsNextToEachOtherAreRestoredTogether() throws {
    let plan = try fixture.plan(report, into: "one", .always)
    for work: StagedWork in [.locked, .entry("two"), .entry("one-two")] {
      let other = try StagingDirectory.make(in: directory("."), for: work)
      defer { try? other.remove() }
      let error = failure {
        try RestoreOperation(plan, from: fixture.repository.beginReading()).run()
      }
      #expect(error == nil)
      try fixture.directory.directory.removeTree("one")
    }
    // The same target, and a file and its log.
    let same = try StagingDirectory.make(in: directory("."), for: .entry("one"))
    try expectBusy(plan)
    try same.remove()
    let file = try fixture.plan(report, "folders/tree/db-wal", into: "into/db-wal", .always)
    let database = try StagingDirectory.make(in: directory("into"), for: .entry("db"))
    try expectBusy(file)
    try database.remove()
  }

  /// An interrupted run holds no lock, and another user's directories are not examined.
  @Test func abandonedStagingDirectoriesDoNotCount() throws {
    let lost: ByteString = ".sandboxctl-restore-into-0011223344556677"
    try fixture.directory.write("1 1\n", at: lost.appending("lock"))
    try fixture.directory.write("1 1\n", at: ByteString("into").appending(lost).appending("lock"))
    #expect(try fixture.merge(report, into: "into", .always).isComplete)
    guard Host.userID == 0 else { return }
    let other = try StagingDirectory.make(in: directory("."), for: .merge)
    try directory(".").setOwner(user: 1, group: 1, of: other.name)
    #expect(ActiveStaging.find(in: try directory(".")) == nil)
    try directory(".").setOwner(user: 0, group: 0, of: other.name)
    #expect(ActiveStaging.find(in: try directory("."))?.directory == fixture.directory.path("."))
    try other.remove()
  }

  /// If several restores begin at the same moment, at most one continues.
  @Test func atMostOneOfSeveralContinues() throws {
    let path = fixture.directory.path("into")
    let state = Mutex<(inside: Int, most: Int, entered: Int)>((0, 0, 0))
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<200 {
        guard let parent = try? Directory.open(path: path),
          let staging = try? StagingDirectory.make(in: parent, for: .merge)
        else { continue }
        if ActiveStaging.find(in: parent, besides: staging.name) == nil {
          state.withLock { $0 = ($0.inside + 1, max($0.most, $0.inside + 1), $0.entered + 1) }
          Host.pause(seconds: 0.0001)
          state.withLock { $0.inside -= 1 }
        }
        try? staging.remove()
      }
    }
    #expect(state.withLock { $0.most } <= 1)
    #expect(state.withLock { $0.entered } > 0)
  }
}
