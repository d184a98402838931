import ArchiveStore
import Lifecycle
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Other programs at work on the same repository, and a clock that is not to be trusted.
@Suite(.spreadScans) struct RivalTests {
  let rig: Fixture
  init() throws { rig = try Fixture(inMemory: true) }

  /// Backs a directory up that is not the rig's own.
  private func backup(
    _ name: ByteString, keeping cache: ByteString, to repository: Repository
  ) throws -> BackupReport {
    let device = try Device.find(root: rig.directory.path(name), layout: .folder)
    let scan = DeviceScan.run(
      device, policy: try Fixture.policy(.folder), options: ScanOptions())
    let request = BackupRequest(program: "test", workers: 2, cache: rig.directory.path(cache))
    return try BackupOperation(BackupPlan.make(scan), to: repository, request).run()
  }

  private func expectSound() throws {
    let check = RepositoryCheck(rig.repository, reading: .everything, workers: 2)
    _ = try check.run().tell { finding in
      if case .remark = finding { return }
      Issue.record("\(finding)")
    }
  }

  /// Several runs at once, two of them of one source that do not know of each other: all snapshots
  /// are whole, though they store the same blobs.
  @Test func severalWritersAtOnce() throws {
    for name in ["tree", "other"] {
      for number in 0..<40 {
        let bytes = [UInt8](repeating: UInt8(number), count: 2000 + number)
        try rig.directory.write(bytes, at: ByteString("\(name)/same \(number)"))
        try rig.directory.write("\(name) \(number)", at: ByteString("\(name)/own/\(number)"))
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
          let report = try backup(name, keeping: cache, to: rig.repository)
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
    #expect(try rig.names("repo/leases").isEmpty)
    try expectSound()
    let reader = try rig.repository.beginReading()
    for (name, id) in made {
      let plan = try RestorePlan.make(
        rig.repository.snapshot(id), path: ByteString("folders").appending(name),
        to: rig.directory.path("back"), from: reader)
      #expect(try RestoreOperation(plan, from: reader).run().isComplete)
      #expect(try rig.records("back") == rig.records(name))
      try rig.directory.directory.removeTree("back")
    }
  }

  /// A lease that is taken away at any moment of a run: either it was done, or it says so, leaves no
  /// snapshot, and the next run uses what is stored.
  @Test(arguments: ["start", "append", "commit packs", "commit index", "commit snapshots"])
  func aLeaseThatIsTakenAway(_ moment: String) throws {
    try rig.directory.write("one", at: "tree/one")
    let before = try #require(try rig.backup(keeping: "cache").snapshot)
    try rig.directory.write("two", at: "tree/two")
    let storage = WatchedStorage(rig.repository.storage)
    let isTaken = Atomic<Bool>(false)
    storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix(moment), !isTaken.exchange(true, ordering: .relaxed) else { return }
        takeLeases()
      }
    }
    let error = #expect(throws: StoreError.self) {
      try rig.backup(to: Repository.open(storage), keeping: "cache")
    }
    #expect(error?.code == .leaseLost && error?.hint != nil, "\(moment): \(error as Any)")
    let wasTaken = isTaken.load(ordering: .relaxed)
    #expect(wasTaken)
    #expect(try rig.repository.snapshots().snapshots.map(\.id) == [before.id])
    let next = try rig.backup(keeping: "cache")
    #expect(try rig.restore(next).isComplete)
    #expect(try rig.records("back") == rig.records("tree"))
    try expectSound()
  }

  /// Takes all leases away, as prune does with those that seem dead: by a rename, and then removed.
  private func takeLeases() {
    do {
      let repository = try rig.directory.directory.directory("repo")
      for name in try rig.names("repo/leases") {
        try repository.directory("leases").rename(name, to: "taken", in: repository)
        try repository.removeTree("taken")
      }
    } catch {
      Issue.record("\(error)")
    }
  }

  /// A clock that is set back by an hour between two runs: what was changed is stored, and the last
  /// snapshot is the latest.
  @Test func aClockThatIsSetBackHidesNothing() throws {
    func backup(at seconds: Int64) throws -> StoredSnapshot {
      let now = Timestamp(seconds: Host.now().seconds + seconds)
      let report = try rig.backup(keeping: "cache") { $0.now = { now } }
      #expect(report.isComplete)
      return try #require(report.snapshot)
    }
    try rig.directory.write("first", at: "tree/a")
    try rig.directory.write("same", at: "tree/b")
    var made = [try backup(at: 7200)]
    // As long as before.
    try rig.directory.write("other", at: "tree/a")
    made.append(try backup(at: 3600))
    try rig.directory.write("third", at: "tree/a")
    made.append(try backup(at: 3700))
    made.append(try backup(at: 10_000))
    #expect(made[1].snapshot.time < made[0].snapshot.time)
    #expect(made.map(\.snapshot.sequence) == [1, 2, 3, 4])
    #expect(made.map(\.snapshot.parent) == [nil] + made.dropLast().map(\.id))
    #expect(try rig.repository.snapshots().snapshots.map(\.id) == made.map(\.id))
    #expect(try rig.repository.snapshot(matching: "latest~2").id == made[1].id)
    let reader = try rig.repository.beginReading()
    for (snapshot, text) in zip(made, ["first", "other", "third", "third"]) {
      let plan = try RestorePlan.make(
        snapshot, path: "folders/tree", to: rig.directory.path("back"), from: reader)
      #expect(try RestoreOperation(plan, from: reader).run().isComplete)
      #expect(try rig.text("back/a") == text && rig.text("back/b") == "same")
      try rig.directory.directory.removeTree("back")
    }
  }
}
