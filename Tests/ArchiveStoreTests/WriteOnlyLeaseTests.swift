import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Leases of programs whose credentials may write objects but not remove them.
struct WriteOnlyLeaseTests {
  /// A store that refuses to remove objects, or all objects except leases.
  private struct WithoutRemoval: ForwardingStorage {
    let base: any Storage
    var exceptLeases = false

    private func refusal(_ path: ObjectPath) -> StoreError {
      let cause = SystemError(.remove, ByteString("\(path)"), number: 13)
      return StoreError(
        .system, "remove", subject: "\(path)", reason: cause.reason, cause: cause)
    }

    func remove(_ path: ObjectPath) throws(StoreError) { try remove([path]) }

    /// Removes the permitted objects before it fails, as a store does.
    func remove(_ paths: [ObjectPath]) throws(StoreError) {
      let allowed = paths.filter { exceptLeases && $0.components.first == "leases" }
      try base.remove(allowed)
      if let first = paths.first(where: { !allowed.contains($0) }) { throw refusal(first) }
    }
  }

  /// A repository in which a prune removes packs, and the same repository for a write-only host.
  private func make() throws -> (fixture: ObjectStoreFixture, host: Repository) {
    let fixture = try ObjectStoreFixture.withUnusedPacks()
    return (fixture, try Repository.open(WithoutRemoval(base: fixture.store)))
  }

  private func signs(_ fixture: ObjectStoreFixture) throws -> [ByteString] {
    let leases = try fixture.names(RepositoryLayout.leases)
    #expect(leases.count == 1)
    return try fixture.names(RepositoryLayout.leases.appending(try #require(leases.first)))
  }

  @Test func noPruneWaitsForAWriterThatEnded() throws {
    let (made, host) = try make()
    var fixture = made
    let files = PruneFixture.files(30..<33)
    let stored = try host.back(up: files, sequence: 9)
    fixture.snapshots.append((stored, files))
    #expect(try signs(fixture) == [LeaseStatus.Owner.sign, "dead"])
    #expect(try fixture.open().leases().isEmpty)
    let report = try fixture.prune()
    #expect(report.removedPacks > 0 && report.waitingFor.isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
    // A day later, a program with full permissions removes the rest.
    try fixture.pruneLater()
    #expect(try fixture.names(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.names(RepositoryLayout.pending).isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  @Test func noPruneWaitsForAReaderThatEnded() throws {
    let (fixture, host) = try make()
    let reader = try #require(ReaderLease.ifPossible(host))
    #expect(try fixture.prune().waitingFor == [reader.name])
    reader.release()
    #expect(try signs(fixture).contains("dead"))
    #expect(try fixture.prune().waitingFor.isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// A request without an answer may still be carried out, so the lease must protect it until it
  /// expires.
  @Test(arguments: ["put pending/", "put snapshots/", "put index/"])
  func aFailedWriterIsWaitedFor(request: String) throws {
    let (fixture, host) = try make()
    fixture.store.state.withLock { state in
      state.hook = { $0.hasPrefix(request) ? .answerLost : nil }
    }
    #expect(storeError { try host.back(up: PruneFixture.files(30..<33), sequence: 9) } != nil)
    fixture.store.state.withLock { $0.hook = nil }
    #expect(try !signs(fixture).contains("dead"))
    #expect(try fixture.open().leases().count == 1)
    try fixture.pruneLater()
    #expect(try fixture.names(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// Credentials that may remove only leases: the lease is removed, and the next prune removes the
  /// pending snapshot, so that the data it needs does not stay forever.
  @Test func aLeaseThatMayBeRemovedIsNotMarked() throws {
    var fixture = try ObjectStoreFixture.withUnusedPacks()
    let host = try Repository.open(WithoutRemoval(base: fixture.store, exceptLeases: true))
    let files = PruneFixture.files(30..<33)
    fixture.snapshots.append((try host.back(up: files, sequence: 9), files))
    #expect(try fixture.names(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.names(RepositoryLayout.pending).count == 1)
    try fixture.prune()
    #expect(try fixture.names(RepositoryLayout.pending).isEmpty)
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
  }

  /// A mark may remain without a lease if a program sets it while the lease is removed. It does not
  /// protect a pending snapshot.
  @Test func aMarkAloneDoesNotProtectAPendingSnapshot() throws {
    let fixture = try ObjectStoreFixture.withUnusedPacks()
    let host = try Repository.open(WithoutRemoval(base: fixture.store, exceptLeases: true))
    try host.back(up: PruneFixture.files(30..<33), sequence: 9)
    let lease = RepositoryLayout.leases.appending(ByteString(String(repeating: "ab", count: 16)))
    try fixture.store.touch(lease.appending("dead"))
    try fixture.prune()
    #expect(try fixture.names(RepositoryLayout.pending).isEmpty)
    #expect(try fixture.names(lease) == ["dead"])
  }

  @Test func aCheckSaysThatTheProgramHasEnded() throws {
    let (fixture, host) = try make()
    try host.back(up: PruneFixture.files(30..<33), sequence: 9)
    let found = try Checked(fixture.open(), .everything)
    #expect("\(found.findings)".contains("a program that has ended left 0 unfinished objects"))
    #expect(found.damaged.isEmpty)
  }

  /// A program that may remove objects removes its lease instead of marking it.
  @Test func otherProgramsLeaveNothing() throws {
    let (fixture, _) = try make()
    try fixture.open().back(up: PruneFixture.files(30..<33), sequence: 9)
    #expect(try fixture.names(RepositoryLayout.leases).isEmpty)
  }

  /// The earlier record stays, and the new one contains all packs.
  @Test func damageIsRecordedWithoutRemovals() throws {
    let (fixture, host) = try make()
    let packs = try RepositoryListing.packs(fixture.store).sorted()
    for (number, pack) in packs.prefix(2).enumerated() {
      let path = RepositoryLayout.tested.pack(pack)
      var bytes = try fixture.store.load(path, limit: 1 << 20)
      bytes[bytes.count / 3] ^= 0xff
      try fixture.store.save(bytes, as: path, by: RepositoryLayout.leases)
      try RepositoryCheck(host, reading: .everything, workers: 1).run().recordDamage()
      let records = try DamageRecords(fixture.store)
      #expect(records.names.count == number + 1)
      #expect(Set(records.packs.keys) == Set(packs.prefix(number + 1)))
    }
    // A record that is up to date is not written again because an older one remains.
    try fixture.store.remove(RepositoryLayout.tested.pack(packs[0]))
    for _ in 0..<2 {
      try RepositoryCheck(host, reading: .everything, workers: 1).run().recordDamage()
      #expect(try DamageRecords(fixture.store).names.count == 3)
    }
  }

  // MARK: - Stores with rename

  /// An account that may rename but not remove, as with `internal-sftp -P remove,rmdir`: the right
  /// to remove objects is released at the end of the program, and index objects are merged.
  @Test func theRightEndsWithoutRemovals() throws {
    let memory = MemoryStorage()
    let repository = try Repository.create(in: memory, program: "test")
    let host = try Repository.open(WithoutRemoval(base: memory))
    for number in 1...20 {
      try host.back(up: [("\(number)", [UInt8(number)])], sequence: UInt64(number))
      let leases = try memory.list(RepositoryLayout.leases)
      #expect(!leases.contains(PruneLease.path.name), "backup \(number)")
    }
    #expect(try RepositoryListing.indexes(memory).count < 8)
    #expect(try Checked(repository, .everything).findings.allSatisfy { !$0.isDamage })
    let session = try repository.beginWriting()
    defer { session.abandon() }
    let right = try PruneLease(session.lease)
    #expect(right != nil)
    right?.release()
    let names = try memory.list(RepositoryLayout.leases)
    #expect(!names.contains(PruneLease.path.name))
  }
}
