import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A prune under hostile conditions: clock jumps, a full or read-only volume, a pack that vanishes,
/// and interruptions. Every remaining snapshot stays complete.
struct PruneHostileTests {
  /// Calls `body` before each call of a prune in turn, and then completes the work with further
  /// prunes.
  private func sweep(
    _ label: String, expecting codes: Set<StoreError.Code> = [.leaseLost],
    _ body: @escaping @Sendable (PruneFixture) -> Void
  ) throws {
    let original = try PruneFixture.withUnusedPacks()
    for number in Sampling.steps(7, label) {
      let fixture = try original.copy()
      let counter = Counter()
      fixture.storage.state.withLock { state in
        state.action = { [fixture] _ in if counter.next() == number { body(fixture) } }
      }
      let error = storeError { try fixture.prune() }
      fixture.storage.state.withLock { $0.action = nil }
      let isOver = counter.count < number
      let comment: Comment = "\(label), call \(number): \(error?.description ?? "no error")"
      #expect(error.map { codes.contains($0.code) } ?? true, comment)
      #expect(try fixture.lost().isEmpty, comment)
      let next = try fixture.pruneLater()
      #expect(next.waitingPacks == 0, comment)
      #expect(try fixture.prune().plan.isIdle, comment)
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty, comment)
      #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty, comment)
      if isOver { return }
    }
  }

  // MARK: - Clocks

  /// The clock of the storage jumps by an hour or a year, forwards or backwards, at any moment of a
  /// prune.
  @Test(arguments: [-31_536_000.0, -3700, 3700, 31_536_000])
  func jumpingClockAtMostEndsAPrune(seconds: Double) throws {
    try sweep("a clock that jumps by \(seconds) s") { $0.clock.advance(by: seconds) }
  }

  /// Another prune takes over while this one sleeps until its lease has expired.
  @Test func pruneThatSleepsLosesItsRight() throws {
    try sweep("a prune that sleeps", expecting: [.busy, .leaseLost]) { fixture in
      fixture.clock.advance(by: 3700)
      guard let repository = try? Repository.open(fixture.memory) else { return }
      let error = storeError { try RepositoryPrune(repository).run() }
      // A right without a heartbeat is given one, and then stays taken for an hour.
      #expect(error == nil || error?.code == .busy, "\(error as Any)")
    }
  }

  /// If the clock of the storage jumps ahead, a writer loses its lease, and commits no broken
  /// snapshot.
  @Test(arguments: [3700.0, 31_536_000]) func clockThatJumpsAheadEndsTheLeaseOfAWriter(
    _ seconds: Double
  )
    throws
  {
    let fixture = try PruneFixture.withUnusedPacks()
    let session = try fixture.repository.beginWriting()
    let tree = try session.storeTree(try session.entries(of: PruneFixture.files(0..<4)))
    fixture.clock.advance(by: seconds)
    #expect(try fixture.prune().removedPacks > 0)
    let error = storeError {
      try session.finish(fixture.repository.makeSnapshot(tree, sequence: 9))
    }
    #expect(error?.code == .leaseLost)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// The clock of the storage was ahead when a program ended, and has been corrected. The lease and
  /// the right to remove objects of that program expire an hour after this is noticed.
  @Test(arguments: [86_400.0, 31_536_000]) func heartbeatsInTheFutureExpire(_ seconds: Double)
    throws
  {
    let fixture = try PruneFixture.withUnusedPacks()
    fixture.clock.advance(by: seconds)
    let dead = ByteString(Host.randomHex(bytes: 16))
    try fixture.memory.makeDirectories([dead, "prune"], in: RepositoryLayout.leases)
    for lease in [dead, "prune"] {
      try fixture.memory.touch(RepositoryLayout.leases.appending(lease).appending("alive"))
    }
    fixture.clock.advance(by: -seconds)
    #expect(storeError { try fixture.prune() }?.code == .busy)
    fixture.clock.advance(by: 3700)
    // The right has expired; the other lease is noticed only now.
    let waiting = try fixture.prune()
    #expect(waiting.waitingPacks > 0 && waiting.waitingFor == [dead])
    fixture.clock.advance(by: 3700)
    #expect(try fixture.prune().waitingPacks == 0)
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// A running writer keeps its lease when the clock is set back.
  @Test func writerKeepsItsLeaseWhenTheClockIsSetBack() throws {
    var fixture = try PruneFixture.withUnusedPacks()
    let session = try fixture.repository.beginWriting()
    fixture.clock.advance(by: -31_536_000)
    let files = PruneFixture.files(0..<4)
    let tree = try session.storeTree(try session.entries(of: files))
    #expect(try fixture.prune().waitingFor == [session.lease.path.name])
    let stored = try session.finish(fixture.repository.makeSnapshot(tree, sequence: 9))
    fixture.snapshots.append((stored, files))
    #expect(try fixture.prune().waitingPacks == 0)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  // MARK: - Volumes

  /// On a full volume, nothing can be written before a pack is removed, except for small objects in
  /// the reserved space: an index object does not fit.
  @Test func fullVolumeIsPruned() throws {
    let fixture = try PruneFixture.withUnusedPacks()
    let room = Room()
    fixture.storage.state.withLock { state in
      state.space = VolumeSpace(available: 0, total: 1 << 30)
      state.failure = { room.failure(of: $0) }
    }
    let error = storeError { try fixture.prune() }
    // Packs without used data were removed. There was no room to rewrite the others.
    #expect(
      error?.code == .system && error?.hint?.contains("were removed") == true, "\(error as Any)")
    #expect(room.isFreed)
    fixture.storage.state.withLock { ($0.failure, $0.space) = (nil, nil) }
    #expect(try fixture.memory.status(RepositoryLayout.reserve)?.size == 4 << 20)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
    _ = try fixture.prune()
    #expect(try fixture.prune().plan.isIdle)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// If two threads find the volume full, one of them frees the reserve, and both try again.
  @Test func eachThreadTriesAgainWithTheReserve() throws {
    let fixture = try PruneFixture()
    let reserve = SpaceReserve(fixture.repository.storage)
    for _ in 0..<2 {
      var attempts = 0
      try reserve.whenFull { () throws(StoreError) in
        attempts += 1
        if attempts == 1 { throw Room.error(.write, 28) }
      }
      #expect(attempts == 2)
    }
    #expect(try fixture.memory.status(RepositoryLayout.reserve) == nil)
    let error = storeError {
      try reserve.whenFull { () throws(StoreError) in throw Room.error(.write, 28) }
    }
    #expect(error?.cause?.isFull == true)
  }

  /// A crash on a full volume, after packs were removed and before their index entries were, is not
  /// damage and does not block the next prune.
  @Test func condemnedPacksMayBeMissing() throws {
    let fixture = try PruneFixture.withUnusedPacks()
    let unused = try fixture.plan().plan.packs(.remove).map(\.id)
    _ = try fixture.memory.condemn(unused)
    for pack in unused { try fixture.memory.remove(RepositoryLayout.tested.pack(pack)) }
    let checked = try Checked(fixture.repository, .everything)
    #expect(checked.damaged.isEmpty && checked.costs.isEmpty, "\(checked.findings)")
    #expect(try fixture.lost().isEmpty)
    _ = try fixture.prune()
    #expect(try fixture.prune().plan.isIdle)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// The store becomes read-only at any moment.
  @Test func readOnlyVolumeKeepsEverything() throws {
    let original = try PruneFixture.withUnusedPacks()
    let readOnly: @Sendable (String) -> StoreError? = { event in
      Room.isChange(event) ? Room.error(.rename, 30) : nil
    }
    for number in Sampling.steps(7, "a read-only store") {
      let fixture = try original.copy()
      let counter = Counter()
      fixture.storage.state.withLock { state in
        state.failure = { counter.next() >= number ? readOnly($0) : nil }
      }
      let error = storeError { try fixture.prune() }
      let isOver = counter.count < number
      // At the end, only the removal of the right and the lease fails.
      let isDone = error == nil && counter.count - number < 40
      #expect(isDone || error?.cause?.number == 30, "call \(number): \(error as Any)")
      #expect(try fixture.lost().isEmpty, "call \(number)")
      // A plan writes nothing.
      #expect(storeError { try fixture.plan() } == nil, "call \(number)")
      fixture.storage.state.withLock { $0.failure = nil }
      #expect(try fixture.pruneLater().waitingPacks == 0, "call \(number)")
      #expect(try fixture.prune().plan.isIdle, "call \(number)")
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty, "call \(number)")
      if isOver { return }
    }
  }

  // MARK: - Packs

  /// A pack vanishes at any moment of a prune: only its own data is lost, and the repairs lead to a
  /// repository that can be pruned.
  @Test func vanishedPackLosesOnlyItsOwnData() throws {
    let original = try PruneFixture.withUnusedPacks()
    for pack in try original.packs().sorted() {
      let without = try original.copy()
      try without.memory.remove(RepositoryLayout.tested.pack(pack))
      let inPack = Set(try without.lost())
      for number in Sampling.steps(11, "a vanished pack") {
        let fixture = try original.copy()
        let counter = Counter()
        fixture.storage.state.withLock { state in
          state.action = { [memory = fixture.memory] _ in
            if counter.next() == number { try? memory.remove(RepositoryLayout.tested.pack(pack)) }
          }
        }
        let error = storeError { try fixture.prune() }
        fixture.storage.state.withLock { $0.action = nil }
        let comment: Comment = "\(pack.hex.prefix(8)), call \(number): \(error as Any)"
        #expect(error.map { $0.kind == .damaged } ?? true, comment)
        #expect(inPack.isSuperset(of: try fixture.lost()), comment)
        if counter.count < number { break }
        try fixture.repairAndPrune()
        #expect(inPack.isSuperset(of: try fixture.lostFiles()), comment)
      }
    }
  }

  // MARK: - Interruption

  /// The prune is interrupted at each check of the stop request in turn.
  @Test func interruptedPruneContinues() throws {
    let original = try PruneFixture.withUnusedPacks()
    for number in Sampling.steps(3, "an interruption") {
      let fixture = try original.copy()
      let counter = Counter()
      var isInterrupted = true
      do {
        isInterrupted = try fixture.prune(isStopping: { counter.next() >= number }).isInterrupted
      } catch let error as StoreError {
        #expect(error.code == .interrupted && error.hint != nil, "question \(number): \(error)")
      }
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty, "question \(number)")
      #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty, "question \(number)")
      _ = try fixture.prune()
      #expect(try fixture.prune().plan.isIdle, "question \(number)")
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty, "question \(number)")
      if !isInterrupted { return }
    }
  }
}

/// A counter of calls from several threads.
final class Counter: Sendable {
  private let value = Atomic<Int>(0)

  var count: Int { value.load(ordering: .relaxed) }

  func next() -> Int { value.add(1, ordering: .relaxed).newValue }
}

/// The free space of a full volume.
final class Room: Sendable {
  private let hasReserve = Atomic<Bool>(true)
  private let hasPacks = Atomic<Bool>(true)

  /// Whether a pack was removed.
  var isFreed: Bool { !hasPacks.load(ordering: .relaxed) }

  func failure(of event: String) -> StoreError? {
    if event == "remove reserve" { hasReserve.store(false, ordering: .relaxed) }
    if event.hasPrefix("remove "), event.hasSuffix(" objects") {
      hasPacks.store(false, ordering: .relaxed)
    }
    if isFreed { return nil }
    let isLarge = event.hasPrefix("commit index/") || event.hasPrefix("commit packs/")
    let isRefused = hasReserve.load(ordering: .relaxed) ? Self.isChange(event) : isLarge
    return isRefused && !event.hasPrefix("remove ") ? Self.error(.write, 28) : nil
  }

  /// Whether a call changes the storage.
  static func isChange(_ event: String) -> Bool {
    ["append", "commit ", "directories ", "remove ", "rename ", "start", "touch "].contains {
      event.hasPrefix($0)
    }
  }

  static func error(_ operation: SystemError.Operation, _ number: Int32) -> StoreError {
    StoreError(
      .system, "write to the repository", subject: "memory", reason: "the test says so",
      cause: SystemError(operation, "memory", number: number))
  }
}

extension PruneFixture {
  /// Prunes an hour later, and again each hour after that, because a lease without a heartbeat, or
  /// with one in the future, is valid for an hour. Returns the result of the last prune.
  func pruneLater() throws -> RepositoryPrune.Report {
    for _ in 0..<3 {
      clock.advance(by: 3700)
      if let error = storeError({ try prune() }), error.code != .busy { throw error }
    }
    clock.advance(by: 3700)
    return try prune()
  }
}
