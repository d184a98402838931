import Codecs
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

struct LeaseTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  private func onlyLease() throws -> ObjectPath {
    let names = try storage.list(RepositoryLayout.leases)
    #expect(names.count == 1)
    return RepositoryLayout.leases.appending(try #require(names.first))
  }

  private func packsOfIndex() throws -> [Digest] {
    let objects = try LoadedIndex.loadAll(from: storage).objects
    return objects.flatMap { object in (0..<object.packs).map { object.pack($0).id } }
  }

  @Test func writerHoldsALiveLease() throws {
    let session = try repository.beginWriting()
    let lease = try onlyLease()
    #expect(lease.name.count == 32)
    #expect(try storage.list(lease) == ["alive", LeaseStatus.Owner.sign])
    session.abandon()
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  /// The heartbeat is written once a minute, however often it is requested.
  @Test func leaseIsTouchedEachMinute() throws {
    let clock = Atomic<Int>(1_000)
    let watched = WatchedStorage(storage)
    let lease = try Lease(watched, clock: { Double(clock.load(ordering: .relaxed)) })
    let touches = { watched.state.withLock { $0.events.count { $0 == "touch alive" } } }
    #expect(touches() == 1)
    for second in 1_001...1_200 {
      clock.store(second, ordering: .relaxed)
      for _ in 1...3 { try lease.keepAlive() }
      #expect(touches() == 1 + (second - 1_000) / 60, "\(second)")
    }
    lease.release()
  }

  /// While the program removes its lease, a prune that finds no heartbeat may add one, which the
  /// program does not know. The directory is removed nevertheless.
  @Test func leaseIsRemovedWhileAPruneInspectsIt() throws {
    let watched = WatchedStorage(storage)
    let lease = try Lease(watched)
    let once = Once<Void>()
    watched.state.withLock {
      $0.action = { [storage] event in
        guard event.hasPrefix("remove "), event.hasSuffix(" objects") else { return }
        once.run { try storage.touch(lease.path.appending("late")) }
      }
    }
    lease.release()
    try once.value()
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  @Test func discardedSessionReleasesItsLease() throws {
    do { _ = try repository.beginWriting() }
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  /// If another program removes the lease, no snapshot is stored, and the error says why.
  @Test func lostLeasePreventsTheSnapshot() throws {
    let session = try repository.beginWriting()
    let content = try session.storeFile(logicalPath: "folders/x/a", bytes: [1, 2, 3])
    let tree = try session.storeTree([TreeEntry(name: "a", node: .file(content))])
    let lease = try onlyLease()
    try storage.rename(lease, to: RepositoryLayout.leases.appending("taken"))
    let error = storeError { try session.finish(repository.makeSnapshot(tree)) }
    #expect(error?.code == .leaseLost)
    #expect(error?.hint != nil)
    #expect(try repository.snapshots().snapshots.isEmpty)
  }

  /// Several threads may detect the loss at once, and any of them may end the run: each reports the
  /// lost lease.
  @Test func everyThreadReportsTheLostLease() throws {
    let lease = try Lease(storage)
    let (first, second) = (
      try storage.startObject(in: lease.path), try storage.startObject(in: lease.path)
    )
    try storage.rename(lease.path, to: RepositoryLayout.leases.appending("taken"))
    for writer in [first, second] {
      let error = storeError {
        try lease.explained { () throws(StoreError) in
          try writer.append([1])
          try writer.commit(
            as: RepositoryLayout.settings, digest: Blake2b.hash([1]), isReadSoon: true)
        }
      }
      #expect(error?.code == .leaseLost && error?.hint != nil, "\(error as Any)")
    }
  }

  @Test func writerDoesNotRelyOnACondemnedPack() throws {
    let files = [("a", [UInt8]("content".utf8))]
    let first = try repository.back(up: files, sequence: 1)
    let id = try storage.condemn(try packsOfIndex())
    let session = try repository.beginWriting()
    let lease = try onlyLease()
    #expect(try storage.list(lease).contains(ByteString("seen-" + id)))
    let content = try session.storeFile(logicalPath: "folders/test/a", bytes: files[0].1)
    #expect(session.statistics.newBlobs == 1)
    let tree = try session.storeTree([TreeEntry(name: "a", node: .file(content))])
    let second = try session.finish(repository.makeSnapshot(tree, sequence: 2))
    #expect(second.snapshot.tree == first.snapshot.tree)
    #expect(second.snapshot.totals.stored > 0)
  }

  @Test func writerDoesNotRelyOnAMissingPack() throws {
    try repository.back(up: [("a", [7, 8])], sequence: 1)
    for pack in try packsOfIndex() { try storage.remove(RepositoryLayout.tested.pack(pack)) }
    let second = try repository.back(up: [("a", [7, 8])], sequence: 2)
    #expect(second.snapshot.totals.stored > 0)
    let reader = try repository.beginReading()
    // The older index names missing packs; the reader must find the blob in the other one.
    #expect(storeError { try reader.bytes(at: "a", in: second) } == nil)
  }

  @Test func readerReloadsTheIndexWhenAPackIsMissing() throws {
    let first = try repository.back(up: [("a", [1, 2, 3])], sequence: 1)
    let reader = try repository.beginReading()
    let old = try packsOfIndex()
    // Another program stores the blobs again, and removes the old packs and their index.
    let indexes = try RepositoryListing.indexes(storage)
    for id in indexes { try storage.remove(RepositoryLayout.tested.index(id)) }
    try repository.back(up: [("a", [1, 2, 3])], sequence: 2)
    for pack in old { try storage.remove(RepositoryLayout.tested.pack(pack)) }
    #expect(try reader.bytes(at: "a", in: first) == [1, 2, 3])
  }
}
