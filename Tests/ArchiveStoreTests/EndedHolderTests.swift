import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The right to remove objects of a program that was killed: a process of this host is known to
/// have ended, others keep the right for an hour.
struct EndedHolderTests {
  private let storage = MemoryStorage()
  private let repository: Repository
  private let name = ByteString(String(repeating: "ab", count: 16))
  private var path: ObjectPath { RepositoryLayout.leases.appending(name) }

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Makes the lease and the right of another program.
  private func makeHolder(_ sign: ByteString) throws {
    try storage.makeDirectories([name, PruneLease.path.name], in: RepositoryLayout.leases)
    for object in [
      path.appending(Lease.alive), path.appending(sign), PruneLease.path.appending(Lease.alive),
      PruneLease.path.appending(PruneLease.owner(of: name)),
    ] { try storage.touch(object) }
  }

  @Test func theRightOfAProcessThatEndedIsTakenAtOnce() throws {
    try makeHolder(LeaseStatus.Owner.earlierSign())
    let unfinished = try storage.startObject(in: path)
    try unfinished.append([1, 2, 3])
    let lease = try Lease(storage)
    let right = try #require(try PruneLease(lease))
    #expect(try right.isHeld())
    #expect(try LeaseStatus.all(repository.storage).map(\.name) == [lease.path.name])
    // A request that was still on its way to the store changes nothing.
    #expect(throws: StoreError.self) {
      try unfinished.commit(
        as: CondemnedObject.path(Digest.some), digest: Digest.some, isReadSoon: false)
    }
    right.release()
    #expect(try storage.list(RepositoryLayout.leases) == [lease.path.name])
  }

  /// A program that took over a right ended between the removals of the lease and of the right.
  @Test func theRightOfALeaseThatIsGoneIsTakenAtOnce() throws {
    try makeHolder(LeaseStatus.Owner.sign)
    for object in [Lease.alive, LeaseStatus.Owner.sign] {
      try storage.remove(path.appending(object))
    }
    try storage.remove(path)
    let lease = try Lease(storage)
    let right = try #require(try PruneLease(lease))
    #expect(try right.isHeld())
    right.release()
  }

  /// A program is killed at each call while it takes the right and releases it: each right that is
  /// left names its owner, so that the next program need not wait for an hour.
  @Test func noRightIsLeftWithoutAnOwner() throws {
    for call in 1... {
      let memory = MemoryStorage()
      _ = try Repository.create(in: memory, program: "test")
      let watched = WatchedStorage(memory)
      let lease = try Lease(watched)
      watched.fail(at: call, failsRepeatedly: true)
      let right = try? PruneLease(lease)
      right?.release()
      if try memory.status(PruneLease.path) != nil {
        let owner = PruneLease.owner(of: lease.path.name)
        #expect(try memory.list(PruneLease.path).contains(owner), "call \(call)")
      }
      guard watched.hasFailed else {
        #expect(call > 9 && right != nil)
        break
      }
    }
  }

  /// A program of an earlier version, which creates the directory first and then names itself, does
  /// both beside this one: only one of them can have the right.
  @Test func anEarlierVersionTakesTheRightAtTheSameMoment() throws {
    let watched = WatchedStorage(storage)
    let lease = try Lease(watched)
    let other = PruneLease.owner(of: name)
    watched.state.withLock { state in
      state.action = { [storage] event in
        if event == "rename \(PruneLease.path)" {
          try? storage.makeDirectories([PruneLease.path.name], in: RepositoryLayout.leases)
        } else if event == "list \(PruneLease.path)" {
          try? storage.touch(PruneLease.path.appending(other))
        }
      }
    }
    #expect(try PruneLease(lease) == nil)
    watched.state.withLock { $0.action = nil }
    let owners = try storage.list(PruneLease.path).filter { $0.bytes.starts(with: "of-".utf8) }
    #expect(owners == [other])
    let names = try storage.list(RepositoryLayout.leases)
    #expect(names == [lease.path.name, PruneLease.path.name].sorted())
  }

  /// A listing of the leases from before one was taken.
  private struct OldListing: ForwardingStorage {
    let base: any Storage
    let missing: ByteString

    func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
      try base.list(directory).filter { $0 != missing }
    }
  }

  /// A client of a network file system may keep listings for a while.
  @Test func aLeaseThatAnOldListingLacksKeepsTheRight() throws {
    try makeHolder(LeaseStatus.Owner.sign)
    let lease = try Lease(RepositoryStorage(OldListing(base: storage, missing: name)))
    #expect(try PruneLease(lease) == nil)
    let owner = PruneLease.owner(of: name)
    #expect(try storage.list(PruneLease.path).contains(owner))
  }

  /// Nothing is known of a holder that is not named as a lease is.
  @Test(arguments: ["of-", "of-..", "of-\(String(repeating: "g", count: 32))"])
  func aRightOfAnUnknownHolderIsKept(owner: String) throws {
    try storage.makeDirectories([PruneLease.path.name], in: RepositoryLayout.leases)
    for sign in [Lease.alive, ByteString(owner)] {
      try storage.touch(PruneLease.path.appending(sign))
    }
    let lease = try Lease(storage)
    #expect(try PruneLease(lease) == nil)
  }

  @Test func aRunningProgramKeepsTheRightAndIsNamed() throws {
    try makeHolder(LeaseStatus.Owner.sign)
    let lease = try Lease(storage)
    #expect(try PruneLease(lease) == nil)
    let error = PruneLease.locked("prune", repository.storage)
    let began = try #require(try LeaseStatus.all(repository.storage).first?.began)
    let since = Timestamp(seconds: began.seconds, nanoseconds: 0).rfc3339
    #expect(error.code == .busy && error.reason.contains("another program is removing objects"))
    #expect(
      error.reason.hasSuffix(
        " (process \(Host.processID) on host '\(Host.name)', since \(since))"))
    #expect(error.hint?.contains("ends at") == false)
  }

  /// A program of another host, or of one from before a restart, may still run.
  @Test(arguments: ["by-7-elsewhere", "by-7-elsewhere~0123456789abcdef-12f"])
  func aProgramOfAnotherHostKeepsTheRightForAnHour(sign: String) throws {
    try makeHolder(ByteString(sign))
    let lease = try Lease(storage)
    #expect(try PruneLease(lease) == nil)
    let error = PruneLease.locked("prune", repository.storage)
    #expect(error.reason.contains(" (process 7 on host 'elsewhere', since "))
    let heartbeat = try #require(try LeaseStatus.all(repository.storage).first?.heartbeat)
    let end = Timestamp(seconds: heartbeat.seconds + 3601, nanoseconds: 0).rfc3339
    #expect(error.hint?.contains("its lease ends at \(end)") == true, "\(error)")
  }

  /// The lease cannot be taken away from a request that is still on its way to the store, so that
  /// has some minutes.
  @Test(arguments: [true, false])
  func aStoreWithoutRenameWaitsForRequests(isExclusive: Bool) throws {
    let fixture = try ObjectStoreFixture(canCreateExclusively: isExclusive)
    let store = fixture.store
    for sign in [try LeaseStatus.Owner.earlierSign(), ObjectLeases.remover] {
      try store.touch(path.appending(sign))
    }
    let holder = PruneLease.path.appending(ObjectLeases.holderName)
    if isExclusive { #expect(try store.create(Array(name.bytes), as: holder)) }
    try store.touch(PruneLease.path.appending(PruneLease.owner(of: name)))
    let session = try fixture.open().beginWriting()
    defer { session.abandon() }
    store.advance(by: 240)
    #expect(try PruneLease(session.lease) == nil)
    let error = PruneLease.locked("prune", try fixture.open().storage)
    #expect(error.reason.contains("has ended without releasing its lease"), "\(error)")
    #expect(error.hint?.hasPrefix("try again after ") == true, "\(error)")
    store.advance(by: 120)
    let right = try #require(try PruneLease(session.lease))
    #expect(try right.isHeld())
    #expect(try store.status(path.appending(ObjectLeases.dead)) != nil)
    right.release()
  }
}
