import Codecs
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Objects that this user or these credentials may not read. They may be intact, so nothing is
/// reported as damaged or lost because of them, and no repair drops anything.
struct RefusedObjectTests {
  private let storage = RefusingStorage(MemoryStorage())
  private let repository: Repository
  private let first: StoredSnapshot
  private let second: StoredSnapshot
  private let layout = RepositoryLayout.tested

  init() throws {
    var random = SeededBytes(seed: 62)
    repository = try Repository.create(in: storage, program: "test")
    let both = (name: "both", bytes: random.bytes(2000))
    first = try repository.back(up: [("old", random.bytes(3000)), both])
    second = try repository.back(up: [both, ("new", random.bytes(1000))], sequence: 2)
  }

  private func expectOnlyUnreadable(
    _ paths: [ObjectPath], _ reading: RepositoryCheck.Reading,
    at place: SourceLocation = #_sourceLocation
  ) throws {
    let found = try Checked(repository, reading)
    let unreadable = found.findings.compactMap {
      if case .unreadable(let object, _, _) = $0 { object } else { nil }
    }
    let wanted = paths.map { "\($0)" }.sorted()
    #expect(unreadable.sorted() == wanted, "\(found.findings)", sourceLocation: place)
    #expect(found.damaged.isEmpty && found.costs.isEmpty, sourceLocation: place)
    #expect(found.report.unreadable == paths.count, sourceLocation: place)
    #expect(found.report.unreadableHint == RefusingStorage.hint, sourceLocation: place)
  }

  /// All objects of the repository.
  private var contents: [ObjectPath: [UInt8]] {
    get throws {
      var contents: [ObjectPath: [UInt8]] = [:]
      try storage.memory.forEachObject(below: .root) { path, _ throws(StoreError) in
        contents[path] = try storage.memory.load(path, limit: .max)
      }
      return contents
    }
  }

  private var packs: [ObjectPath] {
    get throws { try RepositoryListing.packs(storage).map { layout.pack($0) } }
  }

  @Test func packsAreUnreadableAndNothingIsLost() throws {
    for pack in try packs {
      storage.refuse([pack])
      try expectOnlyUnreadable([pack], .everything)
    }
    let all = try packs
    storage.refuse(all)
    try expectOnlyUnreadable(all, .everything)
    #expect(try Checked(repository, .everything).report.packsRead == 0)
  }

  /// A check of the trees also reads packs, namely those with trees.
  @Test func treesAreUnreadableAndNothingIsLost() throws {
    let all = try packs
    storage.refuse(all)
    let found = try Checked(repository, .trees)
    #expect(found.damaged.isEmpty && found.costs.isEmpty, "\(found.findings)")
    #expect(found.report.unreadable > 0 && found.report.snapshots == 2)
  }

  @Test func snapshotsAndIndexObjectsAreUnreadable() throws {
    let indexes = try RepositoryListing.indexes(storage).map { layout.index($0) }
    for path in indexes + [first, second].map({ layout.snapshot($0.id) }) {
      storage.refuse([path])
      try expectOnlyUnreadable([path], .everything)
    }
  }

  /// All objects of the first run belong to another user: its content may be complete.
  @Test func nothingIsLostWithAnUnreadableIndex() throws {
    let indexes = try RepositoryListing.indexes(storage).map { layout.index($0) }
    let all = try packs
    storage.refuse(indexes + all)
    try expectOnlyUnreadable(indexes + all, .everything)
    let found = try Checked(repository, .trees)
    #expect(found.report.uncertain == 2 && found.report.costs == 0, "\(found.findings)")
  }

  private func pack(of blob: BlobID) throws -> Digest {
    let index = IndexSet(try LoadedIndex.loadAll(from: storage).objects)
    return try #require(index.find(blob)).pack
  }

  private func tree(_ stored: StoredSnapshot) -> BlobID {
    BlobID(kind: .tree, digest: stored.snapshot.tree.digest)
  }

  /// A blob of a file of the first snapshot.
  private func blob(of name: ByteString) throws -> BlobID {
    let reader = try repository.beginReading()
    let entry = try #require(try reader.entry(at: name, in: first.snapshot.tree))
    guard case .file(let content) = entry.node, case .blob(let digest, _)? = content.pieces.first
    else { throw StoreError.missing("\(name)") }
    return BlobID(kind: .data, digest: digest)
  }

  /// An unreadable pack that is in no index may contain blobs that are in no index, but not those
  /// of the lost pack.
  @Test func aStrayPackDoesNotHideALoss() throws {
    let lost = layout.pack(try pack(of: blob(of: "old")))
    let stray = layout.pack(Blake2b.hash([7]))
    try storage.memory.put([1, 2, 3], stray)
    try storage.memory.remove(lost)
    storage.refuse([stray])
    for reading in [RepositoryCheck.Reading.trees, .everything] {
      let found = try Checked(repository, reading)
      #expect(found.damaged == ["\(lost)"] && found.costs["old"] == [first.id])
      #expect(found.report.unreadable == 1 && found.report.uncertain == 0)
    }
    let error = storeError { try repository.beginReading().bytes(at: "old", in: first) }
    #expect(error?.code == .missing && error?.isRefused == false, "\(String(describing: error))")
  }

  /// The needs of trees that cannot be read are unknown, which matters if data is lost.
  @Test func needsOfUnreadableTreesAreUnknown() throws {
    let trees = Set(try [first, second].map { try pack(of: tree($0)) })
    let data = try pack(of: blob(of: "old"))
    try #require(!trees.contains(data))
    storage.refuse(trees.map { layout.pack($0) })
    #expect(try Checked(repository, .trees).report.uncertain == 0)
    try storage.memory.remove(layout.pack(data))
    let found = try Checked(repository, .trees)
    #expect(found.damaged == ["\(layout.pack(data))"] && found.costs.isEmpty)
    #expect(found.report.uncertain == 2, "\(found.findings)")
  }

  /// If several pages cannot be read, damage takes precedence over a denied access.
  @Test func damageIsPreferred() throws {
    let cause = SystemError(.open, "a", number: EACCES)
    let refusal = StoreError(.system, "open", subject: "a", reason: cause.reason, cause: cause)
    var pages = UnreadableNames.Pages(UnreadableNames(after: nil, last: "a"), refusal.asDamage)
    #expect(pages.error.isRefused)
    pages.add(UnreadableNames(after: "a", last: "b"), .damaged("b", "it is damaged"))
    pages.add(UnreadableNames(after: "b", last: "c"), refusal.asDamage)
    #expect(!pages.error.isRefused && pages.error.subject == "b" && pages.names.last == "c")
  }

  /// Blobs that may be in an unreadable pack are not reported as lost, even without an index.
  @Test func readersNameTheRefusal() throws {
    let heads = try repository.heads().heads
    let indexes = try RepositoryListing.indexes(storage).map { layout.index($0) }
    storage.refuse(try indexes + packs)
    let shared = try repository.beginSharedReading()
    var needs = try SnapshotNeedsSearch(
      repository, cache: nil, threads: 1, isStopping: { false },
      snapshot: { [repository] in try repository.snapshot($0) })
    for error in [
      storeError { try repository.beginReading().bytes(at: "old", in: first) },
      storeError { try shared.directory(first.snapshot.tree) },
      storeError { try needs.mark(heads) },
    ] {
      #expect(error?.kind == .failed && error?.hint == RefusingStorage.hint)
    }
  }

  /// A writer that ignored a record of damage would rely on the packs in it.
  @Test func writersReadAllRecordsOfDamage() throws {
    let pack = DamageRecords.Record.Pack(
      id: try pack(of: blob(of: "old")), size: 1, expected: nil)
    let record = DamageRecords.Record([pack]).encode()
    let path = RepositoryLayout.damaged.appending(
      ByteString(Blake2b.hash(record).hex + ".json"))
    try storage.memory.makeDirectories([RepositoryLayout.damaged.name], in: .root)
    try storage.memory.put(record, path)
    storage.refuse([path])
    for error in [
      storeError { try repository.beginWriting() },
      storeError { try RepositoryPrune(repository).run() },
      storeError { try PackRepair(repository).run() },
    ] {
      #expect(error?.isRefused == true && error?.subject == "\(path)")
    }
    try expectOnlyUnreadable([path], .everything)
    storage.refuse([])
    try repository.beginWriting().abandon()
  }

  @Test func aPlannedMirrorFailsLikeTheRun() throws {
    let others =
      try RepositoryListing.indexes(storage).map { layout.index($0) }
      + [first, second].map { layout.snapshot($0.id) }
    for path in try packs + others {
      storage.refuse([path])
      for target in [nil, MemoryStorage()] {
        let error = storeError {
          try RepositoryMirror(of: repository, in: target, isDry: target == nil).run()
        }
        #expect(error?.isRefused == true && error?.subject == "\(path)")
      }
    }
  }

  @Test func damageBesideARefusedObjectIsFound() throws {
    let all = try packs
    let missing = try #require(all.first)
    try storage.memory.remove(missing)
    storage.refuse([all[1]])
    let found = try Checked(repository, .everything)
    #expect(found.damaged == ["\(missing)"])
    #expect(found.report.unreadable == 1)
  }

  @Test func aCheckRecordsNoDamage() throws {
    storage.refuse(try packs)
    try RepositoryCheck(repository, reading: .everything, workers: 1).run().recordDamage()
    storage.refuse([])
    #expect(try DamageRecords(repository.storage).packs.isEmpty)
  }

  @Test func repairsDropNothing() throws {
    let before = try contents
    let all = try packs
    for paths in [all, try RepositoryListing.indexes(storage).map { layout.index($0) } + all] {
      storage.refuse(paths)
      _ = storeError { try SnapshotRepair(repository).run { _ in } }
      _ = storeError { try PackRepair(repository).run() }
      let report = try IndexRepair(repository).run()
      #expect(report.removed.isEmpty && report.written.isEmpty)
      #expect(report.unreadable.allSatisfy { $0.isRefused })
      let error = storeError { try RepositoryPrune(repository).run() }
      #expect(error?.isRefused == true, "\(String(describing: error))")
      storage.refuse([])
      #expect(try contents == before)
    }
    #expect(try Checked(repository, .everything).findings.isEmpty)
  }

  @Test func repairOfSnapshotsNamesTheRemedy() throws {
    storage.refuse(try packs)
    let error = storeError { try SnapshotRepair(repository).run { _ in } }
    #expect(error?.kind == .failed && error?.hint?.hasSuffix(RefusingStorage.hint) == true)
  }

  /// A blob is read from another pack if the first one may not be read.
  @Test func readersTryOtherCopies() throws {
    // Two concurrent sessions store the same blob.
    let sessions = try (0..<2).map { _ in try repository.beginWriting() }
    for session in sessions { _ = try session.storeBytes([1, 2, 3], kind: .data) }
    for (number, session) in sessions.enumerated() {
      _ = try session.finish(
        repository.makeSnapshot(second.snapshot.tree, sequence: UInt64(number + 3)))
    }
    let blob = BlobID(kind: .data, digest: Blake2b.hash([1, 2, 3]))
    let copies = IndexSet(try LoadedIndex.loadAll(from: storage).objects).findAll(blob).map(\.pack)
    try #require(copies.count == 2)
    for copy in copies {
      storage.refuse([layout.pack(copy)])
      #expect(try repository.beginReading().readBlob(blob) == [1, 2, 3])
    }
    for copy in copies {
      storage.refuse([layout.pack(copy)])
      #expect(try repository.beginSharedReading().data(blob.digest, length: 3).bytes == [1, 2, 3])
    }
    storage.refuse(copies.map { layout.pack($0) })
    for error in [
      storeError { try repository.beginReading().readBlob(blob) },
      storeError { try repository.beginSharedReading().data(blob.digest, length: 3) },
    ] {
      #expect(error?.isRefused == true && error?.kind == .failed)
    }
    // A delivery reports the blob to its sink, which has to try another copy.
    let sink = Sink()
    let use = BlobDelivery.Use(digest: blob.digest, length: 3, item: 0, offset: 0)
    try repository.beginReading()
      .deliver([use], threads: 1, isStopping: { false }, to: { sink })
    #expect(sink.missing.withLock { $0 } == [use])
  }

  private final class Sink: BlobDelivery.Sink, Sendable {
    let missing = Mutex<[BlobDelivery.Use]>([])

    func receive(_ blobs: [BlobDelivery.Blob], of frame: [UInt8]) {}

    func reportMissing(_ uses: [BlobDelivery.Use], _ error: StoreError) {
      missing.withLock { $0 += error.isRefused ? uses : [] }
    }
  }

  @Test func anUnreadableSnapshotIsNotDamageInAListing() throws {
    storage.refuse([layout.snapshot(second.id)])
    let heads = try repository.heads()
    #expect(heads.heads.map(\.id) == [first.id])
    #expect(heads.damaged.count == 1 && heads.damaged[0].isRefused)
    #expect(try heads.latest(named: "latest").id == first.id)
    let error = storeError { try heads.latest(1, named: "latest~1") }
    #expect(error?.kind == .failed && error?.hint == RefusingStorage.hint)
  }
}

/// A storage that denies read access to some objects.
private final class RefusingStorage: ForwardingStorage {
  static let hint = "change the owner"

  let memory: MemoryStorage
  private let refused = Mutex<Set<ObjectPath>>([])

  var base: any Storage { memory }

  init(_ memory: MemoryStorage) { self.memory = memory }

  func refuse(_ paths: [ObjectPath]) { refused.withLock { $0 = Set(paths) } }

  private func requireAccess(_ path: ObjectPath) throws(StoreError) {
    guard refused.withLock({ $0.contains(path) }) else { return }
    let cause = SystemError(.open, ByteString("\(path)"), number: EACCES)
    throw StoreError(
      .system, "open", subject: "\(path)", reason: cause.reason, hint: Self.hint, cause: cause)
  }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try requireAccess(path)
    return try memory.load(path, limit: limit)
  }

  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try requireAccess(path)
    try memory.load(path, offset: offset, count: count, into: &buffer)
  }
}

/// The explanation of a denied access by the owner and mode of a file.
struct AccessDenialTests {
  private func denial(
    _ kind: FileKind, _ permissions: UInt16, of user: UInt32, to other: UInt32
  ) -> AccessDenial? {
    let time = Timestamp(seconds: 0)
    let status = FileStatus(
      kind, permissions: permissions, user: user, identity: FileIdentity(device: 1, inode: 1),
      modified: time, changed: time)
    return AccessDenial(of: status, at: "repo/packs/ab", to: other)
  }

  @Test func theOwnerIsNamed() throws {
    let file = try #require(denial(.file, 0o600, of: 0, to: 4_000_000_000))
    #expect(!file.isOwnMode)
    #expect(
      file.words
        == "it belongs to 'root' (mode 0600), and this program runs as user 4000000000")
    let directory = try #require(denial(.directory, 0o700, of: 0, to: 4_000_000_000))
    #expect(
      directory.words.hasPrefix("the directory 'repo/packs/ab' belongs to 'root' (mode 0700)"))
  }

  @Test func theModeIsNamed() throws {
    let file = try #require(denial(.file, 0o040, of: 5, to: 5))
    #expect(file.isOwnMode && file.words == "it has the mode 0040")
    #expect(denial(.directory, 0o500, of: 5, to: 5)?.isOwnMode == true)
  }

  /// The owner and the mode would permit the access, so the reason is another one, such as a
  /// security module.
  @Test func otherReasonsAreNotExplained() {
    #expect(denial(.file, 0o600, of: 5, to: 5) == nil)
    #expect(denial(.directory, 0o700, of: 5, to: 5) == nil)
  }
}
