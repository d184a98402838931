import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Two repositories in memory, the first one with snapshots.
struct CopyFixture {
  var source: PruneFixture
  var target: PruneFixture

  /// Three snapshots of overlapping files, and an empty target.
  init() throws {
    (source, target) = (try PruneFixture(), try PruneFixture())
    try source.backUp(PruneFixture.files(0..<6))
    try source.backUp(PruneFixture.files(4..<9))
    try source.backUp(PruneFixture.files(20..<24))
  }

  private init(copying other: CopyFixture) throws {
    (source, target) = (try other.source.copy(), try other.target.copy())
  }

  /// Returns an independent fixture with the same content.
  func copied() throws -> CopyFixture { try CopyFixture(copying: self) }

  func copy(
    _ ids: Set<SnapshotID>? = nil, dry: Bool = false, check: Bool = false, workers: Int = 1,
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) throws -> RepositoryCopy.Report {
    try Self.copy(
      source.repository, target.repository, ids, dry: dry, check: check, workers: workers,
      isStopping: isStopping)
  }

  /// - Parameter timing: the timing of the wait for other copies. By default no copy is waited for,
  /// since the lease of a copy that a test has stopped looks alive.
  static func copy(
    _ source: Repository, _ target: Repository, _ ids: Set<SnapshotID>? = nil, dry: Bool = false,
    check: Bool = false, workers: Int = 1, onWait: @escaping ([LeaseStatus]) -> Void = { _ in },
    timing: CopyTurn.Timing = CopyTurn.Timing(patience: 0),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) throws -> RepositoryCopy.Report {
    var copy = RepositoryCopy(
      from: RepositoryCopy.Side(source), to: RepositoryCopy.Side(target), isDry: dry,
      isChecking: check, workers: workers, isStopping: isStopping)
    (copy.timing, copy.onWait) = (timing, onWait)
    return try copy.run { ids?.contains($0.id) ?? true }
  }

  /// Returns the files of the target's snapshots that differ from those of the source.
  func differences() throws -> [String] {
    let repository = try Repository.open(target.memory)
    let reader = try repository.beginReading()
    var differences: [String] = []
    for stored in try repository.snapshots().snapshots {
      guard
        let original = source.snapshots.first(where: {
          $0.stored.snapshot.tree == stored.snapshot.tree
        })
      else {
        differences.append("\(stored.id) has no original")
        continue
      }
      for (name, bytes) in original.files
      where (try? reader.bytes(at: ByteString(name), in: stored)) != bytes {
        differences.append("\(stored.id): \(name)")
      }
    }
    return differences
  }

  /// The target's snapshots, the oldest first.
  func copies() throws -> [StoredSnapshot] {
    try Repository.open(target.memory).snapshots().snapshots
  }

  /// Expects complete copies of `count` snapshots, and an intact target.
  func expectComplete(_ count: Int, _ comment: Comment? = nil) throws {
    #expect(try copies().count == count, comment)
    let differences = try differences()
    #expect(differences.isEmpty, "\(differences) \(comment?.rawValue ?? "")")
    let findings = try target.damage()
    #expect(findings.isEmpty, "\(findings) \(comment?.rawValue ?? "")")
  }
}

extension PruneFixture {
  /// Returns the damage that a check of all data finds.
  func damage() throws -> [RepositoryCheck.Finding] { try findings().filter(\.isDamage) }

  /// Returns the compressed bytes of all frames with blobs.
  func frames() throws -> Set<[UInt8]> {
    var frames: Set<[UInt8]> = []
    for (pack, size) in try RepositoryListing.packSizes(memory) {
      let bytes = try memory.content(RepositoryLayout.tested.pack(pack))
      let tables = try PackTables.load(pack, size: size, from: memory)
      for frame in tables.frames.dropLast() {
        frames.insert(Array(bytes[Int(frame.offset)..<(Int(frame.offset) + Int(frame.stored))]))
      }
    }
    return frames
  }

  /// The pack that contains the file of a number.
  func pack(ofFile number: Int) throws -> Digest {
    let bytes = PruneFixture.files(number..<(number + 1))[0].bytes
    let blob = BlobID(kind: .data, digest: Blake2b.hash(bytes))
    return try #require(try Repository.open(memory).beginReading().locate(blob)?.pack)
  }

  /// The pack with the tree of a snapshot.
  func pack(ofTree number: Int) throws -> Digest {
    let blob = BlobID(kind: .tree, digest: snapshots[number].stored.snapshot.tree.digest)
    return try #require(try Repository.open(memory).beginReading().locate(blob)?.pack)
  }

  func flip(_ pack: Digest) throws {
    try memory.change(RepositoryLayout.tested.pack(pack)) { $0[200] ^= 0xff }
  }

  /// The packs from which ranges were read since the events were cleared.
  func packsRead() -> Set<String> {
    Set(
      storage.state.withLock { state in
        state.events.filter { $0.hasPrefix("range packs/") }
      })
  }
}

/// A storage that cannot be written to.
final class ReadOnlyStorage: ForwardingStorage {
  let base: any Storage

  init(_ base: any Storage) { self.base = base }

  private var refusal: StoreError {
    StoreError(.system, "write to", subject: location, reason: "it is read-only")
  }

  func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    throw refusal
  }

  func makeDirectories(_ names: [ByteString], in directory: ObjectPath) throws(StoreError) {
    throw refusal
  }

  func touch(_ path: ObjectPath) throws(StoreError) { throw refusal }

  func touch(_ paths: [ObjectPath]) throws(StoreError) { if !paths.isEmpty { throw refusal } }

  func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool { throw refusal }

  func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) { throw refusal }

  func remove(_ path: ObjectPath) throws(StoreError) { throw refusal }

  func remove(_ paths: [ObjectPath]) throws(StoreError) { if !paths.isEmpty { throw refusal } }
}

extension RepositoryCheck.Finding {
  /// Whether this is not just a remark, which is about a lease or a pack left by a program.
  var isDamage: Bool { if case .remark = self { false } else { true } }
}

/// Selects one of the calls of a closure.
final class OneCall: Sendable {
  private let rest: Mutex<Int>

  /// Selects the call of a number, counted from 1.
  init(_ number: Int = 1) { rest = Mutex(number) }

  /// Counts a call, and returns whether it is the selected one.
  func take() -> Bool {
    rest.withLock { rest in
      rest -= 1
      return rest == 0
    }
  }

  /// Whether the call has been made.
  var isTaken: Bool { rest.withLock { $0 <= 0 } }
}
