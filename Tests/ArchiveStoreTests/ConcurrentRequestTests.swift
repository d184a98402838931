import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A storage like that of another host, which accepts several requests at a time. A load of a
/// snapshot or an index object returns once `concurrency` loads have been active at the same time,
/// or after two seconds.
private final class SlowStorage: ForwardingStorage {
  let base: any Storage
  let concurrency: Int
  private let waiting = Atomic<Int>(0)
  private let most = Atomic<Int>(0)

  init(_ base: any Storage, concurrency: Int) {
    (self.base, self.concurrency) = (base, concurrency)
  }

  /// The largest number of simultaneous loads so far.
  var loadsAtOnce: Int { most.load(ordering: .relaxed) }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    let now = waiting.add(1, ordering: .relaxed).newValue
    most.max(now, ordering: .relaxed)
    defer { waiting.subtract(1, ordering: .relaxed) }
    if [RepositoryLayout.snapshots, RepositoryLayout.indexes].contains(path.directory) {
      let end = Host.monotonicSeconds() + 2
      while loadsAtOnce < concurrency, Host.monotonicSeconds() < end { Host.pause(seconds: 0.001) }
    }
    return try base.load(path, limit: limit)
  }
}

/// Requests of several threads for one command.
struct ConcurrentRequestTests {
  private func fixture() throws -> PruneFixture {
    var fixture = try PruneFixture()
    for number in 0..<9 { try fixture.backUp(PruneFixture.files(number..<(number + 2))) }
    return fixture
  }

  private func open(_ fixture: PruneFixture) throws -> (SlowStorage, Repository) {
    let storage = SlowStorage(fixture.memory, concurrency: 4)
    return (storage, try Repository.open(storage))
  }

  @Test func snapshotsAreReadAtTheSameTime() throws {
    let fixture = try fixture()
    let (storage, repository) = try open(fixture)
    try fixture.memory.changeContent(
      RepositoryLayout.tested.snapshot(fixture.snapshots[4].stored.id)
    ) { $0[0] ^= 1 }
    let found = try repository.heads()
    #expect(found.damaged.count == 1)
    let ids = fixture.snapshots.map(\.stored.id)
    #expect(Set(found.heads.map(\.id)) == Set(ids).subtracting([ids[4]]))
    #expect(storage.loadsAtOnce == 4)
  }

  @Test func indexObjectsAreReadAtTheSameTime() throws {
    let fixture = try fixture()
    let (storage, repository) = try open(fixture)
    let reader = try repository.beginReading()
    #expect(storage.loadsAtOnce == min(4, try RepositoryListing.indexes(fixture.memory).count))
    for snapshot in fixture.snapshots {
      let file = snapshot.files[0]
      #expect(try reader.bytes(at: ByteString(file.name), in: snapshot.stored) == file.bytes)
    }
  }

  @Test func aCheckReadsAtTheSameTime() throws {
    let fixture = try fixture()
    let (storage, repository) = try open(fixture)
    #expect(try Checked(repository, .everything).findings.isEmpty)
    #expect(storage.loadsAtOnce == 4)
  }

  /// If only one of two threads that restore a snapshot succeeds, the lease stays, because it
  /// contains the other one's snapshot.
  @Test func aLeaseStaysWhileOneThreadRetainsIt() throws {
    let fixture = try PruneFixture()
    for count in [1, 2] {
      let lease = try Lease(fixture.repository.storage)
      for _ in 0..<2 { lease.retain() }
      for _ in 0..<count { lease.cancelRetention() }
      lease.release()
      #expect(try fixture.repository.leases().count == 1)
    }
  }

  /// Snapshots are removed concurrently, and each removed one is reported, even if another removal
  /// fails.
  @Test(arguments: [1, 4]) func removedSnapshotsAreReported(concurrency: Int) throws {
    var fixture = try fixture()
    let ids = fixture.snapshots.map(\.stored.id)
    _ = try fixture.repository.pin([ids[1]])
    let last = ids[5].hex
    fixture.storage.state.withLock { state in
      state.failure = { event in
        guard event.hasPrefix("rename"), event.contains(last) else { return nil }
        return StoreError(.system, "rename", subject: "it", reason: "the test says so")
      }
    }
    let storage = SlowStorage(fixture.storage, concurrency: concurrency)
    var removed: Set<SnapshotID> = []
    let error = storeError {
      _ = try SnapshotRemoval(Repository.open(storage)).run(Array(ids[..<8])) { removed.insert($0) }
    }
    #expect(error?.code == .system)
    let left = Set(try RepositoryListing.snapshots(fixture.memory))
    #expect(removed == Set(ids).subtracting(left))
    #expect(
      left.isSuperset(of: [ids[1], ids[5], ids[8]]) && removed.isSuperset(of: [ids[0], ids[4]]))
    fixture.storage.state.withLock { $0.failure = nil }
    let report = try SnapshotRemoval(Repository.open(storage)).run(Array(ids[..<8])) {
      removed.insert($0)
    }
    #expect(report.pinned == [ids[1]])
    #expect(removed == Set(ids[..<8]).subtracting([ids[1]]))
    fixture.snapshots.removeAll { removed.contains($0.stored.id) }
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }
}
