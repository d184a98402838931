import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Concurrent copies into one repository: no snapshot is stored by two of them.
struct CopyTurnTests {
  /// Encryption gives each copy of a snapshot another id. The second copy begins before each call
  /// of the first one in turn, runs until it ends or has to wait, and then runs concurrently.
  @Test(arguments: [true, false])
  func copiesAtTheSameTimeStoreNoSnapshotTwice(withRename: Bool) throws {
    let source = try CopyFixture().source.repository
    for number in Sampling.steps(3, "copy beside a copy") {
      let target = try EncryptedTarget(withRename: withRename)
      let connection = WatchedStorage(
        target.store, passing: WatchedStorage.isFurtherPackDirectory)
      let (first, second) = (
        try target.open(through: connection),
        try CopyBeside(from: source, to: target.open(through: target.store))
      )
      let call = OneCall(number)
      connection.state.withLock { $0.action = { _ in if call.take() { second.begin() } } }
      let report = try CopyFixture.copy(source, first, timing: CopyBeside.timing())
      guard call.isTaken else { return }
      let other = try second.finish()
      let text: Comment = "call \(number)"
      #expect(report.copied.count + other.copied.count == 3, text)
      #expect(report.present + other.present == 3, text)
      #expect(!report.isInterrupted && !other.isInterrupted, text)
      let copies = try target.open(through: target.store).snapshots().snapshots
      #expect(copies.count == 3 && Set(copies.map(\.snapshot.original)).count == 3, text)
      #expect(try target.store.list(RepositoryLayout.leases).isEmpty, text)
    }
  }

  /// The other copy is waited for as long as it writes heartbeats.
  @Test func aCopyIsWaitedForWhileItWritesHeartbeats() throws {
    let fixture = try CopyFixture()
    let other = try Lease(fixture.target.repository.storage, with: ["copy", "copy-1"])
    let pauses = Atomic<Int>(0)
    let timing = Self.timing(fixture.target.clock) {
      let count = pauses.add(1, ordering: .relaxed).newValue
      if count < 5 { try? other.touchAlive() } else { other.release() }
    }
    let report = try CopyFixture.copy(
      fixture.source.repository, fixture.target.repository, timing: timing)
    #expect(report.copied.count == 3 && pauses.load(ordering: .relaxed) == 5)
    try fixture.expectComplete(3)
  }

  /// A copy that was killed on another host delays this one by minutes, not by the hour that its
  /// lease is valid. One that was killed long ago causes no delay.
  @Test(arguments: [["copy"], ["copy", "copy-1"]], [(age: 0.0, waits: 2), (1200, 0)])
  func aCopyWithoutHeartbeatsIsNotWaitedForLong(
    signs: [String], heartbeat: (age: Double, waits: Int)
  ) throws {
    let fixture = try CopyFixture()
    let other = try Lease(
      fixture.target.repository.storage, with: signs.map { ByteString($0) })
    fixture.target.clock.advance(by: heartbeat.age)
    let pauses = Atomic<Int>(0)
    let timing = Self.timing(fixture.target.clock) {
      _ = pauses.add(1, ordering: .relaxed)
    }
    let report = try CopyFixture.copy(
      fixture.source.repository, fixture.target.repository, timing: timing)
    #expect(report.copied.count == 3)
    #expect(pauses.load(ordering: .relaxed) == heartbeat.waits)
    other.release()
    try fixture.expectComplete(3)
  }

  /// The programs that the copy waits for are reported before the wait, and again when another one
  /// is added.
  @Test func aWaitIsReported() throws {
    let fixture = try CopyFixture()
    let storage = fixture.target.repository.storage
    let first = try Lease(storage, with: ["copy", "copy-1"])
    let second = try Lease(storage)
    let pauses = Atomic<Int>(0)
    let timing = Self.timing(fixture.target.clock) {
      let count = pauses.add(1, ordering: .relaxed).newValue
      try? first.touchAlive()
      if count == 3 { try? second.put(signs: ["copy"]) }
      guard count == 5 else { return }
      first.release()
      second.release()
    }
    var reported: [Set<ByteString>] = []
    let report = try CopyFixture.copy(
      fixture.source.repository, fixture.target.repository,
      onWait: { reported.append(Set($0.map(\.name))) }, timing: timing)
    #expect(report.copied.count == 3 && pauses.load(ordering: .relaxed) == 5)
    #expect(reported == [[first.path.name], [first.path.name, second.path.name]])
  }

  @Test func anInterruptedWaitIsContinued() throws {
    let fixture = try CopyFixture()
    let other = try Lease(fixture.target.repository.storage, with: ["copy"])
    let isStopping = Atomic<Bool>(false)
    let timing = Self.timing(fixture.target.clock) { isStopping.store(true, ordering: .relaxed) }
    let report = try CopyFixture.copy(
      fixture.source.repository, fixture.target.repository, timing: timing
    ) { isStopping.load(ordering: .relaxed) }
    #expect(report.isInterrupted && report.copied.isEmpty && report.newPacks > 0)
    other.release()
    let next = try fixture.copy()
    #expect(next.copied.count == 3 && next.newPacks == 0)
    try fixture.expectComplete(3)
  }

  @Test func onlyValidSignsAreNumbers() {
    let cases: [([ByteString], CopyTurn.Place?)] = [
      (["alive", "by-7-host"], nil), (["alive", "copy"], .choosing),
      (["alive", "copy", "copy-3"], .number(3)), (["copy-3"], .number(3)),
      (["copy", "copy-0"], .choosing), (["copy", "copy-x", "copy--1"], .choosing),
      (["copy", "copy-18446744073709551615"], .choosing),
    ]
    for (signs, place) in cases { #expect(CopyTurn.place(in: signs) == place, "\(signs)") }
  }

  /// A repository with two copies of one snapshot, as earlier versions could create.
  @Test func twoCopiesOfOneSnapshotAreCopiedOnce() throws {
    let fixture = try CopyFixture()
    _ = try fixture.copy([fixture.source.snapshots[0].stored.id])
    let copy = try #require(fixture.copies().first)
    let bytes = Array("{\"later\":1,".utf8) + copy.snapshot.encode().dropFirst()
    _ = try fixture.target.memory.put(bytes, kind: .snapshot)
    let third = try PruneFixture()
    for isDry in [true, false] {
      let report = try CopyFixture.copy(
        fixture.target.repository, third.repository, dry: isDry)
      #expect(report.snapshots == 2 && report.copied.count == 1 && report.present == 1)
    }
    #expect(try third.repository.snapshots().snapshots.count == 1)
    let again = try CopyFixture.copy(fixture.target.repository, third.repository)
    #expect(again.present == 2 && again.copied.isEmpty)
  }

  /// During a rewrap, and after an interrupted one, a snapshot has two ids.
  @Test(arguments: [false, true]) func aRewrappedSnapshotIsCopiedOnce(isCopied: Bool) throws {
    let encrypted = try EncryptedTarget(withRename: true)
    let source = try encrypted.open(through: encrypted.store)
    let stored = try source.back(up: PruneFixture.files(0..<3))
    let target = try PruneFixture()
    if isCopied { _ = try CopyFixture.copy(source, target.repository) }
    let content = try source.storage.load(stored.id, kind: .snapshot, limit: FormatLimit.snapshot)
    let session = try source.beginWriting()
    #expect(try session.save(encoded: content) != stored.id)
    session.abandon()
    for isDry in [true, false] {
      let report = try CopyFixture.copy(source, target.repository, dry: isDry)
      #expect(report.copied.count == (isCopied ? 0 : 1), "dry: \(isDry)")
      #expect(report.snapshots == 2 && report.present + report.copied.count == 2, "dry: \(isDry)")
    }
    #expect(try target.repository.snapshots().snapshots.count == 1)
    // A snapshot with other members is a different snapshot.
    try source.back(up: PruneFixture.files(0..<3), sequence: 2)
    #expect(try CopyFixture.copy(source, target.repository).copied.count == 1)
  }

  /// If another program has copied a snapshot during the wait, its pin is still copied.
  @Test func aCopyOfAnotherProgramIsPinned() throws {
    let fixture = try CopyFixture()
    let (source, target) = (fixture.source.repository, fixture.target.repository)
    let other = try Lease(target.storage, with: ["copy", "copy-1"])
    let timing = Self.timing(fixture.target.clock) {
      // The other copy is made before the snapshot is pinned in the source.
      _ = try? CopyFixture.copy(source, Repository.open(fixture.target.memory))
      _ = try? source.pin([fixture.source.snapshots[0].stored.id])
      other.release()
    }
    let report = try CopyFixture.copy(source, target, timing: timing)
    #expect(report.present == 3 && report.copied.isEmpty)
    #expect(try target.pins().count == 1)
  }

  /// A wait that checks every 100 seconds.
  private static func timing(
    _ clock: TestClock, _ pause: @escaping @Sendable () -> Void
  ) -> CopyTurn.Timing {
    CopyTurn.Timing(
      clock: { Double(clock.now.seconds) },
      pause: {
        clock.advance(by: 100)
        pause()
      })
  }
}

/// An encrypted repository in memory, even in a run that tests unencrypted ones.
private struct EncryptedTarget {
  let store: any Storage
  private let identity = AgeIdentity()

  init(withRename: Bool) throws {
    let clock = TestClock()
    store =
      withRename
      ? MemoryStorage(clock: { clock.now })
      : MemoryObjectStorage(canCreateExclusively: true, clock: { clock.now })
    let keys = RepositoryKeys(identities: [identity], recipients: [identity.recipient])
    _ = try Repository.create(in: store, program: "test", keys: keys)
  }

  func open(through storage: any Storage) throws -> Repository {
    try Repository.open(storage, key: .identities([identity]))
  }
}

/// A copy on another thread.
private final class CopyBeside: Sendable {
  private enum State {
    case idle, running, waiting, ended
  }

  private let source: Repository
  private let target: Repository
  private let workers: Workers
  private let state = Mutex(State.idle)
  private let result = Mutex<Result<RepositoryCopy.Report, any Error>?>(nil)

  init(from source: Repository, to target: Repository) throws {
    (self.source, self.target) = (source, target)
    workers = try Workers(count: 1, capacity: 1, name: "copy")
  }

  /// The timing of a short wait, each check of which calls `body`.
  static func timing(_ body: @escaping @Sendable () -> Void = {}) -> CopyTurn.Timing {
    CopyTurn.Timing(pause: {
      body()
      Host.pause(seconds: 0.001)
    })
  }

  /// Starts the copy, and returns when it has ended or waits for another one.
  func begin() {
    state.withLock { $0 = .running }
    workers.submit { [self] in
      let timing = Self.timing { [self] in state.withLock { $0 = .waiting } }
      let outcome = Result { try CopyFixture.copy(source, target, timing: timing) }
      result.withLock { $0 = outcome }
      state.withLock { $0 = .ended }
    }
    while state.withLock({ $0 == .running }) { Host.pause(seconds: 0.0002) }
  }

  /// Returns the report after the copy has ended.
  func finish() throws -> RepositoryCopy.Report {
    workers.finish()
    return try #require(result.withLock { $0 }).get()
  }
}
