import ArchiveStore
import RemoteStorage
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Rate limits and counters of transfers.
struct TransferTests {
  /// A clock that is advanced only by waiting.
  private final class VirtualClock: Sendable {
    private let time = Mutex(100.0)

    var now: Double { time.withLock { $0 } }

    var clock: RateLimit.Clock {
      RateLimit.Clock(
        now: { [self] in now }, pause: { [self] seconds in time.withLock { $0 += seconds } })
    }

    func advance(_ seconds: Double) { time.withLock { $0 += seconds } }
  }

  private func path(_ text: String) throws -> ObjectPath { try #require(ObjectPath(text)) }

  /// A storage with one object of 1 MiB.
  private func storage(in directory: TemporaryDirectory) throws -> LocalStorage {
    let storage = try LocalStorage.create(path: directory.path.appending("store"))
    try storage.save([UInt8](repeating: 7, count: 1 << 20), as: path("object"), by: .root)
    return storage
  }

  @Test func bytesWaitUntilTheyAreEarned() {
    let time = VirtualClock()
    let limit = RateLimit(1000, clock: time.clock)
    limit.take(1000)
    #expect(abs(time.now - 101) < 0.001)
    limit.take(500)
    #expect(abs(time.now - 101.5) < 0.001)
    // Idle time earns at most the bytes of a quarter of a second.
    time.advance(1000)
    limit.take(250)
    #expect(abs(time.now - 1101.5) < 0.001)
    limit.take(250)
    #expect(abs(time.now - 1101.75) < 0.001)
  }

  @Test func threadsShareALimit() throws {
    let waited = Mutex(0.0)
    // The clock does not advance: each thread waits for all that came before it.
    let limit = RateLimit(
      1000,
      clock: RateLimit.Clock(now: { 0 }, pause: { seconds in waited.withLock { $0 += seconds } }))
    let workers = try Workers(count: 4, capacity: 4, name: "limit")
    for _ in 0..<4 { workers.submit { limit.take(1000) } }
    workers.finish()
    let sum = waited.withLock { $0 }
    #expect(abs(sum - 10) < 0.001)
  }

  /// When a stop is requested, a waiting thread continues at once, and later ones do not wait.
  @Test func theLimitEndsWithARequestToStop() {
    let time = VirtualClock()
    let isStopping = Mutex(false)
    let clock = RateLimit.Clock(
      now: { time.now },
      pause: { seconds in
        time.advance(seconds)
        if time.now > 102 { isStopping.withLock { $0 = true } }
      })
    let limit = RateLimit(1000, clock: clock) { isStopping.withLock(\.self) }
    limit.take(1000)
    #expect(abs(time.now - 101) < 0.001)
    limit.take(1_000_000)
    let end = time.now
    #expect(end > 102 && end < 102.3)
    limit.take(1_000_000)
    #expect(time.now == end)
  }

  /// A read in pieces ends after the current piece.
  @Test func aLimitedReadEndsAfterARequestToStop() throws {
    let directory = try TemporaryDirectory("transfer")
    let (time, counts) = (VirtualClock(), TransferCounts())
    let limited = TransferStorage(
      try storage(in: directory), counts: counts,
      download: RateLimit(256 << 10, clock: time.clock), isStopping: { time.now > 100.9 })
    let read = { (start: UInt64, count: Int) throws -> Int in
      var bytes: [UInt8] = []
      try limited.load(path("object"), offset: start, count: count, into: &bytes)
      return bytes.count
    }
    let error = #expect(throws: StoreError.self) { try read(0, 1 << 20) }
    #expect(error?.code == .interrupted)
    #expect(counts.state.requests == 4)
    // A read of one piece is still carried out, since cleaning up may need it.
    #expect(try read(0, 1000) == 1000)
  }

  @Test func aLimitedReadIsEvenAndComplete() throws {
    let directory = try TemporaryDirectory("transfer")
    let (time, counts) = (VirtualClock(), TransferCounts())
    let limited = TransferStorage(
      try storage(in: directory), counts: counts,
      download: RateLimit(256 << 10, clock: time.clock))
    var bytes: [UInt8] = [1]
    try limited.load(path("object"), offset: 16, count: (1 << 20) - 16, into: &bytes)
    #expect(bytes == [UInt8](repeating: 7, count: (1 << 20) - 16))
    #expect(abs(time.now - 104) < 0.01)
    #expect(counts.state.requests == 16)
    #expect(counts.state.received == (1 << 20) - 16)
  }

  @Test func aLimitedWriteWaits() throws {
    let directory = try TemporaryDirectory("transfer")
    let (time, counts) = (VirtualClock(), TransferCounts())
    let limited = TransferStorage(
      try storage(in: directory), counts: counts, upload: RateLimit(1000, clock: time.clock))
    try limited.save([UInt8](repeating: 1, count: 3000), as: path("new"), by: .root)
    #expect(abs(time.now - 103) < 0.001)
    #expect(counts.state == TransferCounts.State(requests: 1, sent: 3000, received: 0))
    #expect(try limited.load(path("new"), limit: 3000).count == 3000)
  }

  @Test func onlyTheGivenNumberOfTransfersIsInProgress() throws {
    let directory = try TemporaryDirectory("transfer")
    let active = Mutex(0)
    let most = Mutex(0)
    let watched = WatchedStorage(try storage(in: directory))
    watched.state.withLock {
      $0.action = { event in
        guard event.hasPrefix("load") else { return }
        let now = active.withLock { active in
          active += 1
          return active
        }
        most.withLock { $0 = max($0, now) }
        Host.pause(seconds: 0.02)
        active.withLock { $0 -= 1 }
      }
    }
    let limited = TransferStorage(watched, counts: TransferCounts(), connections: 2)
    let workers = try Workers(count: 6, capacity: 6, name: "transfer")
    let path = try path("object")
    for _ in 0..<6 { workers.submit { _ = try? limited.load(path, limit: 1 << 20) } }
    workers.finish()
    #expect(most.withLock { $0 } == 2)
    #expect(active.withLock { $0 } == 0)
  }

  @Test func eachCallIsOneRequest() throws {
    let directory = try TemporaryDirectory("transfer")
    let counts = TransferCounts()
    let counted = TransferStorage(try storage(in: directory), counts: counts)
    #expect(try counted.list(.root) == ["object"])
    #expect(try counted.status(path("object"))?.size == 1 << 20)
    _ = try counted.load(path("object"), limit: 1 << 20)
    try counted.makeDirectories(["d"], in: .root)
    try counted.touch(path("d/x"))
    try counted.rename(path("d/x"), to: path("d/y"))
    try counted.remove(path("d/y"))
    try counted.remove([path("d/y")])
    #expect(try counted.space() != nil)
    var found = 0
    try counted.forEachObject(below: .root) { _, _ in found += 1 }
    #expect(found == 1)
    #expect(try counted.directoryIdentity() != nil)
    #expect(counts.state == TransferCounts.State(requests: 10, sent: 0, received: 1 << 20))
    #expect(throws: StoreError.self) { try counted.load(path("none"), limit: 1) }
    #expect(counts.state.requests == 11)
  }

  @Test func wordsOfACommandAreSeparatedAsByAShell() {
    let table: [(ByteString, [ByteString]?)] = [
      ("ssh", ["ssh"]), ("  ssh -o  A=b\t", ["ssh", "-o", "A=b"]),
      ("'/a b/ssh' -i \"c \\\" d\" e\\ f", ["/a b/ssh", "-i", "c \" d", "e f"]),
      ("ssh ''", ["ssh", ""]), ("ssh -o'x y'z", ["ssh", "-ox yz"]), ("s\"\\x\"", ["s\\x"]),
      ("", nil), ("  ", nil), ("ssh 'a", nil), ("ssh \"a", nil), ("ssh \\", nil), ("''", nil),
    ]
    for (text, words) in table { #expect(CommandWords.split(text) == words, "\(text)") }
  }
}
