import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The clock of a lease in a test.
final class LeaseClock: Sendable {
  private let seconds = Atomic<Int>(1000)

  func advance(by seconds: Int) { self.seconds.add(seconds, ordering: .relaxed) }

  /// The timing of a lease that uses this clock. Its thread checks the clock at an interval of real
  /// time.
  func timing(milliseconds: Int = 1) -> LeaseHeartbeat.Timing {
    LeaseHeartbeat.Timing(
      clock: { Double(self.seconds.load(ordering: .relaxed)) }, milliseconds: milliseconds)
  }
}

/// Waits until a condition is met by another thread.
func waitUntil(_ isDone: () throws -> Bool) throws {
  for _ in 1...60_000 {
    if try isDone() { return }
    Host.pause(seconds: 0.001)
  }
  Issue.record("nothing happened for a minute")
}

/// A reader's lease is kept alive, and a reader notices the loss of its lease.
@Suite struct ReaderLeaseTests {
  private static let files = PruneFixture.files(0..<6)

  private func fixture() throws -> PruneFixture {
    var fixture = try PruneFixture()
    try fixture.backUp(Self.files)
    try fixture.backUp(PruneFixture.files(20..<22))
    return fixture
  }

  private func take(_ fixture: PruneFixture, _ clock: LeaseClock) throws -> ReaderLease {
    try ReaderLease(fixture.repository.storage, timing: clock.timing())
  }

  /// Makes another program remove the lease, the first snapshot and its packs.
  private func removeFirst(_ fixture: inout PruneFixture) throws {
    fixture.clock.advance(by: 7200)
    try fixture.forget(0)
    #expect(try RepositoryPrune(Repository.open(fixture.memory)).run().removedPacks > 0)
    #expect(try fixture.repository.leases().isEmpty)
  }

  private func events(_ fixture: PruneFixture, _ prefix: String) -> Int {
    fixture.storage.state.withLock { $0.events.count { $0.hasPrefix(prefix) } }
  }

  /// The reader does not have to make any calls, and its end does not wait for the thread.
  @Test func theHeartbeatIsWrittenEachMinute() throws {
    let (fixture, clock) = (try fixture(), LeaseClock())
    let first = events(fixture, "touch alive")
    let lease = try take(fixture, clock)
    for minute in 1...3 {
      clock.advance(by: 61)
      try waitUntil { events(fixture, "touch alive") == first + 1 + minute }
    }
    #expect(lease.isCertain)
    lease.release()
    #expect(try fixture.repository.leases().isEmpty)
    clock.advance(by: 61)
    Host.pause(seconds: 0.01)
    #expect(events(fixture, "touch alive") == first + 4)
  }

  /// After half of the lease time without a heartbeat, the lease is not relied on, even if the next
  /// heartbeat succeeds.
  @Test func aLeaseIsUncertainAfterAPause() throws {
    let (fixture, clock) = (try fixture(), LeaseClock())
    let lease = try ReaderLease(
      fixture.repository.storage, timing: clock.timing(milliseconds: 3_600_000))
    clock.advance(by: 1799)
    #expect(lease.isCertain)
    clock.advance(by: 1)
    #expect(!lease.isCertain)
    let beating = try take(fixture, clock)
    let touches = events(fixture, "touch alive")
    clock.advance(by: 1800)
    try waitUntil { events(fixture, "touch alive") > touches }
    try waitUntil { events(fixture, "status leases/") > 0 }
    #expect(!beating.isCertain)
    #expect(try fixture.repository.leases().count == 2)
  }

  /// If another program removed the lease and then the data, the missing data is not damage. A new
  /// lease protects the rest.
  @Test func aReaderWhoseLeaseIsGoneReportsNoDamage() throws {
    var (fixture, clock) = (try fixture(), LeaseClock())
    let stored = fixture.snapshots[0].stored
    let reader = try fixture.repository.beginReading(lease: take(fixture, clock))
    try removeFirst(&fixture)
    let error = storeError {
      try reader.bytes(at: ByteString(Self.files[0].name), in: stored)
    }
    #expect(error?.code == .leaseLost && error?.hint != nil, "\(String(describing: error))")
    clock.advance(by: 61)
    try waitUntil { try fixture.repository.leases().count == 1 }
    #expect(try fixture.repository.leases()[0].isReader)
    let again = storeError { try reader.readBlob(Self.missing) }
    #expect(again?.code == .leaseLost)
  }

  @Test func aSharedReaderWhoseLeaseIsGoneReportsNoDamage() throws {
    var (fixture, clock) = (try fixture(), LeaseClock())
    let tree = BlobID(kind: .tree, digest: fixture.snapshots[0].stored.snapshot.tree.digest)
    let reader = try fixture.repository.beginSharedReading(lease: take(fixture, clock))
    try removeFirst(&fixture)
    #expect(storeError { _ = try reader.find(tree) }?.code == .leaseLost)
  }

  private static let missing = BlobID(kind: .data, digest: Blake2b.hash([9]))

  /// The store is asked for the lease at most once a minute, however many blobs are missing.
  @Test func missingDataIsDamageUnderALease() throws {
    let (fixture, clock) = (try fixture(), LeaseClock())
    let reader = try fixture.repository.beginReading(lease: take(fixture, clock))
    let looks = events(fixture, "status leases/")
    for _ in 1...5 {
      #expect(storeError { try reader.readBlob(Self.missing) }?.code == .missing)
    }
    #expect(events(fixture, "status leases/") == looks + 1)
  }

  /// Makes another program remove all leases, the first snapshot and its packs, as soon as a pack
  /// is read.
  private func removeFirstWhenRead(_ fixture: PruneFixture) {
    let call = OneCall()
    let snapshot = RepositoryLayout.tested.snapshot(fixture.snapshots[0].stored.id)
    fixture.storage.state.withLock { state in
      state.action = { [memory = fixture.memory, clock = fixture.clock] event in
        let isRead = event.hasPrefix("range packs/") || event.hasPrefix("load packs/")
        guard isRead, call.take() else { return }
        clock.advance(by: 7200)
        try? memory.remove(snapshot)
        _ = try? RepositoryPrune(Repository.open(memory)).run()
      }
    }
  }

  @Test func aCopyWhoseLeaseIsGoneReportsNoDamage() throws {
    let fixture = try fixture()
    let target = try Repository.create(in: MemoryStorage(), program: "test")
    removeFirstWhenRead(fixture)
    let error = storeError {
      _ = try RepositoryCopy(
        from: RepositoryCopy.Side(fixture.repository), to: RepositoryCopy.Side(target)
      ).run()
    }
    #expect(error?.code == .leaseLost, "\(String(describing: error))")
  }

  /// A mirror lists the original again if an object is missing.
  @Test func aMirrorWhoseLeaseIsGoneReportsNoDamage() throws {
    let fixture = try fixture()
    removeFirstWhenRead(fixture)
    let report = try RepositoryMirror(of: fixture.repository, in: MemoryStorage()).run()
    #expect(!report.hasDamage && report.copied.snapshots == 1, "\(report)")
  }
}

/// Readers without a lease.
struct UnleasedReaderTests {
  private static let missing = BlobID(kind: .data, digest: Blake2b.hash([9]))

  private func fixture() throws -> PruneFixture {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<6))
    try fixture.backUp(PruneFixture.files(20..<22))
    return fixture
  }

  /// If another program removes a snapshot during a query, the error says to try again.
  @Test func dataThatWasJustRemovedIsNotDamage() throws {
    var fixture = try fixture()
    let stored = fixture.snapshots[0].stored
    let reader = try fixture.repository.beginReading()
    try fixture.forget(0)
    #expect(try fixture.prune().removedPacks > 0)
    let name = ByteString(PruneFixture.files(0..<1)[0].name)
    for _ in 1...2 {
      let error = storeError { try reader.bytes(at: name, in: stored) }
      #expect(error?.code == .busy && error?.hint != nil, "\(String(describing: error))")
    }
    // Blobs that moved to another pack are found.
    let other = fixture.snapshots[0]
    #expect(
      try reader.bytes(at: ByteString(other.files[0].name), in: other.stored)
        == other.files[0].bytes)
  }

  /// Data that is missing although no program removes anything is damage, even during a backup.
  @Test func dataThatIsMissingIsDamage() throws {
    var fixture = try fixture()
    let reader = try fixture.repository.beginReading()
    #expect(storeError { try reader.readBlob(Self.missing) }?.code == .missing)
    try fixture.backUp(PruneFixture.files(30..<31))
    let again = try fixture.repository.beginReading()
    #expect(storeError { try again.readBlob(Self.missing) }?.code == .missing)
  }
}
