import Codecs
import Synchronization
import SystemIO
import TestSupport

@testable import ArchiveStore

/// A repository in an object store, and the programs that use it. Each program has its own
/// connection, which a test can interrupt or inspect.
struct ObjectStoreFixture {
  let store: MemoryObjectStorage
  /// The snapshots that were reported as complete, with their files.
  var snapshots: [(stored: StoredSnapshot, files: [(name: String, bytes: [UInt8])])] = []

  init(canCreateExclusively: Bool = true) throws {
    let clock = TestClock()
    store = MemoryObjectStorage(
      canCreateExclusively: canCreateExclusively, clock: { clock.now })
    _ = try Repository.create(in: store, program: "test")
  }

  /// A repository in which a prune removes some packs and rewrites others.
  static func withUnusedPacks(canCreateExclusively: Bool = true) throws -> ObjectStoreFixture {
    var fixture = try ObjectStoreFixture(canCreateExclusively: canCreateExclusively)
    for range in [0..<6, 4..<9, 20..<24, 20..<22] { try fixture.backUp(PruneFixture.files(range)) }
    try fixture.forget(2)
    try fixture.forget(0)
    return fixture
  }

  private init(copying other: ObjectStoreFixture) {
    (store, snapshots) = (other.store.copy(), other.snapshots)
  }

  /// Returns an independent fixture with the same content.
  func copy() -> ObjectStoreFixture { ObjectStoreFixture(copying: self) }

  /// Returns the repository, through a connection without faults.
  func open() throws -> Repository { try Repository.open(store) }

  mutating func backUp(_ files: [(name: String, bytes: [UInt8])]) throws {
    let stored = try open().back(up: files, sequence: UInt64(snapshots.count + 1))
    snapshots.append((stored, files))
  }

  /// Removes the snapshot with this number.
  mutating func forget(_ number: Int) throws {
    let id = snapshots.remove(at: number).stored.id
    _ = try SnapshotRemoval(open()).run([id]) { _ in }
  }

  @discardableResult
  func prune() throws -> RepositoryPrune.Report {
    try RepositoryPrune(open(), PruneRequest()).run()
  }

  /// Prunes after the leases of ended programs have expired, and again after these leases are due
  /// for removal.
  @discardableResult
  func pruneLater() throws -> RepositoryPrune.Report {
    for seconds in [3700.0, 90_000] {
      store.advance(by: seconds)
      try prune()
    }
    return try prune()
  }

  /// Returns the names of the files that cannot be read completely, with their snapshots.
  func lost() throws -> [String] {
    let repository = try open()
    let reader = try repository.beginReading()
    let listed = Set(try RepositoryListing.snapshots(repository.storage))
    var lost: [String] = []
    for (number, snapshot) in snapshots.enumerated() {
      if !listed.contains(snapshot.stored.id) { lost.append("snapshot \(number)") }
      for (name, bytes) in snapshot.files
      where (try? reader.bytes(at: ByteString(name), in: snapshot.stored)) != bytes {
        lost.append("\(number): \(name)")
      }
    }
    return lost
  }

  /// Returns the findings of a check of all data, except remarks.
  func damage() throws -> [RepositoryCheck.Finding] {
    try Checked(open(), .everything).findings.filter(\.isDamage)
  }

  func names(_ directory: ObjectPath) throws -> [ByteString] { try store.list(directory) }
}

/// A program that uses a repository in an object store.
struct ObjectStoreProgram {
  let connection: WatchedStorage
  let repository: Repository

  init(_ store: MemoryObjectStorage) throws {
    connection = WatchedStorage(store)
    repository = try Repository.open(connection)
  }

  /// Stores files, without a snapshot.
  func store(
    _ files: [(name: String, bytes: [UInt8])], _ session: WritingSession
  ) throws -> TreeReference {
    let writer = try session.makeWriter()
    var entries: [TreeEntry] = []
    for file in files {
      let content = try writer.storeFile(
        logicalPath: ByteString("folders/test/" + file.name), bytes: file.bytes)
      entries.append(TreeEntry(name: ByteString(file.name), node: .file(content)))
    }
    try writer.flush()
    return try session.storeTree(entries)
  }

  /// Calls `body` once, before the request with this number, counted from now.
  func interrupt(at number: Int, _ body: @escaping @Sendable () -> Void) -> OneCall {
    let call = OneCall(number)
    connection.state.withLock { $0.action = { _ in if call.take() { body() } } }
    return call
  }

  func endInterruption() { connection.state.withLock { $0.action = nil } }
}
