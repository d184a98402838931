import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Rotation of the identity and the recipients, and rewrapping: after an interruption at any call
/// of the storage, the old or the new key opens the repository, and every snapshot is complete.
struct KeyRotationTests {
  private let lab: RotationLab

  init() throws { lab = try RotationLab() }

  // MARK: - Rotation

  @Test func newObjectsAreForTheNewIdentityOnly() throws {
    let before = try lab.objects()
    let rotation = try lab.rotate()
    #expect(!rotation.isCompletion && rotation.identities.count == 2)
    try lab.backUp(3)
    let added = try lab.objects().subtracting(before)
    #expect(!added.isEmpty)
    for path in added { #expect(try !lab.opens(path, with: lab.recovery), "\(path)") }
    try lab.expectWhole("after the rotation", snapshots: 3)
    // The identities that were saved as the recovery key also open everything.
    try lab.expectWhole("by the recovery key", snapshots: 3, key: .identities(rotation.identities))
  }

  /// The old recovery key does not open new objects, and the error says why.
  @Test func oldRecoveryKeyIsRefused() throws {
    _ = try lab.rotate()
    let error = storeError { try Repository.open(lab.memory, key: .identities([lab.recovery])) }
    #expect(error?.code == .wrongKey)
    #expect(error?.reason.hasPrefix("the key was rotated") == true)
  }

  @Test func otherRecipientsStayUnlessSomeAreGiven() throws {
    let (one, two) = (AgeIdentity().recipient, AgeIdentity().recipient)
    var rotation = try lab.rotate(to: [one])
    #expect(rotation.repository.keys?.recipients.dropFirst() == [one])
    rotation = try lab.rotate()
    #expect(rotation.repository.keys?.recipients.dropFirst() == [one])
    #expect(rotation.repository.settings.olderRecipients.count == 2)
    rotation = try lab.rotate(to: [two, two])
    #expect(rotation.repository.keys?.recipients.dropFirst() == [two])
    #expect(rotation.identities.last?.recipient == lab.recovery.recipient)
    let settings = try Repository.open(lab.memory, key: .none).settings
    #expect(settings.recipients == rotation.repository.keys?.recipients)
    rotation = try lab.rotate(to: [])
    #expect(rotation.repository.keys?.recipients.count == 1)
    try lab.expectWhole("after four rotations")
  }

  /// Members of `repository.json` that another program has added are kept.
  @Test func unknownMembersStay() throws {
    try lab.memory.change(RepositoryLayout.settings) { text in
      text = Array(
        String(decoding: text, as: UTF8.self)
          .replacing("\"hash\"", with: "\"later\": [1, 2],\n  \"hash\"").utf8)
    }
    _ = try lab.rotate()
    let text = try lab.memory.load(RepositoryLayout.settings, limit: 1 << 20)
    #expect(try JSON(parsing: text)["later"] == [1, 2])
  }

  @Test func impossibleRotationsAreRefused() throws {
    let opened = try lab.open()
    try opened.saveKey(
      "other", passphrase: lab.passphrase, isReplacing: false, workFactor: RotationLab.workFactor)
    let others = storeError { try lab.rotate() }
    #expect(others?.code == .invalid && others?.reason.contains("'other'") == true)
    try opened.removeKey("other")
    let identity = try Repository.open(lab.memory, key: .identities([lab.recovery]))
    #expect(storeError { try identity.rotateKey() }?.code == .keyRequired)
    let plain = try Repository.create(in: MemoryStorage(), program: "test", keys: nil)
    #expect(storeError { try plain.rotateKey() }?.code == .invalid)
    try lab.memory.put(Array("{}".utf8), MirrorRecord.path)
    #expect(storeError { try lab.rotate() }?.reason == "it is a mirror")
    #expect(storeError { try lab.rewrap() }?.reason == "it is a mirror")
  }

  /// The recovery key is saved before anything is written, so if that fails, nothing changes.
  @Test func failedPreparationChangesNothing() throws {
    let before = try lab.memory.load(RepositoryLayout.settings, limit: 1 << 20)
    let opened = try lab.open()
    let error = storeError {
      try opened.rotateKey(workFactor: RotationLab.workFactor) { _ in
        throw StoreError(.system, "save", subject: "key", reason: "the test says so")
      }
    }
    #expect(error?.reason == "the test says so")
    #expect(try lab.memory.load(RepositoryLayout.settings, limit: 1 << 20) == before)
    #expect(try lab.open().keys?.older.isEmpty == true)
  }

  @Test(arguments: [false, true]) func rotationIsInterruptedAtEachCall(
    failsRepeatedly: Bool
  ) throws {
    var completed = 0
    for number in 1... {
      let copy = lab.copy()
      var saved: [AgeIdentity] = []
      let opened = try copy.open(copy.watched)
      copy.watched.fail(at: number, failsRepeatedly: failsRepeatedly)
      _ = storeError {
        try opened.rotateKey(workFactor: RotationLab.workFactor) { saved = $0 }
      }
      let hasFailed = copy.watched.hasFailed
      copy.watched.fail(at: nil)
      try copy.expectWhole("call \(number)")
      let keys = [[lab.recovery], saved].filter {
        (try? Repository.open(copy.memory, key: .identities($0))) != nil
      }
      #expect(!keys.isEmpty, "call \(number)")
      let rotation = try copy.later { try copy.rotate() }
      if rotation.isCompletion {
        completed += 1
        #expect(rotation.identities.map(\.recipient) == saved.map(\.recipient))
      }
      #expect(rotation.repository.keys?.recipients == rotation.repository.settings.recipients)
      try copy.expectWhole("call \(number), after the next rotation")
      if !hasFailed { break }
    }
    #expect(completed > 0)
  }

  // MARK: - Programs that began before a rotation

  /// A program that opened the repository before the rotation cannot write after it.
  @Test func recipientsAreCheckedUnderTheLease() throws {
    let opened = try lab.open()
    _ = try lab.rotate()
    #expect(storeError { try opened.beginWriting() }?.code == .busy)
    #expect(storeError { try IndexRepair(opened).run() }?.code == .busy)
    let key = storeError {
      try opened.saveKey(
        "next", passphrase: lab.passphrase, isReplacing: false, workFactor: RotationLab.workFactor)
    }
    #expect(key?.code == .busy)
    #expect(try lab.open().keyEntries().count == 1)
    #expect(try lab.memory.list(RepositoryLayout.leases).isEmpty)
  }

  /// A program that already has its lease may finish: the older identities stay until it has ended.
  @Test func runningWriterKeepsTheOlderIdentities() throws {
    let opened = try lab.open()
    let session = try opened.beginWriting()
    _ = try lab.rotate()
    let first = try lab.rewrap()
    #expect(first.writers == 1 && !first.isComplete && first.waitingPacks > 0)
    let content = try session.storeFile(logicalPath: "folders/test/last", bytes: [1, 2, 3])
    let tree = try session.storeTree([TreeEntry(name: "last", node: .file(content))])
    let stored = try session.finish(opened.makeSnapshot(tree, sequence: 9))
    let second = try lab.rewrap()
    #expect(second.isComplete && second.snapshots.keys.contains(stored.id))
    try lab.expectWhole("after both", snapshots: 3)
    try lab.expectNothingOpens(with: lab.recovery)
  }

  // MARK: - Key files

  /// A new key file contains the older identities; without them it would not open all objects.
  @Test func addedKeyHasTheOlderIdentities() throws {
    let rotation = try lab.rotate()
    let newest = try Repository.open(
      lab.memory, key: .identities(Array(rotation.identities.prefix(1))))
    let other = try AgePassphrase(Array("another".utf8).span)
    let add = { (repository: Repository) in
      try repository.saveKey(
        "second", passphrase: other, isReplacing: false, workFactor: RotationLab.workFactor)
    }
    #expect(storeError { try add(newest) }?.code == .keyRequired)
    try add(Repository.open(lab.memory, key: .identities(rotation.identities.reversed())))
    try lab.expectWhole("by the second key", key: .passphrase({ other }))
  }

  // MARK: - Rewrapping

  @Test func rewrapKeepsPayloadsAndPins() throws {
    let snapshots = try lab.open().snapshots().snapshots
    try lab.open().pin([snapshots[0].id])
    let payloads = try lab.payloads()
    #expect(try lab.rewrap().isComplete)
    _ = try lab.rotate()
    let dry = try lab.rewrap(isDry: true)
    #expect(dry.rewrapped.snapshots == 2 && dry.rewrapped.packs == payloads.count)
    #expect(dry.olderIdentities == 1)
    let report = try lab.rewrap()
    #expect(report.isComplete && report.damaged.isEmpty && report.waitingPacks == 0)
    #expect(report.rewrapped.packs == payloads.count && report.removedPacks == payloads.count)
    #expect(Set(report.snapshots.keys) == Set(snapshots.map(\.id)))
    #expect(try lab.payloads() == payloads)
    let opened = try lab.open()
    let pinned = try #require(report.snapshots[snapshots[0].id])
    #expect(try opened.pins() == [pinned])
    #expect(opened.keys?.older.isEmpty == true && opened.settings.olderRecipients.isEmpty)
    try lab.expectWhole("after the rewrap")
    try lab.expectNothingOpens(with: lab.recovery)
    #expect(try lab.rewrap().rewrapped == KeyRewrap.Amount())
    #expect(try RepositoryPrune(opened).run().plan.isIdle)
  }

  /// A rewrap can use the recovery key, but needs a passphrase to change the key file.
  @Test func identitiesRewrap() throws {
    let rotation = try lab.rotate()
    let newest = try Repository.open(
      lab.memory, key: .identities(Array(rotation.identities.prefix(1))))
    #expect(storeError { try KeyRewrap(newest).run() }?.code == .keyRequired)
    let opened = try Repository.open(lab.memory, key: .identities(rotation.identities))
    let report = try KeyRewrap(opened).run()
    #expect(report.needsPassphrase && report.left.objects == 0 && !report.isComplete)
    #expect(try lab.rewrap().isComplete)
    try lab.expectNothingOpens(with: lab.recovery)
  }

  /// A damaged object is kept, and so are the older identities that it needs.
  @Test func damagedPackStays() throws {
    _ = try lab.rotate()
    // The largest pack contains no trees; without trees it would be unknown which blobs are needed.
    let sizes = try RepositoryListing.packSizes(lab.open().storage)
    let pack = try #require(sizes.max { $0.value < $1.value }).key
    let path = RepositoryLayout(isEncrypted: true).pack(pack)
    let intact = try lab.memory.load(path, limit: 1 << 30)
    try lab.memory.change(path) { $0[$0.count - 1] ^= 1 }
    let report = try lab.rewrap()
    #expect(report.damaged.count == 1 && report.left.packs == 1 && report.olderIdentities == 1)
    #expect(try lab.memory.status(path) != nil)
    try lab.memory.change(path) { $0 = intact }
    #expect(try lab.rewrap().isComplete)
    try lab.expectWhole("after the pack is intact again")
  }

  /// The new ids must be recorded before old snapshots are removed, so that they are not lost if
  /// the rewrap is killed.
  @Test func newIdsAreKnownBeforeOldSnapshotsAreRemoved() throws {
    let old = try Set(lab.open().snapshots().snapshots.map(\.id))
    _ = try lab.rotate()
    var named: [SnapshotID: SnapshotID] = [:]
    let stopped = StoreError(.system, "record", subject: "ids", reason: "the test says so")
    var rewrap = try KeyRewrap(lab.open(), workFactor: RotationLab.workFactor)
    rewrap.willRemove = { snapshots in
      named = snapshots
      throw stopped
    }
    #expect(storeError { try rewrap.run() }?.reason == stopped.reason)
    #expect(Set(named.keys) == old)
    let present = try Set(lab.open().snapshots().snapshots.map(\.id))
    #expect(present == old.union(named.values) && present.count == 2 * old.count)
    // The next rewrap reports the same ids.
    let report = try lab.rewrap()
    #expect(report.snapshots == named && report.isComplete)
  }

  /// A rewrap may use the reserved space of a full volume, and reserves it again at the end, as a
  /// prune does.
  @Test func rewrapRestoresTheReserve() throws {
    _ = try lab.rotate()
    try lab.memory.remove(RepositoryLayout.reserve)
    #expect(try lab.rewrap().isComplete)
    #expect(try lab.memory.status(RepositoryLayout.reserve)?.size == 4 << 20)
  }

  /// A key that was revealed can be removed on a full volume: the reserve has room for the lease.
  @Test func keysAreRemovedOnAFullVolume() throws {
    let second = try AgePassphrase(Array("second".utf8).span)
    try lab.open().saveKey(
      "second", passphrase: second, isReplacing: false, workFactor: RotationLab.workFactor)
    let opened = try lab.open(lab.watched)
    let room = Room()
    lab.watched.state.withLock { $0.failure = { room.failure(of: $0) } }
    try opened.removeKey("second")
    #expect(try lab.memory.listIfPresent(KeyFile.directory)?.count == 1)
    #expect(try lab.memory.status(RepositoryLayout.reserve)?.size == 4 << 20)
    #expect(try lab.memory.list(RepositoryLayout.leases).isEmpty)
  }

  /// Copies contain the ids from before a rewrap. They are still recognized in both directions, and
  /// a new snapshot is copied.
  @Test func copiesFromBeforeARewrapAreFound() throws {
    let target = try Repository.create(in: MemoryStorage(), program: "test", keys: nil)
    #expect(try CopyFixture.copy(lab.open(), target).copied.count == 2)
    _ = try lab.rotate()
    let rewrapped = try lab.rewrap()
    #expect(rewrapped.isComplete && rewrapped.snapshots.count == 2)
    let again = try CopyFixture.copy(lab.open(), target)
    #expect(again.present == 2 && again.copied.isEmpty)
    let back = try CopyFixture.copy(target, lab.open())
    #expect(back.present == 2 && back.copied.isEmpty)
    try lab.backUp(3)
    let third = try CopyFixture.copy(lab.open(), target)
    #expect(third.present == 2 && third.copied.map(\.head.sequence) == [3])
    #expect(try target.snapshots().snapshots.count == 3)
  }

  /// A store may add an unsigned snapshot with the content of a signed one. As long as both exist,
  /// a copy of the unsigned one does not count as a copy of the genuine one.
  @Test func copyOfAnUnsignedSnapshotIsNotThatOfTheSignedOne() throws {
    let target = try Repository.create(in: MemoryStorage(), program: "test", keys: nil)
    var opened = try lab.open()
    let key = SigningKey()
    opened.signingKey = { key }
    let genuine = try opened.back(up: RotationLab.files(3), sequence: 3)
    let object = try opened.storage.encode(genuine.snapshot.encode())
    try lab.memory.put(object.bytes, opened.storage.layout.snapshot(object.id))
    #expect(try CopyFixture.copy(opened, target, [object.id]).copied.count == 1)
    let all = try CopyFixture.copy(opened, target)
    #expect(all.present == 1 && all.copied.count == 3)
    #expect(all.copied.map(\.head.id).contains(genuine.id))
  }

  @Test(arguments: [false, true]) func rewrapIsInterruptedAtEachCall(
    failsRepeatedly: Bool
  ) throws {
    try lab.open().pin([try #require(lab.open().snapshots().snapshots.first).id])
    _ = try lab.rotate()
    try lab.backUp(3)
    for number in Sampling.steps(23, "rewrap") {
      let copy = lab.copy()
      let opened = try copy.open(copy.watched)
      copy.watched.fail(at: number, failsRepeatedly: failsRepeatedly)
      _ = storeError { try KeyRewrap(opened, workFactor: RotationLab.workFactor).run() }
      let hasFailed = copy.watched.hasFailed
      copy.watched.fail(at: nil)
      try copy.expectWhole("call \(number)")
      var report = try copy.later { try copy.rewrap() }
      // A lease without a heartbeat expires an hour after it was first seen.
      if !report.isComplete { report = try copy.later { try copy.rewrap() } }
      #expect(report.isComplete, "call \(number): \(report.left), \(report.damaged)")
      try copy.expectWhole("call \(number), after the next rewrap", snapshots: 3)
      try copy.expectNothingOpens(with: lab.recovery)
      let after = try copy.open()
      let ids = Set(try after.snapshots().snapshots.map(\.id))
      #expect(try after.pins().count == 1 && after.pins().isSubset(of: ids), "call \(number)")
      if !hasFailed { return }
    }
  }
}

/// An encrypted repository in memory with two snapshots and one key file.
struct RotationLab {
  let memory: MemoryStorage
  let watched: WatchedStorage
  let recovery: AgeIdentity
  let passphrase: AgePassphrase
  private let clock: TestClock

  /// The scrypt work factor in these tests.
  static let workFactor = 2

  init() throws {
    let clock = TestClock()
    memory = MemoryStorage(clock: { clock.now })
    (self.clock, watched, recovery) = (clock, WatchedStorage(memory), AgeIdentity())
    passphrase = try AgePassphrase(Array("correct".utf8).span)
    let made = try Repository.create(
      in: memory, program: "test",
      keys: RepositoryKeys(identities: [recovery], recipients: [recovery.recipient]))
    try made.saveKey(
      "host", passphrase: passphrase, isReplacing: false, workFactor: Self.workFactor)
    try backUp(1)
    try backUp(2)
  }

  private init(copying other: RotationLab) {
    memory = other.memory.copy()
    (clock, watched, recovery) = (other.clock, WatchedStorage(memory), other.recovery)
    passphrase = other.passphrase
  }

  func copy() -> RotationLab { RotationLab(copying: self) }

  func open(_ storage: (any Storage)? = nil) throws -> Repository {
    let passphrase = passphrase
    return try Repository.open(storage ?? memory, key: .passphrase({ passphrase }))
  }

  /// The files of the snapshot with this number.
  static func files(_ number: Int) -> [(name: String, bytes: [UInt8])] {
    PruneFixture.files((number * 2)..<(number * 2 + 4))
  }

  func backUp(_ number: Int) throws {
    try open().back(up: Self.files(number), sequence: UInt64(number))
  }

  @discardableResult
  func rotate(to others: [AgeRecipient]? = nil) throws -> Repository.Rotation {
    try open().rotateKey(to: others, workFactor: Self.workFactor)
  }

  func rewrap(isDry: Bool = false) throws -> KeyRewrap.Report {
    try KeyRewrap(open(), isDry: isDry, workFactor: Self.workFactor).run()
  }

  /// Runs a step after the leases of a program that ended have expired.
  func later<Result>(_ step: () throws -> Result) throws -> Result {
    for _ in 0..<3 {
      clock.advance(by: 3700)
      do {
        return try step()
      } catch let error as StoreError where error.code == .busy { continue }
    }
    clock.advance(by: 3700)
    return try step()
  }

  /// The paths of all objects.
  func objects() throws -> Set<ObjectPath> {
    var paths: Set<ObjectPath> = []
    for directory in [
      RepositoryLayout.packs, RepositoryLayout.indexes, RepositoryLayout.snapshots,
    ] {
      try memory.forEachObject(below: directory) { path, _ in paths.insert(path) }
    }
    return paths
  }

  func opens(_ path: ObjectPath, with identity: AgeIdentity) throws -> Bool {
    let stored = try memory.load(path, limit: 1 << 30)
    return (try? AgeFile(opening: stored.span, with: [identity])) != nil
  }

  func expectNothingOpens(
    with identity: AgeIdentity, _ location: SourceLocation = #_sourceLocation
  ) throws {
    let objects = try objects()
    #expect(!objects.isEmpty, sourceLocation: location)
    for path in objects {
      #expect(try !opens(path, with: identity), "\(path)", sourceLocation: location)
    }
  }

  /// The hashes of the payloads of all packs.
  func payloads() throws -> Set<Digest> {
    var payloads: Set<Digest> = []
    for path in try objects() where path.name.hasSuffix(".tar.zst.age") {
      let stored = try memory.load(path, limit: 1 << 30)
      let found = AgeFile.headCount(in: stored.span)
      let head = try #require(found)
      payloads.insert(Blake2b.hash(Array(stored.dropFirst(head - 16))))
    }
    return payloads
  }

  /// Expects the first two snapshots, of which there may be several copies, to be complete.
  ///
  /// - Parameter snapshots: the expected number of all snapshots; nil for any.
  func expectWhole(
    _ what: String, snapshots: Int? = nil, key: KeySource? = nil,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let repository = try key.map { try Repository.open(memory, key: $0) } ?? open()
    let listing = try repository.snapshots()
    #expect(listing.damaged.isEmpty, "\(what): \(listing.damaged)", sourceLocation: location)
    if let snapshots {
      #expect(listing.snapshots.count == snapshots, "\(what)", sourceLocation: location)
    }
    let reader = try repository.beginReading()
    for number in 1...2 {
      let found = listing.snapshots.filter { $0.snapshot.sequence == UInt64(number) }
      #expect(!found.isEmpty, "\(what): snapshot \(number)", sourceLocation: location)
      for stored in found {
        for (name, bytes) in Self.files(number) {
          let read = try? reader.bytes(at: ByteString(name), in: stored)
          #expect(read == bytes, "\(what): \(number), \(name)", sourceLocation: location)
        }
      }
    }
    let checked = try Checked(repository, .everything)
    #expect(
      checked.damaged.isEmpty && checked.costs.isEmpty, "\(what): \(checked.findings)",
      sourceLocation: location)
  }
}
