internal import Codecs
internal import SystemIO

/// The needs of a repository's snapshots, kept up to date while other programs add snapshots.
struct SnapshotNeeds {
  private let repository: Repository
  /// The work that needs the result, as the words after "cannot" in an error.
  private let action: String
  private let cache: IndexCache?
  private let headCache: SnapshotHeadCache?
  /// The snapshots that count as removed.
  private var removed: Set<SnapshotID>
  private(set) var packSizes: [Digest: UInt64]
  private let damagedPacks: Set<Digest>
  private var condemned: Set<Digest>
  /// The condemned objects that were listed first.
  let condemnedObjects: [Digest: CondemnedObject]
  /// The errors of damaged condemned objects. The packs that they name count as not condemned.
  let damagedCondemned: [StoreError]
  /// The trees of the snapshots whose needs are known.
  private var trees: Set<TreeReference> = []
  var search: UsedBlobSearch
  /// The leases that were held after the packs and before the index was listed.
  private(set) var leases: [LeaseStatus]
  /// The number of snapshots.
  private(set) var snapshots = 0

  /// Finds what all snapshots need, for the work that errors name as `action`.
  ///
  /// - Parameter counters: counts the trees that are read.
  /// - Throws: `StoreError`: `damaged` or `missing` if the index, a snapshot or a tree cannot be
  ///   read, or if a pack that the index names does not exist.
  init(
    _ repository: Repository, for action: String, without removed: Set<SnapshotID> = [],
    cache: IndexCache?, headCache: SnapshotHeadCache?, threads: Int,
    counters: ProgressCounters? = nil, isStopping: @escaping @Sendable () -> Bool
  ) throws {
    (self.repository, self.cache, self.headCache) = (repository, cache, headCache)
    (self.action, self.removed) = (action, removed)
    let objects = try CondemnedObjects(repository.storage)
    (condemned, condemnedObjects) = (objects.packs, objects.objects)
    // The packs of a damaged one count as usable, but another program may be about to remove them.
    if !objects.damaged.isEmpty, try !repository.storage.leases.sleepingRemovers().isEmpty {
      throw PruneLease.sleeping(action, repository.location)
    }
    damagedCondemned = objects.damaged.map {
      $0.error.hinting("the next backup or prune removes it")
    }
    damagedPacks = Set(try DamageRecords(repository.storage).complete().packs.keys)
    packSizes = try RepositoryListing.packSizes(repository.storage)
    leases = try repository.leases()
    search = UsedBlobSearch(
      repository, PruneIndex(), for: action, threads: threads, isStopping: isStopping)
    search.counters = counters
    try update()
    // Later searches are a part of other work.
    search.counters = nil
  }

  /// Adds index objects and snapshots that were added meanwhile. The snapshots are listed first,
  /// because the index that one of them needs is durable before it.
  mutating func update() throws {
    // First: a snapshot that is committed meanwhile is in the listing.
    let pending = try pendingTrees()
    let listing = try repository.heads(cache: headCache)
    if let error = listing.damaged.first {
      // The error of an undamaged snapshot, for example of a newer version, has its own hint.
      guard error.kind == .damaged, !error.isRefused else { throw error }
      throw error.hinting(
        "it is unknown what the snapshot needs: restore the object from a copy, or remove the "
          + "snapshot with 'sandboxctl forget --force ID'")
    }
    try addIndexObjects()
    search.markFound()
    try mark(pending: pending.subtracting(trees))
    let heads = listing.heads.filter { !removed.contains($0.id) }
    let added = Set(heads.map(\.tree)).subtracting(trees)
    do {
      if trees.isEmpty {
        try search.mark(Self.latest(of: heads))
        search.recordLatest()
      }
      try search.mark(added)
    } catch let error as StoreError where error.kind == .damaged && !error.isRefused {
      throw error.hinting(treeHint)
    }
    trees.formUnion(added)
    snapshots = heads.count
  }

  /// Returns the tree of the latest snapshot of each scope of a device.
  private static func latest(of heads: [SnapshotHead]) -> Set<TreeReference> {
    let trees = heads.map { (SourceScope(of: $0), $0.tree) }
    return Set(Dictionary(trees) { $1 }.values)
  }

  private struct SourceScope: Hashable {
    let device: String
    let scope: Scope

    init(of head: SnapshotHead) { (device, scope) = (head.device.identity, head.scope) }
  }

  /// Returns the trees of snapshots that are about to be committed.
  private func pendingTrees() throws(StoreError) -> Set<TreeReference> {
    var trees: Set<TreeReference> = []
    for (id, path) in try repository.storage.leases.pendingSnapshots(for: action) {
      do throws(StoreError) {
        let content = try repository.storage.load(id, at: path, limit: FormatLimit.snapshot)
        let stored = try StoredSnapshot(id: id, content: content, object: "\(path)")
        trees.insert(stored.snapshot.tree)
      } catch {
        guard error.code != .missing else { continue }
        throw error
      }
    }
    return trees
  }

  /// Marks what snapshots that are about to be committed need.
  private mutating func mark(pending: Set<TreeReference>) throws {
    guard !pending.isEmpty else { return }
    do {
      try search.mark(pending)
    } catch let error as StoreError where error.kind == .damaged {
      throw error.hinting(
        "a program that was saving a snapshot has ended or is suspended: try again a day after "
          + "its start")
    }
    trees.formUnion(pending)
  }

  /// Ignores the leases that have expired.
  mutating func ignoreExpiredLeases(at now: Timestamp) {
    leases.removeAll { $0.isExpired(at: now) }
  }

  /// Adds the needs of the snapshots that counted as removed.
  mutating func restoreRemoved() throws {
    removed = []
    try update()
  }

  /// The hint for a tree or a list that cannot be read.
  private var treeHint: String {
    let repairs =
      "'sandboxctl repair packs', then 'sandboxctl repair snapshots --forget', which names "
      + "snapshots that have to be removed by hand"
    return unindexedPacks.isEmpty
      ? "it is unknown what a snapshot needs: run \(repairs)"
      : "it is unknown what a snapshot needs, and the index lacks "
        + "\(unindexedPacks.count) packs: run 'sandboxctl repair index'; if that does not help, "
        + repairs
  }

  private mutating func addIndexObjects() throws(StoreError) {
    let index = try LoadedIndex.loadAll(
      from: repository.storage, cache: cache, known: search.index.objects)
    if let fault = index.faults.first { throw fault.error }
    var added = search
    for object in index.objects where !search.index.contains(object.id) {
      try added.add(object) { pack throws(StoreError) in try state(of: pack) }
    }
    search = added
  }

  /// Returns the state of a pack. A pack that the listing lacks may have been added since.
  private mutating func state(
    of pack: IndexObject.Pack
  ) throws(StoreError) -> PruneIndex.PackState {
    if packSizes[pack.id] == nil {
      packSizes[pack.id] = try repository.storage.status(repository.storage.layout.pack(pack.id))?
        .size
    }
    guard let size = packSizes[pack.id] else {
      if condemned.contains(pack.id) { return .missing }
      throw StoreError(
        .missing, action, subject: repository.location,
        reason: "\(repository.storage.layout.pack(pack.id)), which the index names, does not exist",
        hint: "run 'sandboxctl repair packs' first: what is lost must be known before anything "
          + "is removed")
    }
    if condemned.contains(pack.id) { return .condemned }
    return size == pack.size && !damagedPacks.contains(pack.id) ? .reliable : .damaged
  }

  /// Records that packs are to be removed.
  mutating func condemn(_ packs: Set<Digest>) {
    condemned.formUnion(packs)
    search.set(.condemned, of: packs)
  }

  /// Records the result of a sweep.
  mutating func add(_ swept: PruneSweep.Result) {
    let removed = Set(swept.removed.keys)
    condemned.subtract(removed.union(swept.kept))
    for pack in removed { packSizes[pack] = nil }
    search.set(.missing, of: removed)
    search.set(.reliable, of: swept.kept)
  }

  /// The data blobs that snapshots need and no pack has.
  var lostBlobs: Int { search.lost.count }

  /// Returns the condemned packs among `packs` that have to stay: those with a needed blob that no
  /// reliable pack holds. While blobs are lost, packs that no index object names stay as well,
  /// because they may hold them.
  mutating func selectNeeded(among packs: Set<Digest>) -> Set<Digest> {
    search.set(.condemned, of: packs)
    let needed = search.selectNeeded(among: packs)
    guard lostBlobs > 0 else { return needed }
    return needed.union(packs.filter { packSizes[$0] != nil && !search.index.names($0) })
  }

  /// The packs that no index object names, with their sizes.
  var unindexedPacks: [Digest: UInt64] {
    packSizes.filter { !search.index.names($0.key) && !condemned.contains($0.key) }
  }

  /// Returns the packs, with their sizes, that no index object names and that no running program
  /// wrote: those older than all programs that have a lease and can write. If the start of one of
  /// these programs is unknown, there are none. There are also none while blobs are lost, because
  /// the object that named the packs may be lost as well.
  ///
  /// - Parameter own: the lease of the caller, or nil if it has none.
  func packsWithoutRun(besides own: ByteString?) throws(StoreError) -> [Digest: UInt64] {
    guard lostBlobs == 0 else { return [:] }
    let writers = leases.filter { !$0.isReader && $0.name != own }
    if writers.isEmpty { return unindexedPacks }
    let starts = writers.compactMap(\.began)
    guard starts.count == writers.count, let first = starts.min() else { return [:] }
    var packs: [Digest: UInt64] = [:]
    for (id, size) in unindexedPacks {
      guard let status = try repository.storage.status(repository.storage.layout.pack(id)),
        status.modified < first
      else { continue }
      packs[id] = size
    }
    return packs
  }
}
