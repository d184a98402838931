internal import Codecs

/// Finds the blobs that snapshots need, and the snapshots that need blobs which no intact pack has.
struct SnapshotNeedsSearch {
  private let repository: Repository
  private let cache: IndexCache?
  private let threads: Int
  private let isStopping: @Sendable () -> Bool
  private let snapshot: (SnapshotID) throws -> StoredSnapshot
  private var readable: ReadableIndex
  private var isRescued = false
  private(set) var search: UsedBlobSearch
  /// Whether packs that no index object names contain something that snapshots need: an index
  /// object is lost.
  private(set) var needsUnindexedPacks = false

  private static let action = "find what the snapshots need in"

  /// Prepares a search with `threads` threads. Without a cache the index objects of the repository
  /// are read, not this host's copies.
  ///
  /// - Parameter snapshot: reads a snapshot, which may not be in the repository yet.
  init(
    _ repository: Repository, cache: IndexCache?, threads: Int,
    isStopping: @escaping @Sendable () -> Bool,
    snapshot: @escaping (SnapshotID) throws -> StoredSnapshot
  ) throws(StoreError) {
    self.snapshot = snapshot
    (self.repository, self.cache, self.threads) = (repository, cache, threads)
    self.isStopping = isStopping
    readable = try ReadableIndex(repository, cache: cache)
    search = UsedBlobSearch(
      repository, readable.index, for: Self.action, threads: threads, continuesPastDamage: true,
      isStopping: isStopping)
  }

  /// Starts over without marks.
  private mutating func restart() {
    search = UsedBlobSearch(
      repository, readable.index, for: Self.action, threads: threads, continuesPastDamage: true,
      isStopping: isStopping)
  }

  /// The errors of index objects that cannot be used.
  var faults: [StoreError] { readable.faults }

  /// Finds what snapshots need. Returns those that need lost data: what the others need is then
  /// marked. Before anything counts as lost, the index is loaded again, with the packs that it does
  /// not name.
  ///
  /// - Parameter others: snapshots whose needs are marked as far as they are not lost.
  /// - Throws: `interrupted`, and failures of the storage; the refusal if this user may not read a
  ///   pack that may hold what seems lost.
  mutating func mark(
    _ heads: [SnapshotHead], andWhatIsLeftOf others: [SnapshotHead] = []
  ) throws -> [IncompleteSnapshot] {
    var incomplete: [IncompleteSnapshot] = []
    var rest = heads
    while true {
      try search.mark(Set(rest.map(\.tree)))
      if isWhole {
        try search.mark(Set(others.map(\.tree)))
        if isWhole || isRescued {
          if isWhole && incomplete.isEmpty && faults.isEmpty {
            needsUnindexedPacks = try readable.hasUnindexedPacks && !isIndexed(heads + others)
          }
          return incomplete
        }
      } else if isRescued {
        if let refusal { throw refusal }
        let found = try self.incomplete(rest)
        guard !found.isEmpty else {
          throw StoreError(
            .damaged, Self.action, subject: repository.location,
            reason: "it changed while it was read", hint: "run the command again")
        }
        incomplete += found
        let ids = Set(found.map(\.head.id))
        rest.removeAll { ids.contains($0.id) }
      }
      if !isRescued {
        readable = try ReadableIndex(repository, cache: cache, isRescuing: true)
        isRescued = true
      }
      restart()
    }
  }

  /// Whether the current index objects name everything that snapshots need. A prune may have
  /// written new ones since they were loaded.
  private func isIndexed(_ heads: [SnapshotHead]) throws -> Bool {
    let now = try ReadableIndex(repository, cache: cache)
    var search = UsedBlobSearch(
      repository, now.index, for: Self.action, threads: threads, continuesPastDamage: true,
      isStopping: isStopping)
    try search.mark(Set(heads.map(\.tree)))
    return search.lost.isEmpty && search.unreadable.isEmpty
  }

  /// Whether nothing that was marked so far is lost.
  private var isWhole: Bool { search.lost.isEmpty && search.unreadable.isEmpty }

  /// The error of a pack that this user may not read, if an unindexed blob may be in it.
  private var refusal: StoreError? {
    guard let refusal = readable.refusal else { return nil }
    let lost = search.unreadable.union(search.lost.map { BlobID(kind: .data, digest: $0) })
    let areNamed = lost.allSatisfy { blob in
      search.index.objects.contains { !$0.findAll(blob).isEmpty }
    }
    return areNamed ? nil : refusal
  }

  /// Removes the marks of blobs for which `isSelected` returns false.
  mutating func filter(_ isSelected: (BlobRecord) -> Bool) { search.filter(isSelected) }

  /// Returns the snapshots that need a blob which no intact pack has, or one of the given blobs.
  ///
  /// - Parameter errors: the errors of the packs of these blobs.
  func incomplete(
    _ heads: [SnapshotHead], besides lost: Set<BlobID> = [], because errors: [StoreError] = []
  ) throws -> [IncompleteSnapshot] {
    // With other damage it is not determined which of the snapshots it affects.
    let needsOlderKey =
      search.lost.isEmpty && !search.hasDamage && errors.allSatisfy(\.needsOlderKey)
    var checked = CheckedIndex(search.index.objects)
    checked.lostPacks = search.index.packs(in: .missing)
    for blob in lost.union(search.lost.map { BlobID(kind: .data, digest: $0) }) {
      for object in search.index.objects {
        for record in object.findAll(blob) {
          checked.lostCopies.insert(
            CheckedIndex.BlobCopy(blob: blob, pack: object.pack(Int(record.pack)).id))
        }
      }
    }
    let reader = try checked.reader(of: repository)
    var trees = TreeRepair(reader, checked, into: nil) { [isStopping] () throws(StoreError) in
      if isStopping() { throw .interrupted("finish reading", "the trees", hint: "run it again") }
    }
    var incomplete: [IncompleteSnapshot] = []
    for head in heads {
      guard
        let found = try IncompleteSnapshot(
          head, &trees, needsOlderKey: needsOlderKey, read: snapshot)
      else { continue }
      incomplete.append(found)
    }
    return incomplete
  }
}
