import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Attempts to destroy objects, and their results.
struct ProtectionCheckTests {
  private func results(of storage: any Storage) throws -> Set<String> {
    let results = try ProtectionCheck(Repository.open(storage)).run()
    return Set(results.map { "\($0.replacement) \($0.removal)" })
  }

  private static func isChange(_ event: String) -> Bool {
    ["commit ", "touch ", "remove ", "rename "].contains { event.hasPrefix($0) }
      && event.contains("probe-")
  }

  private static func refusal(_ event: String) -> StoreError {
    StoreError(
      .system, "do", subject: event, reason: "it is refused",
      cause: SystemError(.open, "x", number: 13))
  }

  /// Any way to change an object counts, in stores with and without rename.
  @Test(arguments: [true, false]) func eachWayToChangeAnObjectIsAttempted(hasRename: Bool) throws {
    let inner: any Storage = hasRename ? MemoryStorage() : MemoryObjectStorage()
    _ = try Repository.create(in: inner, program: "test")
    #expect(try results(of: inner) == ["possible possible"])
    let ways = hasRename ? ["commit ", "remove ", "rename "] : ["commit ", "remove "]
    for permitted in [nil] + ways.map({ Optional($0) }) {
      let storage = WatchedStorage(inner)
      let seen = Mutex<Set<String>>([])
      storage.state.withLock { state in
        state.failure = { event in
          guard Self.isChange(event) else { return nil }
          // The first put creates the object.
          let isNew = event.hasPrefix("commit ") && seen.withLock { $0.insert(event).inserted }
          let isPermitted = permitted.map { event.hasPrefix($0) } ?? false
          return isNew || isPermitted ? nil : Self.refusal(event)
        }
      }
      let replaced = permitted == "commit "
      let removed = permitted == "remove " || permitted == "rename "
      let wanted = "\(replaced ? "possible" : "refused") \(removed ? "possible" : "refused")"
      #expect(try results(of: storage) == [wanted], "\(permitted ?? "none")")
    }
  }

  @Test func otherFailuresDoNotCountAsProtection() throws {
    let memory = MemoryStorage()
    _ = try Repository.create(in: memory, program: "test")
    let storage = WatchedStorage(memory)
    storage.state.withLock { state in
      state.failure = { event in
        guard event.hasPrefix("remove "), event.contains("probe-") else { return nil }
        return StoreError(.system, "do", subject: event, reason: "the link is down")
      }
    }
    #expect(storeError { try results(of: storage) }?.reason == "the link is down")
  }

  /// Probes are not reported as objects, and are removed after an hour. Other files are kept.
  @Test(arguments: [true, false]) func probesAreIgnoredAndRemovedByAPrune(hasRename: Bool) throws {
    let clock = TestClock()
    let storage: any Storage =
      hasRename
      ? MemoryStorage(clock: { clock.now })
      : MemoryObjectStorage(clock: { clock.now })
    let repository = try Repository.create(in: storage, program: "test")
    try repository.back(up: PruneFixture.files(0..<2), sequence: 1)
    let directories = [
      ObjectPath.root, RepositoryLayout.packs, RepositoryLayout.indexes, RepositoryLayout.snapshots,
    ]
    let probes = directories.map { $0.appending(RepositoryLayout.newProbe()) }
    for probe in probes { try storage.touch(probe) }
    let other = RepositoryLayout.snapshots.appending("probe-of-mine")
    try storage.touch(other)
    let remarks = try Checked(repository, .everything).findings
    #expect(remarks.count == 1 && "\(remarks)".contains("probe-of-mine"), "\(remarks)")
    #expect(try RepositoryPrune(repository).run().plan.isIdle)
    for probe in probes { #expect(try storage.status(probe) != nil) }
    clock.advance(by: 3700)
    #expect(try RepositoryPrune(repository).run().plan.isIdle)
    for probe in probes { #expect(try storage.status(probe) == nil, "\(probe)") }
    #expect(try storage.status(other) != nil)
  }

  /// A user who may not replace objects cannot write heartbeats: this is not an error, and the
  /// lease expires by its age.
  @Test func aRefusedHeartbeatIsNotAnError() throws {
    let inner = MemoryObjectStorage()
    let repository = try Repository.create(in: inner, program: "test")
    let storage = WatchedStorage(inner)
    let seconds = Mutex(0.0)
    let lease = try Lease(
      Repository.open(storage).storage, clock: { seconds.withLock { $0 } })
    storage.state.withLock { state in
      state.failure = { $0.hasPrefix("touch ") ? Self.refusal($0) : nil }
    }
    seconds.withLock { $0 = 61 }
    try lease.keepAlive()
    #expect(try !lease.isDead())
    withExtendedLifetime(repository) {}
  }
}
