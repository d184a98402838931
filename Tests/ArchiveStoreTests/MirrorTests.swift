import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Mirrors: their content, the targets that they refuse, and the objects that they remove.
struct MirrorTests {
  @Test(arguments: [1, 3]) func aMirrorHasTheSameObjects(workers: Int) throws {
    var fixture = try MirrorFixture()
    let report = try fixture.mirror(workers: workers)
    #expect(report.isNew && report.copied.snapshots == 4 && report.copied.packs == 8)
    #expect(!report.hasDamage && report.removed.isEmpty)
    try fixture.expectExact()
    #expect(try fixture.damage().isEmpty)
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
    let again = try fixture.mirror(workers: workers)
    #expect(again.copied.isEmpty && again.removed.isEmpty && !again.isNew)
    // A mirror is a repository: a backup into it works.
    fixture.source.snapshots.append(
      (try Repository.open(fixture.memory).back(up: PruneFixture.files(90..<92)), []))
    #expect(try fixture.damage().isEmpty)
  }

  /// The repository itself may be reached in a way that provides no identity to compare.
  @Test func theRepositoryRecognizesItsOwnLease() throws {
    let fixture = try MirrorFixture()
    let before = try fixture.source.objects()
    let error = storeError {
      try RepositoryMirror(
        of: fixture.source.repository, in: WatchedStorage(fixture.source.memory)
      ).run()
    }
    #expect(error?.code == .invalid && error?.reason == "it is the repository itself")
    #expect(try fixture.source.objects() == before)
  }

  /// New snapshots are added and forgotten ones removed; packs and index objects follow a prune.
  @Test func aMirrorFollowsForgetAndPrune() throws {
    var fixture = try MirrorFixture()
    _ = try fixture.mirror()
    try fixture.source.backUp(PruneFixture.files(30..<34))
    try fixture.source.repository.unpin([fixture.source.snapshots[0].stored.id])
    try fixture.source.repository.pin([fixture.source.snapshots[4].stored.id])
    try fixture.source.forget(1)
    try fixture.source.forget(0)
    var request = PruneRequest()
    request.maxUnused = .bytes(0)
    let pruned = try fixture.source.prune(request)
    #expect(pruned.removedPacks > 2 && pruned.newPacks > 0)
    let dry = try fixture.mirror(dry: true)
    #expect(try fixture.snapshots() == 4)
    let report = try fixture.mirror()
    #expect(report.copied.snapshots == 1 && report.removed.snapshots == 2)
    #expect(report.removed.packs == pruned.removedPacks && report.waitingPacks == 0)
    #expect(dry.copied == report.copied)
    #expect(dry.removed.packs == report.removed.packs)
    try fixture.expectExact()
    #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty)
    #expect(try fixture.mirror().removed.isEmpty)
  }

  @Test func otherTargetsAreRefused() throws {
    let fixture = try MirrorFixture()
    let other = try PruneFixture()
    func refused(_ target: any Storage) -> StoreError? {
      storeError { try RepositoryMirror(of: fixture.source.repository, in: target).run() }
    }
    let before = try other.objects()
    #expect(refused(other.memory)?.reason.contains("another repository") == true)
    #expect(try other.objects() == before)
    let foreign = MemoryStorage()
    try foreign.touch(ObjectPath.root.appending("thesis.txt"))
    #expect(refused(foreign)?.reason.contains("neither empty nor") == true)
    #expect(try foreign.list(.root) == ["thesis.txt"])
    let directory = TemporaryDirectory()
    let path = ByteString(directory("repo"))
    let repository = try Repository.create(in: LocalStorage.create(path: path), program: "test")
    let itself = storeError {
      try RepositoryMirror(of: repository, in: LocalStorage(path: path)).run()
    }
    #expect(itself?.reason == "it is the repository itself")
  }

  /// A snapshot that was made in the mirror stops the run, until it has been copied to the
  /// original.
  @Test func snapshotsMadeInTheMirrorAreRefused() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let mirror = try Repository.open(fixture.memory)
    let own = try mirror.back(up: PruneFixture.files(90..<92), sequence: 9)
    let before = try fixture.memory.objects()
    let error = storeError { try fixture.mirror() }
    #expect(error?.code == .invalid && error?.reason.contains(own.id.hex.prefix(8)) == true)
    #expect(error?.hint?.contains("sandboxctl copy") == true)
    #expect(try fixture.memory.objects() == before)
    let copied = try CopyFixture.copy(mirror, fixture.source.repository)
    #expect(copied.copied.map(\.id) == [own.id], "the snapshot keeps its id")
    _ = try fixture.mirror()
    try fixture.expectExact()
    #expect(try fixture.lost().isEmpty)
  }

  /// A copy of the repository that was made by other means becomes a mirror.
  @Test func aCopyOfTheRepositoryBecomesAMirror() throws {
    var fixture = try MirrorFixture()
    _ = try fixture.mirror()
    try fixture.memory.remove(MirrorRecord.path)
    #expect(try fixture.mirror().copied.isEmpty)
    try fixture.expectExact()
    try fixture.source.forget(3)
    #expect(try fixture.mirror().removed.snapshots == 1)
  }

  /// More than half of the snapshots, or all of a source, are removed only with permission.
  @Test func aLargeRemovalIsRefused() throws {
    var fixture = try MirrorFixture()
    _ = try fixture.mirror()
    for _ in 0..<3 { try fixture.source.forget(1) }
    _ = try fixture.source.prune()
    try fixture.source.backUp(PruneFixture.files(40..<42))
    let before = try fixture.memory.objects()
    let dry = try fixture.mirror(dry: true)
    let report = try fixture.mirror()
    #expect(report.refusal == RepositoryMirror.Refusal(snapshots: 3, all: 5, sources: 0))
    #expect(dry.refusal == report.refusal && dry.removed.isEmpty)
    #expect(report.removed.isEmpty && report.copied.snapshots == 1)
    let after = try fixture.memory.objects()
    #expect(before.keys.allSatisfy { after[$0] != nil }, "nothing was removed")
    #expect(try fixture.lost().isEmpty && fixture.snapshots() == 5)
    #expect(try fixture.mirror().refusal != nil, "it is refused until it is allowed")
    #expect(try fixture.mirror(allowingLargeRemoval: true).removed.snapshots == 3)
    try fixture.expectExact()
  }

  @Test func theLastSnapshotOfASourceIsNotRemoved() throws {
    let fixture = try MirrorFixture()
    let session = try fixture.source.repository.beginWriting()
    var other = fixture.source.repository.makeSnapshot(try session.storeTree([]), sequence: 1)
    other.source = Digest.some
    let stored = try session.finish(other)
    _ = try fixture.mirror()
    try fixture.source.memory.remove(RepositoryLayout.tested.snapshot(stored.id))
    let report = try fixture.mirror()
    #expect(report.refusal == RepositoryMirror.Refusal(snapshots: 1, all: 5, sources: 1))
    #expect(try fixture.snapshots() == 5)
    #expect(try fixture.mirror(allowingLargeRemoval: true).removed.snapshots == 1)
  }

  /// If the original has no snapshots, nothing is removed, even with permission.
  @Test func anEmptyOriginalRemovesNothing() throws {
    var fixture = try MirrorFixture()
    _ = try fixture.mirror()
    while !fixture.source.snapshots.isEmpty { try fixture.source.forget(0) }
    try fixture.source.repository.unpin(Array(try fixture.source.repository.pins()))
    var request = PruneRequest()
    request.mayRemoveAll = true
    _ = try fixture.source.prune(request)
    let report = try fixture.mirror(allowingLargeRemoval: true)
    #expect(report.refusal?.snapshots == 4 && report.removed.isEmpty)
    #expect(try fixture.snapshots() == 4 && fixture.lost().isEmpty)
  }

  /// If a directory is missing or cannot be listed, the run ends before anything is removed.
  @Test(arguments: ["snapshots", "index", "packs"])
  func aLostDirectoryRemovesNothing(_ name: String) throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let before = try fixture.memory.objects()
    let directory = ObjectPath.root.appending(ByteString(name))
    try fixture.source.memory.rename(directory, to: ObjectPath.root.appending("away"))
    let error = storeError { try fixture.mirror(allowingLargeRemoval: true) }
    #expect(error?.kind == .damaged && error?.subject == name)
    #expect(try fixture.memory.objects() == before)
  }

  /// A pinned snapshot cannot have been forgotten. If it is missing, it is lost, and the mirror
  /// keeps it.
  @Test func aLostPinnedSnapshotStays() throws {
    let fixture = try MirrorFixture()
    _ = try fixture.mirror()
    let id = fixture.source.snapshots[0].stored.id
    try fixture.source.memory.remove(RepositoryLayout.tested.snapshot(id))
    let plan = try fixture.mirror(dry: true)
    #expect(plan.hasDamage && plan.removed == RepositoryMirror.Amount())
    // A program that removes other snapshots does not remove the pin either.
    let other = fixture.source.snapshots[3].stored.id
    _ = try SnapshotRemoval(fixture.source.repository).run([other]) { _ in }
    let report = try fixture.mirror()
    #expect(report.damaged.count == 1 && report.damaged[0].subject.contains(id.hex))
    #expect(report.removed.snapshots == 1)
    #expect(try fixture.snapshots() == 3 && fixture.lost().isEmpty)
    try fixture.source.memory.put(
      try fixture.memory.load(RepositoryLayout.tested.snapshot(id), limit: 1 << 20),
      RepositoryLayout.tested.snapshot(id))
    #expect(try !fixture.mirror().hasDamage)
  }

  /// A removed pack stays in the mirror as long as a program that uses the mirror may need it.
  @Test func aReaderOfTheMirrorKeepsItsPacks() throws {
    var fixture = try MirrorFixture()
    _ = try fixture.mirror()
    try fixture.source.forget(3)
    let pruned = try fixture.source.prune()
    #expect(pruned.removedPacks > 0)
    let reader = try ReaderLease(Repository.open(fixture.memory))
    let report = try fixture.mirror()
    #expect(report.waitingPacks == pruned.removedPacks && report.removed.packs == 0)
    reader.release()
    #expect(try fixture.mirror().removed.packs == pruned.removedPacks)
    try fixture.expectExact()
  }

  @Test func aReadOnlyOriginalIsMirrored() throws {
    let fixture = try MirrorFixture()
    let source = try Repository.open(ReadOnlyStorage(fixture.source.memory))
    _ = try fixture.mirror(from: source)
    try fixture.expectExact()
  }

  /// The passphrase of a removed key must not open the mirror.
  @Test func removedKeyFilesAreRemoved() throws {
    let fixture = try MirrorFixture()
    let passphrase = try AgePassphrase(Array("secret".utf8).span)
    let key = try AgeFile(for: passphrase, workFactor: 2).encrypt([1].span)
    let names: [ByteString] = ["a.age", "b.age", "c.age"]
    let paths = names.map { RepositoryLayout.keys.appending($0) }
    for path in paths { try fixture.source.memory.put(key, path) }
    #expect(try fixture.mirror().removedKeys.isEmpty)
    for path in paths { #expect(try fixture.memory.load(path, limit: 1 << 16) == key) }
    try fixture.source.memory.remove(paths[1])
    #expect(try fixture.mirror(dry: true).removedKeys == ["b.age"])
    #expect(try fixture.memory.status(paths[1]) != nil)
    // While another program has the right to remove objects, no key is removed.
    let lease = try Lease(fixture.memory)
    let right = try #require(try PruneLease(lease))
    let waiting = try fixture.mirror()
    #expect(waiting.waitingKeys == ["b.age"] && waiting.removedKeys.isEmpty)
    right.release()
    lease.release()
    #expect(try fixture.mirror().removedKeys == ["b.age"])
    #expect(try fixture.memory.list(RepositoryLayout.keys) == ["a.age", "c.age"])
    try fixture.expectExact()
    // A damaged file does not count as a key, so the mirror keeps its last intact one.
    try fixture.source.memory.remove(paths[2])
    try fixture.source.memory.change(paths[0]) { $0 = [0] }
    let damaged = try fixture.mirror()
    #expect(damaged.removedKeys.isEmpty && damaged.differentKeys == ["a.age"])
    try fixture.source.memory.remove(paths[0])
    #expect(try fixture.mirror().removedKeys.isEmpty)
    #expect(try fixture.memory.list(RepositoryLayout.keys) == ["a.age", "c.age"])
  }

  /// Creates an encrypted repository with a key file, and returns the key that opens it.
  private static func protected(in memory: MemoryStorage) throws -> (Repository, KeySource) {
    let passphrase = try AgePassphrase(Array("correct".utf8).span)
    let identity = AgeIdentity()
    let made = try Repository.create(
      in: memory, program: "test",
      keys: RepositoryKeys(identities: [identity], recipients: [identity.recipient]))
    try made.saveKey("home", passphrase: passphrase, isReplacing: false, workFactor: 2)
    return (made, KeySource.passphrase({ passphrase }))
  }

  /// The key file that opened the original is intact, and the mirror needs its content after a
  /// rotation. Objects that only the older identity opens are removed, whether or not that identity
  /// is still known.
  @Test(arguments: [false, true])
  func keyFileThatOpenedTheOriginalIsCopied(isOpenedAgain: Bool) throws {
    let (memory, target) = (MemoryStorage(), MemoryStorage())
    let (made, key) = try Self.protected(in: memory)
    try made.back(up: PruneFixture.files(0..<3))
    _ = try RepositoryMirror(of: Repository.open(memory, key: key), in: target).run()
    _ = try Repository.open(memory, key: key).rotateKey(workFactor: 2)
    let source = try Repository.open(memory, key: key)
    try source.back(up: PruneFixture.files(3..<6), sequence: 2)
    #expect(try RepositoryMirror(of: source, in: target).run().differentKeys.isEmpty)
    _ = try KeyRewrap(source, workFactor: 2).run()
    let rewrapped = try Repository.open(memory, key: key)
    let opened = isOpenedAgain ? rewrapped : source
    let report = try RepositoryMirror(of: opened, in: target).run()
    #expect(!report.hasDamage && report.refusal == nil, "\(report.damaged)")
    let mirror = try Repository.open(target, key: key)
    #expect(mirror.settings == rewrapped.settings && mirror.keys?.older.isEmpty == true)
    #expect(
      try RepositoryListing.packs(mirror.storage) == RepositoryListing.packs(rewrapped.storage))
    #expect(try Checked(mirror, .everything).damaged.isEmpty)
  }

  /// A rewrap changes the id of each snapshot. That does not count as a removal, even if some
  /// snapshots are removed as well, and even if the key for the old ones no longer exists.
  @Test(arguments: [1, 3]) func rewrittenSnapshotsDoNotCountAsRemoved(forgotten: Int) throws {
    let (memory, target) = (MemoryStorage(), MemoryStorage())
    let (made, key) = try Self.protected(in: memory)
    for number in 0..<5 {
      try made.back(up: PruneFixture.files(number..<number + 3), sequence: UInt64(number + 1))
    }
    _ = try RepositoryMirror(of: Repository.open(memory, key: key), in: target).run()
    _ = try Repository.open(memory, key: key).rotateKey(workFactor: 2)
    _ = try KeyRewrap(Repository.open(memory, key: key), workFactor: 2).run()
    let source = try Repository.open(memory, key: key)
    for id in try RepositoryListing.snapshots(source.storage).prefix(forgotten) {
      try memory.remove(source.storage.layout.snapshot(id))
    }
    let plan = try RepositoryMirror(of: source, in: target, isDry: true).run()
    let report = try RepositoryMirror(of: source, in: target).run()
    let isRefused = forgotten * 2 > 5
    for refusal in [plan.refusal, report.refusal] {
      #expect((refusal != nil) == isRefused)
      guard let refusal else { continue }
      #expect(refusal.snapshots == forgotten && refusal.all == 5 && refusal.sources == 0)
    }
    #expect(report.removed.snapshots == (isRefused ? 0 : 5) && !report.hasDamage)
    let count = isRefused ? 5 + 5 - forgotten : 5 - forgotten
    #expect(try target.list(RepositoryLayout.snapshots).count == count)
  }

  /// A store can put a header that no key opens before the payload of a snapshot. The result does
  /// not count as that snapshot, so the removal is refused as too large.
  @Test func payloadsThatDoNotOpenCountAsRemovedSnapshots() throws {
    let (memory, target) = (MemoryStorage(), MemoryStorage())
    let identity = AgeIdentity()
    let source = try Repository.create(
      in: memory, program: "test",
      keys: RepositoryKeys(identities: [identity], recipients: [identity.recipient]))
    for number in 0..<3 {
      try source.back(up: PruneFixture.files(number..<number + 3), sequence: UInt64(number + 1))
    }
    _ = try RepositoryMirror(of: source, in: target).run()
    let other = try AgeFile(for: [AgeIdentity().recipient]).encrypt([UInt8]().span)
    let header = AgeHeader.count(in: other.span) ?? 0
    for id in try RepositoryListing.snapshots(source.storage).prefix(2) {
      let path = source.storage.layout.snapshot(id)
      let bytes = try memory.load(path, limit: 1 << 20)
      let start = AgeHeader.count(in: bytes.span) ?? 0
      try #require(header > 0 && start > 0)
      let forged = Array(other.prefix(header)) + bytes.dropFirst(start)
      try memory.put(forged, source.storage.layout.snapshot(Blake2b.hash(forged)))
      try memory.remove(path)
    }
    let report = try RepositoryMirror(of: source, in: target).run()
    #expect(report.refusal?.snapshots == 2 && report.removed.snapshots == 0)
  }

  @Test func differentKeyFilesStay() throws {
    let fixture = try MirrorFixture()
    let key = RepositoryLayout.keys.appending("home.age")
    try fixture.source.memory.put([1, 2], key)
    #expect(try fixture.mirror().differentKeys.isEmpty)
    #expect(try fixture.memory.load(key, limit: 9) == [1, 2])
    try fixture.source.memory.change(key) { $0 = [3] }
    #expect(try fixture.mirror().differentKeys == ["home.age"])
    #expect(try fixture.memory.load(key, limit: 9) == [1, 2])
  }
}
