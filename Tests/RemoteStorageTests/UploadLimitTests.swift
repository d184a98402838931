import ArchiveStore
import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import RemoteStorage

/// The upload limit for object stores, where an object is buffered in a local file until it is
/// complete.
struct UploadLimitTests {
  /// A server closes a silent connection, so the bytes are sent in small portions, each with a
  /// short wait.
  @Test func bytesAreSentInSmallPortions() throws {
    let server = try StoreServer()
    let time = Mutex(0.0)
    let longest = Mutex(0.0)
    let portions = Mutex<[Int]>([])
    let clock = RateLimit.Clock(
      now: { time.withLock { $0 } },
      pause: { seconds in
        time.withLock { $0 += seconds }
        longest.withLock { $0 = max($0, seconds) }
      })
    let rate: UInt64 = 40 << 10
    var options = testOptions()
    options.count(in: TransferCounts(), limitingUploadTo: RateLimit(rate, clock: clock))
    let limited = options.http.onTransfer
    options.http.onTransfer = { direction, bytes in
      if direction == .upload { portions.withLock { $0.append(bytes) } }
      limited?(direction, bytes)
    }
    try testStorage(server.endpoint, options).save(
      [UInt8](repeating: 7, count: 300_000), as: objectPath("a"), by: .root)
    let sizes = portions.withLock { $0 }
    #expect(sizes.reduce(0, +) == 300_000 && (sizes.max() ?? 0) <= Int(rate) / 16)
    #expect(longest.withLock { $0 } < 0.1)
    #expect(abs(time.withLock { $0 } - 300_000 / Double(rate)) < 0.5)
  }

  /// The limit applies to bytes that are sent, also for another attempt, and not to those that are
  /// written to the local file.
  @Test func theLimitIsForTheBytesThatAreSent() throws {
    let server = try StoreServer(#"[{"method": "PUT", "path": "large", "status": 503}]"#)
    let counts = TransferCounts()
    let waited = Mutex(0.0)
    let clock = RateLimit.Clock(
      now: { waited.withLock { $0 } }, pause: { seconds in waited.withLock { $0 += seconds } })
    var options = testOptions()
    options.count(in: counts, limitingUploadTo: RateLimit(1 << 20, clock: clock))
    let limited = TransferStorage(
      try testStorage(server.endpoint, options), counts: counts,
      upload: RateLimit(1, clock: clock), isSpooling: true)
    let writer = try limited.startObject(in: .root)
    for _ in 0..<3 { try writer.append([UInt8](repeating: 7, count: 1 << 20)) }
    #expect(waited.withLock { $0 } == 0 && counts.state.sent == 0)
    try writer.commit(as: objectPath("large"), digest: Blake2b.hash([]), isReadSoon: false)
    // The first attempt was refused. Before it, one byte was sent with a wrong hash.
    #expect(counts.state.sent == (6 << 20) + 1)
    let seconds = waited.withLock { $0 }
    #expect(abs(seconds - 6) < 0.5, "\(seconds)")
    #expect(try limited.load(objectPath("large"), limit: 3 << 20).count == 3 << 20)
  }
}
