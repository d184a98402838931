import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The right to remove objects after its holder was killed: if the holder was a process of this
/// host, it is known to have ended; otherwise the right stays taken for an hour.
struct EndedHolderTests {
  private let storage = MemoryStorage()
  private let repository: Repository
  private let name = ByteString(String(repeating: "ab", count: 16))
  private var path: ObjectPath { RepositoryLayout.leases.appending(name) }

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Creates the lease of another program, which has the right.
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
    // A request of the ended program that reaches the store late changes nothing.
    #expect(throws: StoreError.self) {
      try unfinished.commit(
        as: CondemnedObject.path(Digest.some), digest: Digest.some, isReadSoon: false)
    }
    right.release()
    #expect(try storage.list(RepositoryLayout.leases) == [lease.path.name])
  }

  /// A program that took the right over ended after removing the old lease and before removing the
  /// old right.
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

  /// A program is killed at each call while it takes and releases the right: any right that remains
  /// names its owner, so that the next program does not have to wait for an hour.
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

  /// A program of an earlier version creates the directory first and then adds its name. It does so
  /// while this program takes the right: only one of them gets it.
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

  /// A listing of the leases from before one of them was created.
  private struct OldListing: ForwardingStorage {
    let base: any Storage
    let missing: ByteString

    func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
      try base.list(directory).filter { $0 != missing }
    }
  }

  /// A client of a network file system may cache listings for a while.
  @Test func aLeaseThatAnOldListingLacksKeepsTheRight() throws {
    try makeHolder(LeaseStatus.Owner.sign)
    let lease = try Lease(RepositoryStorage(OldListing(base: storage, missing: name)))
    #expect(try PruneLease(lease) == nil)
    let owner = PruneLease.owner(of: name)
    #expect(try storage.list(PruneLease.path).contains(owner))
  }

  /// If the name of the holder is not that of a lease, the right is kept.
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

  /// A program of another host may still be running, whether or not its lease names its boot.
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

  /// The lease of a request that is still on its way to the store cannot be renamed away, so the
  /// store waits some minutes for the request.
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
