import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Checks of a repository on another host that fails to send packs or stops answering: this must
/// not be mistaken for damage or loss.
struct CheckOutageTests {
  private let storage = FailingStorage(MemoryStorage())
  private let repository: Repository
  private let layout = RepositoryLayout.tested
  /// The packs with the files, one for each backup.
  private let packs: [Digest]

  init() throws {
    var random = SeededBytes(seed: 63)
    repository = try Repository.create(in: storage, program: "test")
    var packs: [Digest] = []
    for number in 1...5 {
      let bytes = random.bytes(3000)
      let name = ByteString("file\(number)")
      let stored = try repository.back(up: [("file\(number)", bytes)], sequence: UInt64(number))
      let reader = try repository.beginReading()
      let entry = try #require(try reader.entry(at: name, in: stored.snapshot.tree))
      guard case .file(let content) = entry.node, case .blob(let digest, _) = content.pieces[0]
      else { throw StoreError.missing("\(name)") }
      packs.append(try #require(reader.locate(BlobID(kind: .data, digest: digest))).pack)
    }
    self.packs = packs
  }

  /// Reads of a pack fail from the n-th on, for each n. After a failure, the pack is not read
  /// again.
  @Test func aPackThatCannotBeReadIsNotDamage() throws {
    let path = layout.pack(packs[0])
    var reads = 0
    for number in 1...100 {
      storage.fail([path], from: number)
      let result = try RepositoryCheck(repository, reading: .everything, workers: 2).run()
      var findings: [RepositoryCheck.Finding] = []
      let report = try result.forEachFinding { findings.append($0) }
      if storage.failures == 0 { break }
      reads = number
      #expect(storage.failures == 1, "read \(number)")
      #expect(report.damaged == 0 && report.costs == 0, "read \(number): \(findings)")
      #expect(report.unreadable == 1 && report.hasOtherReasons, "read \(number): \(findings)")
      let found = findings.contains { finding in
        if case .unreadable(let object, "the test says so", _) = finding {
          object == "\(path)"
        } else {
          false
        }
      }
      #expect(found, "read \(number): \(findings)")
      try result.recordDamage()
      #expect(try DamageRecords(storage).packs.isEmpty)
    }
    #expect(reads > 2 && reads < 100)
    storage.fail([], from: 1)
    #expect(try Checked(repository, .everything).findings.isEmpty)
  }

  /// A pack that appears damaged is read a second time. If that read fails, the damage may have
  /// occurred in transit, so the pack counts as unread.
  @Test func aPackThatCannotBeReadAgainIsUnread() throws {
    let path = layout.pack(packs[0])
    try storage.memory.change(path) { $0[$0.count / 3] ^= 0xff }
    let index = CheckedIndex(try LoadedIndex.loadAll(from: repository.storage).objects)
    let sizes = try RepositoryListing.packSizes(repository.storage).filter { $0.key == packs[0] }
    var reads = 0
    for number in 1...100 {
      storage.fail([path], from: number)
      let check = RepositoryCheck(repository, reading: .everything, workers: 1)
      let verdicts = try PackCheck.Group(of: sizes, index, check).finish()
      if storage.failures == 0 { break }
      reads = number
      #expect(verdicts.count == 1, "read \(number)")
      #expect(verdicts.allSatisfy { $0.unread != nil && !$0.isComplete }, "read \(number)")
    }
    #expect(reads > 4 && reads < 100)
  }

  /// Each thread has at most one failed read before the check ends.
  @Test func theCheckEndsIfTheHostDoesNotAnswer() throws {
    storage.fail(packs.map { layout.pack($0) }, from: 1, endsHost: true)
    let error = storeError { try Checked(repository, .everything) }
    #expect(error?.kind == .failed && error?.reason == "the test says so", "\(error as Any)")
    #expect((1...2).contains(storage.failures), "\(storage.failures) failures")
  }

  /// A pack that cannot be read does not hide the damage of another one.
  @Test func damageOfOtherPacksIsReported() throws {
    storage.fail([layout.pack(packs[0])], from: 1)
    try storage.memory.change(layout.pack(packs[1])) { $0[$0.count / 3] ^= 0xff }
    let found = try Checked(repository, .everything)
    #expect(found.damaged == ["\(layout.pack(packs[1]))"])
    #expect(Array(found.costs.keys) == ["file2"])
    #expect(found.report.unreadable == 1)
  }

  /// The repair ends with the first failed read, and removes no pack.
  @Test func aRepairOfPacksEndsWithTheError() throws {
    try storage.memory.change(layout.pack(packs[1])) { $0[$0.count / 3] ^= 0xff }
    try RepositoryCheck(repository, reading: .everything, workers: 1).run().recordDamage()
    storage.fail([layout.pack(packs[1])], from: 1)
    let error = storeError { try PackRepair(repository).run() }
    #expect(error?.reason == "the test says so" && storage.failures == 1)
    #expect(try RepositoryListing.packs(storage).contains(packs[1]))
  }
}

/// Snapshots that a store fails to send. Since one of them may be the snapshot that the user wants,
/// it must not be silently skipped.
struct SnapshotOutageTests {
  private let storage = FailingStorage(MemoryStorage())
  private let repository: Repository
  private let layout = RepositoryLayout.tested
  private var stored: [StoredSnapshot] = []

  init() throws {
    repository = try Repository.create(in: storage, program: "test")
    for number in 1...20 {
      let files = [(name: "file", bytes: [UInt8(number)])]
      stored.append(try repository.back(up: files, sequence: UInt64(number)))
    }
  }

  /// The other snapshots are listed, but `latest` is an error, not an older snapshot.
  @Test func anOlderSnapshotIsNotUsedAsTheLatest() throws {
    let newest = try #require(stored.last)
    storage.fail([layout.snapshot(newest.id)], from: 1)
    let heads = try repository.heads()
    #expect(heads.heads.map(\.id) == stored.dropLast().map(\.id))
    #expect(heads.damaged.count == 1 && heads.damaged.allSatisfy(\.isStoreFailure))
    let latest = storeError { try repository.snapshot(matching: "latest") }
    for error in [storeError { try heads.requireSent() }, latest] {
      #expect(error?.reason == "the test says so" && error?.kind == .failed)
      #expect(error?.hint?.contains("by its id; if the store never sends this object") == true)
      #expect(error.map { "\($0)".contains("\(layout.snapshot(newest.id))") } == true)
    }
    // Commands for other snapshots still work.
    let others = Set(stored.dropLast().map(\.id))
    #expect(storeError { try heads.requireSent(others) } == nil)
    #expect(storeError { try heads.requireSent([newest.id]) }?.reason == "the test says so")
    let named = try repository.snapshot(matching: stored[3].id.hex)
    #expect(named == stored[3])
    storage.fail([], from: 1)
    #expect(try repository.snapshot(matching: "latest") == newest)
  }

  /// The snapshot's head is already known, but the snapshot itself is not sent.
  @Test func aSelectedSnapshotThatIsNotSentIsAnError() throws {
    let newest = try #require(stored.last)
    var heads = try repository.heads()
    storage.fail([layout.snapshot(newest.id)], from: 1)
    var skipped: [StoreError] = []
    let error = storeError {
      try repository.snapshot(among: &heads, skip: { skipped.append($0) }) {
        heads throws(StoreError) in
        try heads.latest(named: "latest")
      }
    }
    #expect(error?.reason == "the test says so" && skipped.isEmpty)
  }

  /// The listing ends early, and does not try every snapshot.
  @Test func theListingEndsIfTheHostDoesNotAnswer() throws {
    storage.fail(stored.map { layout.snapshot($0.id) }, from: 1, endsHost: true)
    let error = storeError { try repository.heads() }
    #expect(error?.reason == "the test says so" && storage.failures < 10)
  }

  @Test func aCheckListsThemAsUnreadable() throws {
    let path = layout.snapshot(stored[0].id)
    storage.fail([path], from: 1)
    let found = try Checked(repository, .trees)
    #expect(found.damaged.isEmpty && found.report.unreadable == 1 && found.report.hasOtherReasons)
    storage.fail([path], from: 1, endsHost: true)
    #expect(storeError { try Checked(repository, .trees) }?.reason == "the test says so")
  }
}

/// A storage on another host that fails to send some objects.
private final class FailingStorage: ForwardingStorage {
  let memory: MemoryStorage
  private let state = Mutex(State())

  private struct State {
    var paths: Set<ObjectPath> = []
    /// The number of reads of these objects that still succeed.
    var left = 0
    var failures = 0
    var endsHost = false
  }

  var base: any Storage { memory }

  init(_ memory: MemoryStorage) { self.memory = memory }

  /// nil, as for a storage on another host.
  func directoryIdentity() throws(StoreError) -> FileIdentity? { nil }

  /// Makes reads of some objects fail from the n-th on. With `endsHost`, requests for the status of
  /// any object fail as well after the first failure.
  func fail(_ paths: [ObjectPath], from number: Int, endsHost: Bool = false) {
    state.withLock { $0 = State(paths: Set(paths), left: number - 1, endsHost: endsHost) }
  }

  /// The number of reads that failed.
  var failures: Int { state.withLock(\.failures) }

  private func read(_ path: ObjectPath) throws(StoreError) {
    let fails = state.withLock { state in
      guard state.paths.contains(path) else { return false }
      state.left -= 1
      if state.left < 0 { state.failures += 1 }
      return state.left < 0
    }
    if fails { throw Self.failure("\(path)") }
  }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try read(path)
    return try memory.load(path, limit: limit)
  }

  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try read(path)
    try memory.load(path, offset: offset, count: count, into: &buffer)
  }

  func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    let isDown = state.withLock { $0.endsHost && $0.failures > 0 }
    if isDown { throw Self.failure("\(path)") }
    return try memory.status(path)
  }

  private static func failure(_ subject: String) -> StoreError {
    StoreError(.system, "read", subject: subject, reason: "the test says so")
  }
}
