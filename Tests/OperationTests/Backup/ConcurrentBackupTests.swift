import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceScan
import Restore
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Backups while other programs use the same repository, and with a wrong clock.
@Suite(.spreadScans) struct ConcurrentBackupTests {
  let fixture: Fixture
  init() throws { fixture = try Fixture(inMemory: true) }

  /// Backs up a directory other than the fixture's own.
  private func backup(
    _ name: ByteString, keeping cache: ByteString, to repository: Repository
  ) throws -> BackupReport {
    let device = try Device.find(root: fixture.directory.path(name), layout: .folder)
    let scan = DeviceScan.run(
      device, policy: try Fixture.policy(.folder), options: ScanOptions())
    let request = BackupRequest(program: "test", workers: 2, cache: fixture.directory.path(cache))
    return try BackupOperation(BackupPlan.make(scan), to: repository, request).run()
  }

  private func expectSound() throws {
    let check = RepositoryCheck(fixture.repository, reading: .everything, workers: 2)
    _ = try check.run().forEachFinding { finding in
      if case .remark = finding { return }
      Issue.record("\(finding)")
    }
  }

  /// Several backups at the same time, two of them of the same source without a common state file:
  /// all snapshots are complete although the backups store the same blobs.
  @Test func concurrentBackupsAreAllComplete() throws {
    for name in ["tree", "other"] {
      for number in 0..<40 {
        let bytes = [UInt8](repeating: UInt8(number), count: 2000 + number)
        try fixture.directory.write(bytes, at: ByteString("\(name)/same \(number)"))
        try fixture.directory.write("\(name) \(number)", at: ByteString("\(name)/own/\(number)"))
      }
    }
    let runs: [(ByteString, ByteString)] = [
      ("tree", "cache-1"), ("other", "cache-2"), ("tree", "cache-3"), ("other", "cache-4"),
    ]
    let done = Mutex<[(ByteString, SnapshotID)]>([])
    let workers = try Workers(count: runs.count, capacity: runs.count, name: "rivals")
    for (name, cache) in runs {
      workers.submit {
        do {
          let report = try backup(name, keeping: cache, to: fixture.repository)
          let id = try #require(report.snapshot).id
          done.withLock { $0.append((name, id)) }
        } catch {
          Issue.record("\(name): \(error)")
        }
      }
    }
    workers.finish()
    let made = done.withLock { $0 }
    #expect(made.count == 4)
    #expect(try fixture.names("repo/leases").isEmpty)
    try expectSound()
    let reader = try fixture.repository.beginReading()
    for (name, id) in made {
      let plan = try RestorePlan.make(
        fixture.repository.snapshot(id), path: ByteString("folders").appending(name),
        to: fixture.directory.path("back"), from: reader)
      #expect(try RestoreOperation(plan, from: reader).run().isComplete)
      #expect(try fixture.records("back") == fixture.records(name))
      try fixture.directory.directory.removeTree("back")
    }
  }

  /// The lease is removed at any moment of a backup: either the backup completes, or it fails
  /// without a snapshot, and the next backup uses the stored data.
  @Test(arguments: ["start", "append", "commit packs", "commit index", "commit snapshots"])
  func aLostLeaseEndsTheBackupWithoutASnapshot(_ moment: String) throws {
    try fixture.directory.write("one", at: "tree/one")
    let before = try #require(try fixture.backup(keeping: "cache").snapshot)
    try fixture.directory.write("two", at: "tree/two")
    let storage = WatchedStorage(fixture.repository.storage)
    let isTaken = Atomic<Bool>(false)
    storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix(moment), !isTaken.exchange(true, ordering: .relaxed) else { return }
        acquireLeases()
      }
    }
    let error = #expect(throws: StoreError.self) {
      try fixture.backup(to: Repository.open(storage), keeping: "cache")
    }
    #expect(error?.code == .leaseLost && error?.hint != nil, "\(moment): \(error as Any)")
    let wasTaken = isTaken.load(ordering: .relaxed)
    #expect(wasTaken)
    #expect(try fixture.repository.snapshots().snapshots.map(\.id) == [before.id])
    let next = try fixture.backup(keeping: "cache")
    #expect(try fixture.restore(next).isComplete)
    #expect(try fixture.records("back") == fixture.records("tree"))
    try expectSound()
  }

  /// Removes all leases, as prune removes those that seem abandoned: renames them first, and then
  /// removes them.
  private func acquireLeases() {
    do {
      let repository = try fixture.directory.directory.directory("repo")
      for name in try fixture.names("repo/leases") {
        try repository.directory("leases").rename(name, to: "taken", in: repository)
        try repository.removeTree("taken")
      }
    } catch {
      Issue.record("\(error)")
    }
  }

  /// The clock is set back by an hour between two backups: changes are stored, and the last
  /// snapshot is the latest.
  @Test func aClockThatIsSetBackHidesNoChanges() throws {
    func backup(at seconds: Int64) throws -> StoredSnapshot {
      let now = Timestamp(seconds: Host.now().seconds + seconds)
      let report = try fixture.backup(keeping: "cache") { $0.now = { now } }
      #expect(report.isComplete)
      return try #require(report.snapshot)
    }
    try fixture.directory.write("first", at: "tree/a")
    try fixture.directory.write("same", at: "tree/b")
    var made = [try backup(at: 7200)]
    // The same size as before.
    try fixture.directory.write("other", at: "tree/a")
    made.append(try backup(at: 3600))
    try fixture.directory.write("third", at: "tree/a")
    made.append(try backup(at: 3700))
    made.append(try backup(at: 10_000))
    #expect(made[1].snapshot.time < made[0].snapshot.time)
    #expect(made.map(\.snapshot.sequence) == [1, 2, 3, 4])
    #expect(made.map(\.snapshot.parent) == [nil] + made.dropLast().map(\.id))
    #expect(try fixture.repository.snapshots().snapshots.map(\.id) == made.map(\.id))
    #expect(try fixture.repository.snapshot(matching: "latest~2").id == made[1].id)
    let reader = try fixture.repository.beginReading()
    for (snapshot, text) in zip(made, ["first", "other", "third", "third"]) {
      let plan = try RestorePlan.make(
        snapshot, path: "folders/tree", to: fixture.directory.path("back"), from: reader)
      #expect(try RestoreOperation(plan, from: reader).run().isComplete)
      #expect(try fixture.text("back/a") == text && fixture.text("back/b") == "same")
      try fixture.directory.directory.removeTree("back")
    }
  }
}
