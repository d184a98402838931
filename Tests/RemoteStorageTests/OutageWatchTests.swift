import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import RemoteStorage

/// Reports about a store that does not answer.
struct OutageWatchTests {
  private final class Events: Sendable {
    private let list = Mutex<[OutageWatch.Event]>([])

    var all: [OutageWatch.Event] { list.withLock(\.self) }

    func add(_ event: OutageWatch.Event) { list.withLock { $0.append(event) } }

    /// Waits at most a minute until there are `count` events.
    func wait(for count: Int) {
      let limit = Host.monotonicSeconds() + 60
      while all.count < count, Host.monotonicSeconds() < limit { Host.pause(seconds: 0.005) }
    }
  }

  private let events = Events()

  private func watch(delay: Double) -> OutageWatch {
    OutageWatch(of: "s3://bucket", delay: delay) { [events] in events.add($0) }
  }

  /// Returns the reason of the only outage, which must have been reported with its end.
  private func reasonOfOutage() -> String? {
    guard events.all.count == 2, case .began(let reason) = events.all[0].kind,
      case .ended = events.all[1].kind, events.all.allSatisfy({ $0.location == "s3://bucket" })
    else {
      Issue.record("\(events.all)")
      return nil
    }
    return reason
  }

  @Test(arguments: ["refused", nil]) func anOutageIsReportedOnce(reason: String?) {
    let watch = watch(delay: 0.5)
    watch.begin()
    if let reason { watch.didFail(reason) }
    events.wait(for: 1)
    watch.didFail("another")
    watch.didHear()
    watch.didHear()
    #expect(reasonOfOutage() == reason ?? "it has not answered for 0 seconds")
    guard case .ended(let seconds)? = events.all.last?.kind else { return }
    #expect(seconds >= 0.5)
    // A second outage is reported separately.
    events.wait(for: 3)
    #expect(events.all.count == 3)
    watch.end()
  }

  /// Short failures, the time between requests, and a request during which something is received do
  /// not count as an outage.
  @Test func aShortFailureIsNotAnOutage() {
    let watch = watch(delay: 1)
    let end = Host.monotonicSeconds() + 1.5
    watch.begin()
    while Host.monotonicSeconds() < end {
      watch.didFail("short")
      Host.pause(seconds: 0.02)
      watch.didHear()
    }
    watch.end()
    Host.pause(seconds: 1.2)
    #expect(events.all == [])
  }

  /// A clock that advances only after the outage has been reported.
  private func clock() -> RateLimit.Clock {
    let time = Mutex(0.0)
    return RateLimit.Clock(
      now: { time.withLock(\.self) },
      pause: { [events] seconds in
        events.wait(for: 1)
        time.withLock { $0 += seconds }
      })
  }

  @Test func aStoreThatFailsIsReported() throws {
    let server = try StoreServer(#"[{"path": "a", "status": 503, "times": 2}]"#)
    var options = testOptions()
    options.retries.outages = watch(delay: 1)
    options.retries.clock = clock()
    try testStorage(server.endpoint, options).touch(objectPath("a"))
    #expect(reasonOfOutage()?.contains("503") == true)
  }

  /// A store that takes long to answer, and sends nothing in the meantime.
  @Test func aSilentStoreIsReported() throws {
    let server = try StoreServer(#"[{"path": "a", "delay": 1}]"#)
    var options = testOptions()
    options.retries.outages = watch(delay: 0.1)
    try testStorage(server.endpoint, options).touch(objectPath("a"))
    #expect(reasonOfOutage()?.contains("has not answered") == true)
  }

  @Test(.enabled(if: SFTPFixture.isInstalled)) func aLostConnectionIsReported() throws {
    let fixture = try SFTPFixture()
    let server = FaultyServer()
    var options = SFTPFixture.options
    options.patience = 60
    options.outages = OutageWatch(of: "s3://bucket", delay: 0.02) { [events] event in
      events.add(event)
      // The server is reachable again.
      server.state.withLock { $0.isDown = false }
    }
    let storage = try fixture.create(through: server.connector, options: options)
    server.state.withLock { $0.isDown = true }
    storage.session.close()
    try storage.makeDirectories(["objects"], in: .root)
    #expect(events.all.count >= 2)
    guard case .began? = events.all.first?.kind, case .ended? = events.all.last?.kind else {
      Issue.record("\(events.all)")
      return
    }
  }
}
