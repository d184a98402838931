import ArchiveStore
import Backup
import RemoteStorage
import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

/// A connection to a bucket that fails for ten minutes in the middle of an operation, by a virtual
/// clock that only the waiting of the operation advances: the operation continues by itself, and
/// repeats no request.
@Suite(.serialized) struct RemoteOutageTests {
  /// A connection that fails, and works again after a time by the virtual clock.
  private final class Outage: Sendable {
    private struct State {
      var now = 1000.0
      var end: Double?
      var lost = 0
    }

    private let store: FaultStore
    private let state = Mutex(State())

    init(_ store: FaultStore) { self.store = store }

    /// The default limits of the program, by the virtual clock.
    var retries: RetryPolicy {
      var retries = RetryPolicy()
      retries.clock = RateLimit.Clock(
        now: { [self] in state.withLock(\.now) }, pause: { [self] in pause($0) })
      return retries
    }

    /// Lets the connection fail after a number of requests, for a time in seconds.
    func begin(after requests: Int, seconds: Double, isFirstDone: Bool) throws {
      try store.dropLink(after: requests, isFirstDone: isFirstDone)
      state.withLock { ($0.end, $0.lost) = ($0.now + seconds, 0) }
    }

    /// The requests that were lost.
    var lost: Int { state.withLock(\.lost) }

    private func pause(_ seconds: Double) {
      state.withLock { state in
        state.now += seconds
        guard let end = state.end, state.now >= end else { return }
        state.end = nil
        // Under the lock, since only one thread at a time may give commands to the store.
        state.lost = (try? store.restoreLink()) ?? 0
      }
    }
  }

  /// The requests that a store processed, and the bytes in both directions.
  private struct Traffic {
    let requests: [String: Int]
    let bytes: Int
    /// The number of requests that were the same as an earlier one.
    let repeated: Int

    init(_ store: FaultStore) throws {
      let all = try store.requests()
      requests = Dictionary(all.map { ($0.method, 1) }, uniquingKeysWith: +)
      bytes = all.reduce(0) { $0 + $1.size + $1.sent }
      let distinct = Set(all.map { [$0.method, $0.target, $0.headers["range"] ?? ""] })
      repeated = all.count - distinct.count
    }

    var count: Int { requests.values.reduce(0, +) }

    /// Checks that the operation did nothing that it does not do without an interruption.
    ///
    /// - Parameters: - isRepeated: whether one request was processed although its answer was lost.
    /// - merged: the requests that several threads send as one or as two, depending on timing.
    func expectNoMore(
      than whole: Traffic, isRepeated: Bool, merged: Int = 0, _ what: String
    ) {
      let expected = whole.count + (isRepeated ? 1 : 0)
      #expect(abs(count - expected) <= merged, "\(what): \(requests)")
      for (method, number) in requests where !isRepeated {
        let usual = whole.requests[method] ?? 0
        #expect(abs(number - usual) <= merged, "\(what): \(method) \(requests)")
      }
      if !isRepeated { #expect(repeated <= whole.repeated, "\(what)") }
      // Listings have the times of objects, and encrypted objects differ by a few bytes.
      if !isRepeated { #expect(abs(bytes - whole.bytes) < 4096, "\(what)") }
    }
  }

  /// The requests at which the connection fails: all of them, or the first, one in the middle and
  /// the last.
  private static func places(_ count: Int) -> [Int] {
    Sampling.isWhole ? Array(1..<count) : [1, count / 2, count - 1]
  }

  private static let minutes = 600.0

  @Test(arguments: [false, true]) func aBackupWaitsForTheConnection(isFirstDone: Bool) throws {
    let original = try RemoteFixture.afterBackup()
    let whole = try Traffic(original.store)
    for place in Self.places(whole.count) {
      let cache = ByteString("cache-\(place)")
      try original.reset(with: cache)
      var fixture = original
      let outage = Outage(fixture.store)
      fixture.retries = outage.retries
      try outage.begin(after: place, seconds: Self.minutes, isFirstDone: isFirstDone)
      try fixture.note(try fixture.backUp(cache))
      // The pauses are at most 15 seconds.
      #expect(outage.lost >= 40, "\(place): \(outage.lost)")
      try Traffic(fixture.store).expectNoMore(than: whole, isRepeated: isFirstDone, "\(place)")
      let before = original.snapshots.count
      #expect(try fixture.expectSound("\(place)").count == before + 1, "\(place)")
      try fixture.base.directory.directory.removeTree(cache)
    }
  }

  @Test func aRestoreAndAPruneWaitForTheConnection() throws {
    let original = try RemoteFixture()
    let snapshot = try original.latest()
    let operations: [(String, merged: Int, (RemoteFixture) throws -> Void)] = [
      (
        "restore", 1,
        { fixture in
          let found = try fixture.restored(snapshot)
          #expect(try found == fixture.base.records("tree"))
        }
      ),
      ("prune", 0, { fixture in _ = try RepositoryPrune(fixture.open(), workers: 1).run() }),
    ]
    for (name, merged, operation) in operations {
      try original.reset()
      try operation(original)
      let whole = try Traffic(original.store)
      for place in Self.places(whole.count - merged) {
        try original.reset()
        var fixture = original
        let outage = Outage(fixture.store)
        fixture.retries = outage.retries
        try outage.begin(after: place, seconds: Self.minutes, isFirstDone: false)
        try operation(fixture)
        #expect(outage.lost >= 40, "\(name) \(place): \(outage.lost)")
        try Traffic(fixture.store).expectNoMore(
          than: whole, isRepeated: false, merged: merged, "\(name) \(place)")
        try fixture.expectSound("\(name) \(place)")
      }
    }
  }

  /// After twenty minutes the operation ends with a clear error, and the next one completes the
  /// work.
  @Test func anOutageOfHalfAnHourIsAnError() throws {
    var fixture = try RemoteFixture()
    try fixture.change()
    let usual = fixture.retries
    let outage = Outage(fixture.store)
    fixture.retries = outage.retries
    try outage.begin(after: 6, seconds: 3 * Self.minutes, isFirstDone: false)
    let outcome = Result { try fixture.backUp("cache") }
    guard case .failure(let error) = outcome else {
      Issue.record("a backup without a store succeeds")
      return
    }
    fixture.expectClear(error, "half an hour")
    #expect("\(error)".contains("attempts"), "\(error)")
    try fixture.store.restoreLink()
    fixture.retries = usual
    #expect(try fixture.expectSound("half an hour").count == fixture.snapshots.count)
    try fixture.note(try fixture.backUp("cache"))
    #expect(try fixture.expectSound("next backup").count == fixture.snapshots.count)
  }
}
