import Codecs
import Synchronization
import SystemIO
import TestSupport

@testable import ArchiveStore

/// A repository in memory, with a clock that tests control, and the files of each of its snapshots.
struct PruneFixture {
  let memory: MemoryStorage
  let storage: WatchedStorage
  let repository: Repository
  let clock: TestClock
  /// The snapshots that were made, with their files.
  var snapshots: [(stored: StoredSnapshot, files: [(name: String, bytes: [UInt8])])] = []

  init() throws {
    let clock = TestClock()
    memory = MemoryStorage(clock: { clock.now })
    (self.clock, storage) = (clock, WatchedStorage(memory))
    repository = try Repository.create(in: storage, program: "test")
  }

  /// A repository in which a prune removes some packs and rewrites others.
  static func withUnusedPacks() throws -> PruneFixture {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<6))
    try fixture.backUp(PruneFixture.files(4..<9))
    try fixture.backUp(PruneFixture.files(20..<24))
    try fixture.backUp(PruneFixture.files(20..<22))
    try fixture.forget(2)
    try fixture.forget(0)
    return fixture
  }

  private init(copying other: PruneFixture) throws {
    (clock, snapshots) = (other.clock, other.snapshots)
    memory = other.memory.copy()
    storage = WatchedStorage(memory)
    repository = try Repository.open(storage)
  }

  /// Returns an independent fixture with the same content.
  func copy() throws -> PruneFixture { try PruneFixture(copying: self) }

  /// Files of random bytes, each of which is one blob.
  static func files(_ numbers: Range<Int>, size: Int = 2000) -> [(name: String, bytes: [UInt8])] {
    numbers.map { ("file-\($0)", SeededBytes.some(seed: UInt64($0), count: size)) }
  }

  mutating func backUp(_ files: [(name: String, bytes: [UInt8])]) throws {
    let stored = try repository.back(up: files, sequence: UInt64(snapshots.count + 1))
    snapshots.append((stored, files))
  }

  /// Removes the snapshot with this number, as forget does.
  mutating func forget(_ number: Int) throws {
    try memory.remove(RepositoryLayout.tested.snapshot(snapshots.remove(at: number).stored.id))
  }

  func prune(
    _ request: PruneRequest = PruneRequest(), workers: Int = 1,
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) throws -> RepositoryPrune.Report {
    try RepositoryPrune(repository, request, workers: workers, isStopping: isStopping).run()
  }

  func plan(_ request: PruneRequest = PruneRequest()) throws -> RepositoryPrune.Report {
    try RepositoryPrune(repository, request).plan(at: clock.now)
  }

  /// Returns the names of the files that cannot be read completely, with their snapshots.
  func lost() throws -> [String] {
    let reader = try Repository.open(memory).beginReading()
    var lost: [String] = []
    for (number, snapshot) in snapshots.enumerated() {
      for (name, bytes) in snapshot.files
      where (try? reader.bytes(at: ByteString(name), in: snapshot.stored)) != bytes {
        lost.append("\(number): \(name)")
      }
    }
    return lost
  }

  /// Returns the findings of a check of all data.
  func findings() throws -> [RepositoryCheck.Finding] {
    try Checked(Repository.open(memory), .everything).findings
  }

  func packs() throws -> Set<Digest> { try RepositoryListing.packs(memory) }

  func storedBytes() throws -> UInt64 {
    try RepositoryListing.packSizes(memory).values.reduce(0, +)
  }

  /// Returns the members of all packs with their contents.
  func members() throws -> [String: [UInt8]] {
    var members: [String: [UInt8]] = [:]
    for (pack, size) in try RepositoryListing.packSizes(memory) {
      var decompressor = try ZstdDecompressor()
      let bytes = try memory.content(RepositoryLayout.tested.pack(pack))
      let tables = try PackTables.load(pack, size: size, from: memory)
      var plain: [UInt8] = []
      for frame in tables.frames {
        let start = Int(frame.offset)
        plain += try decompressor.decompress(
          Array(bytes[start..<(start + Int(frame.stored))]), limit: Int(frame.plain))
      }
      for (member, content) in try TarReader.members(of: plain) {
        members[ByteString(member.path).description] = content
      }
    }
    return members
  }
}

/// The clock of a storage.
final class TestClock: Sendable {
  private let offset = Mutex(0.0)
  private static let start: Int64 = 1_795_000_000

  var now: Timestamp { Timestamp(seconds: Self.start + Int64(offset.withLock { $0 })) }

  func advance(by seconds: Double) { offset.withLock { $0 += seconds } }
}
