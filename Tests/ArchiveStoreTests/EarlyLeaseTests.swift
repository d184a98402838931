import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A reader that begins to read before it has its lease.
struct EarlyLeaseTests {
  /// Blocks the calls of a connection whose events begin with a text, until it is opened.
  private final class Gate: Sendable {
    private let queue = BoundedQueue<UInt8>(capacity: 1)

    init(_ connection: WatchedStorage, before text: String) {
      connection.state.withLock { state in
        state.action = { [queue] event in
          if event.hasPrefix(text) { _ = queue.dequeue(waitingAtMost: 60_000) }
        }
      }
    }

    func open() { queue.close() }
  }

  private static let files = PruneFixture.files(0..<3)
  private static let lease = "touch by-"

  private func begin(
    _ program: ObjectStoreProgram, timing: LeaseHeartbeat.Timing = LeaseHeartbeat.Timing()
  ) throws -> RepositoryReader {
    try program.repository.beginReading(
      cache: nil,
      early: EarlyLease(program.repository, through: program.connection, timing: timing))
  }

  private func events(_ program: ObjectStoreProgram) -> [String] {
    program.connection.state.withLock(\.events)
  }

  private func leases(_ fixture: ObjectStoreFixture) throws -> [ByteString] {
    try fixture.names(RepositoryLayout.leases)
  }

  /// The index, a snapshot and its tree are read before there is a lease. Once there is one, both
  /// directories are listed again before the first bytes of a file are read.
  @Test func onlyDataWaitsForTheLease() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(Self.files)
    let stored = fixture.snapshots[0].stored
    let program = try ObjectStoreProgram(fixture.store)
    let gate = Gate(program.connection, before: Self.lease)
    let reader = try begin(program)
    #expect(try program.repository.snapshots().snapshots.map(\.id) == [stored.id])
    #expect(try reader.entries(of: stored.snapshot.tree).count == Self.files.count)
    #expect(try leases(fixture).isEmpty)
    gate.open()
    let tree = events(program).count
    for (name, bytes) in Self.files {
      #expect(try reader.bytes(at: ByteString(name), in: stored) == bytes)
    }
    #expect(try leases(fixture).count == 1)
    let all = events(program)
    let sign = try #require(all.firstIndex(of: "touch reader"))
    let listings = ["list index", "list snapshots"].compactMap { all.lastIndex(of: $0) }
    let data = try #require(all[tree...].firstIndex { $0.hasPrefix("range packs/") })
    #expect(listings.count == 2 && listings.allSatisfy { sign < $0 && $0 < data }, "\(all)")
    try reader.requireKept(stored.id)
    // Each directory is listed only once more.
    #expect(events(program).count { $0 == "list index" } == 1)
  }

  /// Another program removes the snapshot and its packs after the reader's listing and before its
  /// lease.
  @Test func aSnapshotThatIsRemovedBeforeTheLeaseIsRefused() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(Self.files)
    try fixture.backUp(PruneFixture.files(20..<22))
    let (gone, kept) = (fixture.snapshots[0].stored.id, fixture.snapshots[1].stored.id)
    let program = try ObjectStoreProgram(fixture.store)
    let gate = Gate(program.connection, before: Self.lease)
    let reader = try begin(program)
    #expect(try program.repository.snapshots().snapshots.count == 2)
    try fixture.forget(0)
    #expect(try fixture.prune().removedPacks > 0)
    gate.open()
    let error = storeError { try reader.requireKept(gone) }
    #expect(error?.code == .busy, "\(String(describing: error))")
    try reader.requireKept(kept)
  }

  /// Another program moves blobs to other packs after the reader's listing and before its lease:
  /// the reader loads the new index before it reads data, and does not request packs that no longer
  /// exist.
  @Test func anIndexThatIsReplacedBeforeTheLeaseIsLoadedAgain() throws {
    var fixture = try ObjectStoreFixture.withUnusedPacks()
    let program = try ObjectStoreProgram(fixture.store)
    let gate = Gate(program.connection, before: Self.lease)
    let reader = try begin(program)
    let report = try fixture.prune()
    #expect(report.removedPacks > 0)
    gate.open()
    for snapshot in fixture.snapshots { try reader.requireKept(snapshot.stored.id) }
    let settled = events(program).count
    for snapshot in fixture.snapshots {
      for (name, bytes) in snapshot.files {
        #expect(try reader.bytes(at: ByteString(name), in: snapshot.stored) == bytes)
      }
    }
    let there = Set(fixture.store.paths.map { "range \($0)" })
    let ranges = events(program)[settled...].filter { $0.hasPrefix("range packs/") }
    #expect(!ranges.isEmpty && there.isSuperset(of: ranges), "\(ranges)")
    // From now on the lease protects the reader's packs.
    let own = try leases(fixture)
    try fixture.forget(0)
    let waiting = try fixture.prune()
    #expect(waiting.removedPacks == 0 && waiting.waitingFor == own)
    try reader.settleLease()
  }

  /// Searching for a path and planning a restore may take hours before the lease is needed.
  @Test func theLeaseIsKeptAliveBeforeItIsNeeded() throws {
    let fixture = try ObjectStoreFixture()
    let program = try ObjectStoreProgram(fixture.store)
    let clock = LeaseClock()
    let reader = try begin(program, timing: clock.timing())
    try waitUntil { events(program).contains("list snapshots") }
    for minute in 1...3 {
      clock.advance(by: 61)
      try waitUntil { events(program).count { $0 == "touch alive" } == minute }
    }
    try reader.settleLease()
    #expect(events(program).count { $0 == "touch reader" } == 1)
  }

  /// The host is suspended until the lease has expired, and another program removes the snapshot
  /// and its packs: the reader lists again under a new lease.
  @Test func aLeaseThatExpiredIsTakenAgain() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(Self.files)
    try fixture.backUp(PruneFixture.files(20..<22))
    try fixture.backUp(PruneFixture.files(30..<31))
    let (gone, kept) = (fixture.snapshots[0].stored.id, fixture.snapshots[1].stored)
    let program = try ObjectStoreProgram(fixture.store)
    let clock = LeaseClock()
    let reader = try begin(program, timing: clock.timing(milliseconds: 3_600_000))
    try waitUntil { events(program).contains("list snapshots") }
    clock.advance(by: 7200)
    fixture.store.advance(by: 7200)
    try fixture.forget(0)
    #expect(try fixture.prune().removedPacks > 0)
    let error = storeError { try reader.requireKept(gone) }
    #expect(error?.code == .busy, "\(String(describing: error))")
    try reader.requireKept(kept.id)
    for (name, bytes) in PruneFixture.files(20..<22) {
      #expect(try reader.bytes(at: ByteString(name), in: kept) == bytes)
    }
    #expect(events(program).count { $0 == "touch reader" } == 2)
    // The new lease protects the packs from now on.
    try fixture.forget(0)
    #expect(try fixture.prune().waitingFor.count == 1)
  }

  /// The same while a restore is planned: missing trees are not damage.
  @Test func treesThatAreGoneWithAnExpiredLeaseAreNotDamage() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(Self.files)
    try fixture.backUp(PruneFixture.files(20..<22))
    let stored = fixture.snapshots[0].stored
    let program = try ObjectStoreProgram(fixture.store)
    let clock = LeaseClock()
    let reader = try begin(program, timing: clock.timing(milliseconds: 3_600_000))
    try waitUntil { events(program).contains("list snapshots") }
    clock.advance(by: 7200)
    fixture.store.advance(by: 7200)
    try fixture.forget(0)
    #expect(try fixture.prune().removedPacks > 0)
    let error = storeError {
      try reader.walkPastDamage(stored.snapshot.tree) { _, _ in .enter }
    }
    #expect(error?.code == .leaseLost, "\(String(describing: error))")
    #expect(storeError { try reader.requireKept(stored.id) }?.code == .busy)
  }

  /// Another program removes the lease although its heartbeats were written, because the clock of
  /// the store jumped.
  @Test func aLeaseThatIsFoundToBeGoneIsTakenAgain() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(Self.files)
    try fixture.backUp(PruneFixture.files(20..<22))
    let gone = fixture.snapshots[0].stored.id
    let program = try ObjectStoreProgram(fixture.store)
    let clock = LeaseClock()
    let reader = try begin(program, timing: clock.timing())
    try waitUntil { events(program).contains("list snapshots") }
    fixture.store.advance(by: 7200)
    try fixture.forget(0)
    #expect(try fixture.prune().removedPacks > 0)
    clock.advance(by: 61)
    try waitUntil { events(program).count { $0 == "touch reader" } == 2 }
    #expect(storeError { try reader.requireKept(gone) }?.code == .busy)
  }

  /// A reader without write access has no lease, and reads the snapshots that it listed.
  @Test func aReaderThatCannotWriteHasNoLease() throws {
    var fixture = try ObjectStoreFixture()
    try fixture.backUp(Self.files)
    let stored = fixture.snapshots[0].stored
    let program = try ObjectStoreProgram(fixture.store)
    program.connection.state.withLock { state in
      state.failure = { event in
        guard event.hasPrefix("touch") else { return nil }
        return StoreError(.system, "write", subject: event, reason: "the test says so")
      }
    }
    let reader = try begin(program)
    try reader.requireKept(stored.id)
    #expect(try reader.bytes(at: ByteString(Self.files[0].name), in: stored) == Self.files[0].bytes)
    #expect(!events(program).contains("list index"))
    #expect(try leases(fixture).isEmpty)
  }

  /// A command that ends before it needs the lease leaves none behind.
  @Test func aReaderThatReadsNoDataLeavesNoLease() throws {
    let fixture = try ObjectStoreFixture()
    let program = try ObjectStoreProgram(fixture.store)
    do {
      let reader = try begin(program)
      #expect(reader.remarks.isEmpty)
    }
    #expect(events(program).contains("touch reader"))
    #expect(try leases(fixture).isEmpty)
  }

  /// Once nothing more is read, the lease is released in the background: the caller does not wait
  /// for it, but the end of the reader does.
  @Test func theLeaseEndsWhileTheCallerContinues() throws {
    let fixture = try ObjectStoreFixture()
    let program = try ObjectStoreProgram(fixture.store)
    do {
      let reader = try begin(program)
      try reader.settleLease()
      let gate = Gate(program.connection, before: "remove ")
      reader.endReading()
      #expect(try leases(fixture).count == 1)
      gate.open()
    }
    #expect(try leases(fixture).isEmpty)
  }
}
