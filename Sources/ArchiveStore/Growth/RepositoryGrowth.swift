public import SystemIO

/// The growth of a repository from snapshot to snapshot: the data that each snapshot added, and the
/// data that only it needs.
///
/// A blob belongs to the oldest snapshot that needs it, and in it to the first path found. The
/// stored size of a blob is its share, by length, of the frame that holds it; the tables of packs,
/// index objects and snapshots are not counted.
public struct RepositoryGrowth: Sendable {
  /// An amount of distinct blobs.
  public struct Amount: Sendable, Hashable {
    public var blobs = 0
    /// Their bytes before compression.
    public var bytes: UInt64 = 0
    /// Their stored bytes.
    public var stored: UInt64 = 0

    /// Creates an empty amount.
    public init() {}

    /// Adds another amount.
    public mutating func add(_ other: Amount) {
      blobs += other.blobs
      bytes.addClamping(other.bytes)
      stored.addClamping(other.stored)
    }
  }

  /// The data of an app, group or directory in a data class.
  public struct Part: Sendable, Hashable {
    /// The first two components of the paths: `apps/com.example.app`.
    public let owner: ByteString
    /// The data class; `directories` for trees.
    public let dataClass: String
    public fileprivate(set) var amount: Amount
  }

  /// The growth by one snapshot.
  public struct Row: Sendable {
    public let head: SnapshotHead
    /// The data that no older snapshot needs.
    public internal(set) var added = Amount()
    /// The parts of it, by owner and class.
    public internal(set) var parts: [Part] = []
    /// The data that no other snapshot needs: a prune frees it after this snapshot is removed.
    public internal(set) var alone = Amount()
  }

  /// The snapshots, the oldest first.
  public internal(set) var rows: [Row] = []
  /// The errors of snapshots that cannot be read and are not counted.
  public internal(set) var damaged: [StoreError] = []
  /// The trees and lists that cannot be read. What only they need is not counted.
  public internal(set) var unreadable = 0
  /// The blobs that snapshots need and that no usable index object names.
  public internal(set) var lostBlobs = 0
  /// Whether this user may not read some index objects, which may name these blobs.
  public internal(set) var isIndexRefused = false
  /// The index objects that cannot be used. Blobs that only they name are not counted.
  public internal(set) var uncountedIndexes = 0

  /// The data of all snapshots.
  public var total: Amount {
    rows.reduce(into: Amount()) { $0.add($1.added) }
  }

  /// The data of all snapshots by owner and class.
  public var parts: [Part] {
    var amounts: [PartKey: Amount] = [:]
    for part in rows.lazy.flatMap(\.parts) {
      amounts[PartKey(owner: part.owner, dataClass: part.dataClass), default: Amount()]
        .add(part.amount)
    }
    return Self.parts(amounts)
  }

  /// The owner and class of a part.
  struct PartKey: Hashable {
    let owner: ByteString
    let dataClass: String
  }

  /// Returns amounts as parts, ordered by owner and class.
  static func parts(_ amounts: [PartKey: Amount]) -> [Part] {
    amounts.map { Part(owner: $0.owner, dataClass: $0.dataClass, amount: $1) }
      .sorted { ($0.owner, $0.dataClass) < ($1.owner, $1.dataClass) }
  }

  /// The class of trees.
  static let directories = "directories"
}

extension Repository {
  /// Returns the growth of the repository over its snapshots. Each distinct tree is read once,
  /// under a reader's lease if the repository can be written to.
  ///
  /// Memory: 12 bytes for each entry of the index and 8 for each reference of a distinct tree,
  /// which can leave memory, and the parts of each snapshot.
  ///
  /// - Parameters:
  ///   - watch: counts the snapshots.
  ///   - report: receives each tree or list that cannot be read, with a path that leads to it.
  public func growth(
    of snapshots: SnapshotHeads, cache: IndexCache? = nil, watch: ReadingWatch? = nil,
    unreadable report: (ByteString, StoreError) -> Void
  ) throws -> RepositoryGrowth {
    let lease = ReaderLease.ifPossible(self)
    if let lease { watch?.hold(lease) }
    var index = PruneIndex()
    let condemned = try CondemnedObjects(storage).packs
    let sizes = try RepositoryListing.packSizes(storage)
    let loaded = try LoadedIndex.loadAll(from: storage, cache: cache)
    for object in loaded.objects {
      try index.add(object) { pack throws(StoreError) in
        guard let size = sizes[pack.id] else { return .missing }
        return condemned.contains(pack.id) ? .condemned : size == pack.size ? .reliable : .damaged
      }
    }
    watch?.counters.expect(files: snapshots.heads.count, bytes: 0)
    var growth = RepositoryGrowth()
    growth.damaged = snapshots.damaged + loaded.faults.map(\.error)
    growth.uncountedIndexes = loaded.unusable.count
    growth.isIndexRefused = loaded.faults.contains { $0.error.isRefused }
    let reader = try beginReading(cache: cache, lease: lease)
    var walk = GrowthWalk(reader, index)
    for head in snapshots.heads {
      try walk.add(head, to: &growth, watch: watch, unreadable: report)
      watch?.counters.didHandle(files: 1)
    }
    walk.findAlone(&growth)
    return growth
  }
}
