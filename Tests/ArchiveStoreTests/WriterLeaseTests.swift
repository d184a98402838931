import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A writer's lease is kept alive while the writer waits, for example for a slow source.
struct WriterLeaseTests {
  private let clock = LeaseClock()

  private func begin(_ fixture: PruneFixture) throws -> WritingSession {
    try WritingSession(fixture.repository, workers: 1, cache: nil, timing: clock.timing())
  }

  private func touches(_ fixture: PruneFixture) -> Int {
    fixture.storage.state.withLock { $0.events.count { $0.hasPrefix("touch alive") } }
  }

  @Test func aWaitingWriterKeepsItsLease() throws {
    let fixture = try PruneFixture()
    let session = try begin(fixture)
    let first = touches(fixture)
    for minute in 1...3 {
      clock.advance(by: 61)
      try waitUntil { touches(fixture) == first + minute }
    }
    session.abandon()
    #expect(try fixture.repository.leases().isEmpty)
    clock.advance(by: 61)
    Host.pause(seconds: 0.01)
    #expect(touches(fixture) == first + 3)
  }

  /// A writer must not continue for hours to store data that it cannot commit.
  @Test func aLostLeaseEndsTheNextStep() throws {
    let fixture = try PruneFixture()
    let session = try begin(fixture)
    _ = try session.storeTree([])
    fixture.clock.advance(by: 7200)
    let other = try Lease(RepositoryStorage(fixture.memory))
    try other.removeExpiredOthers()
    other.release()
    let before = touches(fixture)
    clock.advance(by: 61)
    try waitUntil { touches(fixture) > before }
    try waitUntil { storeError { try session.storeTree([]) }?.code == .leaseLost }
    session.abandon()
    #expect(try fixture.repository.leases().isEmpty)
  }
}
