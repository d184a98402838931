internal import Codecs
public import SystemIO

/// The content of a repository's snapshots and the space that stores them.
public struct RepositoryStatistics: Sendable {
  public var snapshots = 0
  /// The errors of snapshots that cannot be read and are not counted.
  public var unreadable: [StoreError] = []
  /// The times of the oldest and the newest snapshot; nil without snapshots.
  public var oldest: Timestamp?
  public var newest: Timestamp?
  /// The files of all snapshots and their bytes, counted once for each snapshot.
  public var files: UInt64 = 0
  public var bytes: UInt64 = 0
  /// The distinct blobs of each kind and their bytes.
  public var data = BlobTotals()
  public var trees = BlobTotals()
  public var lists = BlobTotals()
  /// The packs and their stored bytes.
  public var packs = 0
  public var packBytes: UInt64 = 0
  /// The bytes of index objects and of snapshots.
  public var indexBytes: UInt64 = 0
  public var snapshotBytes: UInt64 = 0
  /// The errors of damaged index objects, and of those that this user may not read.
  public var damagedIndexes: [StoreError] = []
  /// Those that have no intact copy on this host: blobs that only they name are not counted.
  public var uncountedIndexes: [StoreError] = []
  /// The number of packs that index objects name and that do not exist.
  public var missingPacks = 0

  /// A number of blobs and their bytes.
  public struct BlobTotals: Sendable, Hashable {
    public var count = 0
    public var bytes: UInt64 = 0

    mutating func count(_ record: BlobRecord) {
      count += 1
      bytes += UInt64(record.length)
    }
  }

  /// The bytes in snapshots for each distinct byte; 1 if there is none.
  public var deduplication: Double { Self.ratio(bytes, data.bytes) }

  /// The bytes of distinct blobs for each stored byte; 1 if there is none.
  public var compression: Double {
    Self.ratio(data.bytes + trees.bytes + lists.bytes, packBytes)
  }

  private static func ratio(_ whole: UInt64, _ part: UInt64) -> Double {
    part == 0 ? 1 : Double(whole) / Double(part)
  }
}

extension Repository {
  /// Counts the content of the snapshots and the stored objects. Reads the index, through this
  /// host's copies if there is a cache. `watch` counts the index entries.
  public func statistics(
    of snapshots: SnapshotHeads, cache: IndexCache? = nil, watch: ReadingWatch? = nil
  ) throws(StoreError) -> RepositoryStatistics {
    var statistics = RepositoryStatistics()
    statistics.unreadable = snapshots.damaged
    statistics.count(snapshots.heads)
    let inventory = try RepositoryInventory(storage)
    statistics.packs = inventory.packs.count
    statistics.packBytes = inventory.packs.values.clampedSum
    statistics.snapshotBytes =
      try RepositoryListing.snapshotStatuses(storage).values.lazy.map(\.size).clampedSum
    if !inventory.indexes.isEmpty {
      // One listing: a store of objects can have thousands.
      let sizes = try RepositoryListing.indexesWithSizes(storage).sizes
      statistics.indexBytes =
        inventory.indexes.lazy.compactMap { sizes[storage.layout.index($0)] }.clampedSum
    }
    let index = try LoadedIndex.load(inventory.indexes, from: storage, cache: cache)
    try statistics.count(index.objects, watch)
    statistics.damagedIndexes = index.faults.map(\.error)
    statistics.uncountedIndexes = index.unusable
    statistics.missingPacks = try missingPacks(of: index, besides: inventory, cache: cache).count
    return statistics
  }

  /// Returns the packs that index objects name and that do not exist. Looks again if there are any,
  /// because another program may have removed them after the index was listed.
  private func missingPacks(
    of index: LoadedIndex, besides inventory: RepositoryInventory, cache: IndexCache?
  ) throws(StoreError) -> Set<Digest> {
    var missing = index.packs.subtracting(inventory.packs.keys)
    if missing.isEmpty { return missing }
    // A prune on a full volume removes packs before it removes them from the index.
    missing.subtract(try CondemnedObjects(storage).packs)
    let now = try RepositoryInventory(storage)
    missing.formIntersection(
      try LoadedIndex.load(now.indexes, from: storage, cache: cache, known: index.objects).packs)
    return missing.subtracting(now.packs.keys)
  }
}

extension RepositoryStatistics {
  fileprivate mutating func count(_ all: [SnapshotHead]) {
    snapshots = all.count
    (oldest, newest) = (all.first?.time, all.last?.time)
    for snapshot in all {
      files.addClamping(snapshot.totals.files)
      bytes.addClamping(snapshot.totals.bytes)
    }
  }

  fileprivate mutating func count(
    _ objects: [IndexObject], _ watch: ReadingWatch?
  ) throws(StoreError) {
    watch?.counters.expect(files: objects.reduce(0) { $0 + $1.blobs }, bytes: 0)
    for (number, object) in objects.enumerated() {
      var last: BlobID?
      for entry in 0..<object.blobs {
        try watch?.checkCancellation()
        watch?.counters.didHandle(files: 1)
        guard let record = object.record(entry), record.id != last else { continue }
        last = record.id
        // It was counted with an earlier object that has the blob.
        if objects[..<number].contains(where: { $0.find(record.id) != nil }) { continue }
        switch record.kind {
        case .data: data.count(record)
        case .tree: trees.count(record)
        case .list: lists.count(record)
        }
      }
    }
  }
}
