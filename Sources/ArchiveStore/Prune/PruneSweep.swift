internal import Codecs
internal import SystemIO

/// Removes condemned packs once no writer or reader can rely on them (docs/repository-format.md,
/// "Prune").
///
/// Not thread-safe. The caller holds the right to remove objects.
struct PruneSweep {
  private let session: WritingSession
  private let right: PruneLease
  private let reserve: SpaceReserve
  private var storage: RepositoryStorage { session.repository.storage }

  /// The result of a sweep.
  struct Result {
    /// The removed packs, by stored size.
    var removed: [Digest: UInt64] = [:]
    /// Condemned packs that turned out to be needed, and stay.
    var kept: Set<Digest> = []
    /// The condemned objects that a later prune sweeps, and the leases that they wait for.
    var waiting: [Digest: [ByteString]] = [:]
    /// The leases of other programs that were found.
    var leases: Set<LeaseStatus> = []
  }

  init(_ session: WritingSession, _ right: PruneLease, reserve: SpaceReserve) {
    (self.session, self.right, self.reserve) = (session, right, reserve)
  }

  /// Sweeps the condemned objects that no program may rely on. `needs` covers the snapshots listed
  /// so far; snapshots added since are searched here, after the leases were checked.
  func run(
    _ condemned: [Digest: CondemnedObject], _ needs: inout SnapshotNeeds
  ) throws -> Result {
    var result = Result()
    let first = try due(condemned, &result)
    guard !first.isEmpty else { return result }
    try needs.update()
    // Again, because a program that removes snapshots may have taken one away for a moment. An
    // object that waited before still waits: the writer that it waited for may have committed a
    // snapshot that the search has not seen, and ended.
    let due = try due(first, &result)
    guard !due.isEmpty else { return result }
    let packs = Set(due.values.flatMap(\.packs))
    result.kept = needs.selectNeeded(among: packs)
    if try waitsForSleepers(due, &result) { return result }
    try clear(packs.subtracting(result.kept), needs, into: &result)
    for id in due.keys {
      try right.requireHeld()
      try session.lease.remove(CondemnedObject.path(id))
    }
    return result
  }

  /// Whether a program that lost the right may still remove condemned packs that would have to
  /// stay. Such a pack must neither become usable again nor count as the copy that makes another
  /// one removable: all objects wait.
  private func waitsForSleepers(
    _ due: [Digest: CondemnedObject], _ result: inout Result
  ) throws(StoreError) -> Bool {
    guard !result.kept.isEmpty else { return false }
    let sleeping = try storage.leases.sleepingRemovers()
    guard !sleeping.isEmpty else { return false }
    for id in due.keys { result.waiting[id] = sleeping }
    result.kept = []
    return true
  }

  /// Returns the condemned objects that every program with a lease has seen. The others wait.
  private func due(
    _ condemned: [Digest: CondemnedObject], _ result: inout Result
  ) throws(StoreError) -> [Digest: CondemnedObject] {
    let leases = try otherLeases()
    let (due, waiting) = condemned.due(for: leases)
    result.leases = Set(leases)
    result.waiting.merge(waiting) { $1 }
    return due
  }

  /// Removes packs from the index and then from the storage. On a full volume the packs are removed
  /// first: while the condemned object names them, their entries in the index are not damage.
  private func clear(
    _ packs: Set<Digest>, _ needs: SnapshotNeeds, into result: inout Result
  ) throws(StoreError) {
    do {
      try rewriteIndex(without: packs, needs.search.index)
      try remove(packs, needs.packSizes, into: &result)
    } catch {
      guard error.cause?.isFull == true else { throw error }
      try reserve.free()
      try remove(packs, needs.packSizes, into: &result)
      try rewriteIndex(without: packs, needs.search.index)
    }
  }

  /// Rewrites the index objects that name any of the packs, without these packs.
  private func rewriteIndex(without packs: Set<Digest>, _ index: PruneIndex) throws(StoreError) {
    for object in index.objects where !packs.isDisjoint(with: object.packIDs) {
      // Objects of the packs' own tables exist in memory only.
      guard try storage.status(storage.layout.index(object.id)) != nil else { continue }
      try right.requireHeld()
      try session.rewrite(object, without: packs, right)
    }
  }

  private func remove(
    _ packs: Set<Digest>, _ sizes: [Digest: UInt64], into result: inout Result
  ) throws(StoreError) {
    let left = packs.filter { result.removed[$0] == nil }.sorted()
    let batch = session.lease.removalBatch
    for start in stride(from: 0, to: left.count, by: batch) {
      let part = left[start..<min(start + batch, left.count)]
      try right.requireHeld()
      try session.lease.remove(packs: part.map { storage.layout.pack($0) })
      for pack in part { result.removed[pack] = sizes[pack] ?? 0 }
    }
  }

  private func otherLeases() throws(StoreError) -> [LeaseStatus] {
    try LeaseStatus.all(storage).filter { $0.name != session.lease.path.name }
  }
}

extension WritingSession {
  /// Names packs in condemned objects, so that a sweep removes them.
  func condemn(
    _ packs: Set<Digest>, by right: PruneLease, reserve: SpaceReserve
  ) throws(StoreError) {
    let all = packs.sorted()
    for start in stride(from: 0, to: all.count, by: CondemnedObject.maximumPacks) {
      let part = Set(all[start..<min(start + CondemnedObject.maximumPacks, all.count)])
      let bytes = CondemnedObject(packs: part).encode()
      let id = Blake2b.hash(bytes)
      try reserve.whenFull { () throws(StoreError) in
        // This program's own lease does not delay the sweep by a later one.
        try lease.recordSeen([id])
        try right.requireHeld()
        try lease.save(bytes, as: CondemnedObject.path(id))
      }
    }
  }
}

extension [Digest: CondemnedObject] {
  /// Returns the condemned objects that every program with one of the leases has seen, and for each
  /// of the others the leases that it waits for.
  func due(
    for leases: [LeaseStatus]
  ) -> (due: [Digest: CondemnedObject], waiting: [Digest: [ByteString]]) {
    var due: [Digest: CondemnedObject] = [:]
    var waiting: [Digest: [ByteString]] = [:]
    for (id, object) in self {
      let unaware = leases.filter { !$0.seen.contains(id) }.map(\.name)
      if unaware.isEmpty { due[id] = object } else { waiting[id] = unaware }
    }
    return (due, waiting)
  }
}

extension RepositoryPrune.Report {
  /// Adds the first step of a prune: it removes the condemned packs that no program relies on and
  /// no snapshot needs. Those that it keeps are in the plan that is made afterwards.
  mutating func addCondemned(in needs: inout SnapshotNeeds) {
    let (due, waiting) = needs.condemnedObjects.due(for: needs.leases)
    var swept = PruneSweep.Result()
    let packs = Set(due.values.flatMap(\.packs))
    swept.kept = needs.selectNeeded(among: packs)
    for pack in packs.subtracting(swept.kept) {
      // A pack that is gone was removed by a prune that was interrupted.
      if let size = needs.packSizes[pack] { swept.removed[pack] = size }
    }
    (swept.waiting, swept.leases) = (waiting, Set(needs.leases))
    removal.add(swept, of: needs.condemnedObjects)
    needs.add(swept)
  }
}
