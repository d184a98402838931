import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// An identity without the older ones, such as that of a recipient whom a rotation added, does not
/// open what is older. Nothing counts as damaged or lost because of that, and no repair drops
/// anything.
struct OlderKeyTests {
  private let lab: RotationLab
  private let added = AgeIdentity()
  private let layout = RepositoryLayout(isEncrypted: true)

  init() throws {
    lab = try RotationLab()
    let rotation = try lab.rotate(to: [added.recipient])
    #expect(rotation.added == [added.recipient])
    // Shares files with the snapshot before it, whose packs only the older identity opens.
    try lab.backUp(3)
  }

  private func open() throws -> Repository {
    try Repository.open(lab.memory, key: .identities([added]))
  }

  /// The packs that the added identity does not open.
  private func olderPacks() throws -> [Digest: UInt64] {
    try RepositoryListing.packSizes(open().storage).filter { id, _ in
      try !lab.opens(layout.pack(id), with: added)
    }
  }

  private func expectNotOpened(
    _ error: StoreError?, at place: SourceLocation = #_sourceLocation
  ) {
    #expect(error?.isRefused == true, "\(String(describing: error))", sourceLocation: place)
    let hint = error?.hint ?? ""
    #expect(hint.contains("all lines of the recovery key"), "\(hint)", sourceLocation: place)
    #expect(!hint.contains("--force") && !hint.contains("repair"), sourceLocation: place)
  }

  @Test func addedRecipientsAreThoseThatWereNoneBefore() throws {
    let next = AgeIdentity().recipient
    #expect(try lab.rotate().added.isEmpty)
    let text = try lab.memory.load(RepositoryLayout.settings, limit: 1 << 20)
    #expect(try lab.rotate(to: [added.recipient, next]).added == [next])
    // As after a rotation that ended between its two writes.
    try lab.memory.put(text, RepositoryLayout.settings)
    let completed = try lab.rotate()
    #expect(completed.isCompletion && completed.added == [next])
  }

  @Test func olderObjectsAreUnreadableAndNothingIsLost() throws {
    let packs = try olderPacks()
    try #require(!packs.isEmpty)
    let found = try Checked(open(), .everything)
    #expect(found.damaged.isEmpty && found.costs.isEmpty, "\(found.findings)")
    #expect(found.report.unreadable >= packs.count + 2, "\(found.findings)")
    #expect(found.report.unreadableHint?.contains("'sandboxctl key rewrap'") == true)
    let result = try RepositoryCheck(open(), reading: .everything, workers: 1).run()
    try result.recordDamage()
    #expect(try (lab.memory.listIfPresent(RepositoryLayout.damaged) ?? []).isEmpty)
  }

  /// A check of an earlier version has recorded the packs as damaged.
  @Test func repairsChangeNothing() throws {
    let packs = try olderPacks().map { DamageRecords.Record.Pack(id: $0, size: $1, expected: $1) }
    let record = DamageRecords.Record(packs).encode()
    try lab.memory.makeDirectories([RepositoryLayout.damaged.name], in: .root)
    try lab.memory.put(
      record, RepositoryLayout.damaged.appending(ByteString(Blake2b.hash(record).hex + ".json")))
    let before = try lab.objects()
    expectNotOpened(storeError { try PackRepair(open()).run() })
    let snapshots = storeError { try SnapshotRepair(open(), isForgetting: true).run { _ in } }
    #expect(snapshots?.hint?.contains("all lines of the recovery key") == true)
    _ = try IndexRepair(open()).run()
    #expect(try lab.objects() == before)
  }

  @Test func pruneDoesNotSuggestToForget() throws {
    let error = storeError { try RepositoryPrune(open()).run() }
    expectNotOpened(error)
    #expect(error?.errorCode == .keyRequired, "it is not damaged")
  }

  /// A backup notes it, so that nobody relies on an identity that cannot restore.
  @Test func lackOfAnOlderKeyIsKnown() throws {
    #expect(try open().lacksOlderKey && !lab.open().lacksOlderKey)
    let writer = try Repository.open(
      lab.memory, key: .recipients(open().settings.recipients))
    #expect(!writer.lacksOlderKey)
    _ = try lab.rewrap()
    #expect(try !open().lacksOlderKey)
  }

  /// Everything opens again with the older identities, and after a rewrap with the added one.
  @Test func rewrapIsEnough() throws {
    try lab.expectWhole("with the passphrase", snapshots: 3)
    #expect(try lab.rewrap().isComplete)
    try lab.expectWhole("with the added identity", snapshots: 3, key: .identities([added]))
  }

  /// A host that knows only the first identity must not take a key file that the recovery key has
  /// written for an older one.
  @Test func keyFilesOfTheRecoveryKeyHaveRetiredIdentities() throws {
    #expect(try lab.rewrap().isComplete)
    let current = try #require(lab.open().keys?.own)
    let first = lab.recovery
    func keys(_ name: String, writtenWith identities: [AgeIdentity]) throws -> RepositoryKeys {
      let passphrase = try AgePassphrase(Array(name.utf8).span)
      try Repository.open(lab.memory, key: .identities(identities)).saveKey(
        name, passphrase: passphrase, isReplacing: false, workFactor: RotationLab.workFactor)
      return try #require(
        Repository.open(lab.memory, key: .passphrase({ passphrase })).keys)
    }
    let written = try keys("second", writtenWith: [current, first])
    #expect(written.retired == [first.recipient] && written.older.isEmpty)
    #expect(written.continues([first.recipient.description]))
    // What precedes the identity may be newer.
    #expect(try keys("third", writtenWith: [first, current]).retired.isEmpty)
  }

  /// The sizes of index objects come from their listing, which is one request on another host.
  @Test func rewrapDoesNotAskForTheSizeOfEachIndexObject() throws {
    let copy = lab.copy()
    let rewrap = try KeyRewrap(
      copy.open(copy.watched), isDry: true, workFactor: RotationLab.workFactor)
    #expect(try rewrap.run().rewrapped.objects > 0)
    let events = copy.watched.state.withLock { $0.events }
    #expect(!events.contains { $0.hasPrefix("status index/") }, "\(events)")
    #expect(events.contains("objects index"), "\(events)")
  }

  // MARK: - Copies

  /// Nothing is lost: the snapshots, and the content of the one that opens, need an older key.
  @Test(arguments: [false, true]) func copyNamesTheOlderKey(isDry: Bool) throws {
    try rewriteIndexes()
    let target = try PruneFixture()
    let report = try CopyFixture.copy(open(), target.repository, dry: isDry)
    #expect(!report.hasDamage, "\(report)")
    #expect(!report.unreadable.contains { !$0.needsOlderKey })
    if !isDry {
      #expect(report.copied.isEmpty && !report.incomplete.isEmpty, "\(report)")
      for snapshot in report.incomplete {
        #expect(snapshot.needsOlderKey && snapshot.losses > 0, "\(snapshot)")
        #expect(!snapshot.lost.contains { $0.note.contains("lost") }, "\(snapshot.lost)")
      }
    }
    #expect(try lab.rewrap().isComplete)
    #expect(try CopyFixture.copy(open(), target.repository).copied.count >= 2)
  }

  /// A lost pack is damage, whatever key is given.
  @Test func lostPacksStayDamageInACopy() throws {
    try rewriteIndexes()
    let older = try olderPacks()
    let packs = try RepositoryListing.packSizes(open().storage).keys
    for pack in packs where older[pack] == nil { try lab.memory.remove(layout.pack(pack)) }
    let report = try CopyFixture.copy(open(), PruneFixture().repository)
    #expect(report.hasDamage, "\(report)")
  }

  // MARK: - Mirrors

  /// Rewrites the index objects for the current recipients, as a merge does.
  private func rewriteIndexes() throws {
    let opened = try lab.open()
    let session = try opened.beginWriting()
    defer { session.abandon() }
    let right = try PruneLease(session.lease, for: "rewrite the index of")
    defer { right.release() }
    for object in try LoadedIndex.loadAll(from: opened.storage).objects {
      try session.rewrite(object, without: [], right)
    }
  }

  private func mirror(to memory: MemoryStorage, isDry: Bool = false) throws
    -> RepositoryMirror.Report
  {
    try RepositoryMirror(of: open(), in: memory, isDry: isDry).run()
  }

  @Test func mirrorHasSnapshotsThatTheKeyDoesNotOpen() throws {
    try rewriteIndexes()
    let memory = MemoryStorage(name: "mirror")
    let dry = try mirror(to: memory, isDry: true)
    #expect(dry.unread == 2 && dry.copied.snapshots == 3 && dry.damaged.isEmpty)
    let report = try mirror(to: memory)
    #expect(report.unread == 2 && report.copied.snapshots == 3 && !report.hasDamage)
    #expect(report.damaged.isEmpty, "\(report.damaged)")
    let passphrase = lab.passphrase
    let checked = try Checked(
      Repository.open(memory, key: .passphrase({ passphrase })), .everything)
    #expect(checked.report.snapshots == 3 && checked.damaged.isEmpty && checked.costs.isEmpty)
    let again = try mirror(to: memory)
    #expect(again.unread == 0 && again.damaged.isEmpty && again.copied.isEmpty)
  }

  /// It is unknown what they need: a lost pack may be theirs.
  @Test func mirrorSkipsThemIfAPackIsLost() throws {
    try rewriteIndexes()
    let pack = try #require(olderPacks().keys.min())
    try lab.memory.remove(layout.pack(pack))
    let memory = MemoryStorage(name: "mirror")
    let report = try mirror(to: memory)
    #expect(report.unread == 0)
    #expect(report.damaged.count(where: \.needsOlderKey) == 2, "\(report.damaged)")
    #expect(try memory.list(RepositoryLayout.snapshots).count <= 1)
  }
}
