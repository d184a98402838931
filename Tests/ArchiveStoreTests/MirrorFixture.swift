import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A repository in memory with snapshots of two sources, and the storage of its mirror.
struct MirrorFixture {
  var source: PruneFixture
  let memory: MemoryStorage
  let storage: WatchedStorage

  init() throws {
    source = try PruneFixture()
    let clock = source.clock
    memory = MemoryStorage(name: "mirror", clock: { clock.now })
    storage = WatchedStorage(memory)
    for start in 0..<4 { try source.backUp(PruneFixture.files((2 * start)..<(2 * start + 6))) }
    try source.repository.pin([source.snapshots[0].stored.id])
  }

  private init(copying other: MirrorFixture) throws {
    source = try other.source.copy()
    memory = other.memory.copy()
    storage = WatchedStorage(memory)
  }

  /// Returns an independent fixture with the same content.
  func copied() throws -> MirrorFixture { try MirrorFixture(copying: self) }

  func mirror(
    dry: Bool = false, allowingLargeRemoval allows: Bool = false, workers: Int = 1,
    from repository: Repository? = nil, isStopping: @escaping @Sendable () -> Bool = { false }
  ) throws -> RepositoryMirror.Report {
    try RepositoryMirror(
      of: repository ?? source.repository, in: storage, isDry: dry, allowsLargeRemoval: allows,
      workers: workers, isStopping: isStopping
    ).run()
  }

  /// Removes a snapshot from the mirror, as a forget there would.
  func forgetInMirror(_ number: Int) throws {
    try memory.remove(RepositoryLayout.tested.snapshot(source.snapshots[number].stored.id))
  }

  /// Expects that the mirror has the same objects as the repository.
  func expectExact(_ comment: Comment? = nil) throws {
    var mirrored = try memory.objects()
    #expect(mirrored.removeValue(forKey: "mirror.json") != nil, comment)
    // Packs that were moved to `damaged` are not mirrored.
    let original = try source.objects().filter { path, _ in
      !path.hasPrefix("damaged/") || path.hasSuffix(".json")
    }
    #expect(Set(mirrored.keys) == Set(original.keys), comment)
    for (path, bytes) in original { #expect(mirrored[path] == bytes, "\(path)") }
  }

  /// Returns the files of the mirror's snapshots that cannot be read.
  func lost() throws -> [String] {
    guard try memory.status(RepositoryLayout.settings) != nil else { return [] }
    let repository = try Repository.open(memory)
    let reader = try repository.beginReading()
    var lost: [String] = []
    for stored in try repository.snapshots().snapshots {
      try reader.walk(stored.snapshot.tree) { path, entry in
        if case .file(let content) = entry.node, (try? reader.bytes(of: content)) == nil {
          lost.append("\(stored.id.hex.prefix(8)): \(path)")
        }
        return .enter
      }
    }
    return lost
  }

  /// The number of the mirror's snapshots.
  func snapshots() throws -> Int {
    try memory.listIfPresent(RepositoryLayout.snapshots)?.count ?? 0
  }

  /// Returns the damage that a check of all data finds in the mirror.
  func damage() throws -> [RepositoryCheck.Finding] {
    try Checked(Repository.open(memory), .everything).findings.filter(\.isDamage)
  }
}
