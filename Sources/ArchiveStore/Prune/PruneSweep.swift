internal import Codecs
internal import SystemIO

/// Removes condemned packs once no writer or reader can rely on them (docs/repository-format.md,
/// "Prune").
///
/// Not thread-safe. The caller holds the right to remove objects.
struct PruneSweep {
  private let session: WritingSession
  private let right: PruneLease
  private var storage: any Storage { session.repository.storage }

  /// The result of a sweep.
  struct Result {
    /// The removed packs, by stored size.
    var removed: [Digest: UInt64] = [:]
    /// Condemned packs that turned out to be needed, and stay.
    var kept: Set<Digest> = []
    /// The condemned objects that a later prune sweeps, and the leases that they wait for.
    var waiting: [String: [ByteString]] = [:]
  }

  init(_ session: WritingSession, _ right: PruneLease) {
    (self.session, self.right) = (session, right)
  }

  /// Sweeps the condemned objects that nobody may rely on. `search` knows what the snapshots
  /// listed so far need; snapshots that were added since are searched here, after the leases were
  /// checked.
  func run(
    _ condemned: [String: CondemnedObject], _ needs: inout SnapshotNeeds
  ) throws -> Result {
    var result = Result()
    guard try !due(condemned, &result).isEmpty else { return result }
    try needs.update()
    // Again: a program that removes snapshots may have taken one away for a moment.
    let due = try due(condemned, &result)
    guard !due.isEmpty else { return result }
    let packs = Set(due.values.flatMap(\.packs))
    needs.search.set(.condemned, of: packs)
    result.kept = needs.search.stillNeeded(among: packs)
    let removable = packs.subtracting(result.kept)
    try rewriteIndex(without: removable, needs.search.index)
    result.removed = try remove(removable, needs.packSizes)
    for id in due.keys {
      try require()
      try session.lease.remove(CondemnedObject.path(id))
    }
    return result
  }

  /// Returns the condemned objects that every program with a lease has seen. The others wait.
  private func due(
    _ condemned: [String: CondemnedObject], _ result: inout Result
  ) throws(StoreError) -> [String: CondemnedObject] {
    let leases = try otherLeases()
    var due: [String: CondemnedObject] = [:]
    for (id, object) in condemned {
      let unaware = leases.filter { !$0.seen.contains(id) }.map(\.name)
      if unaware.isEmpty { due[id] = object } else { result.waiting[id] = unaware }
    }
    return due
  }

  /// Writes the index objects that name any of the packs again without these.
  private func rewriteIndex(without packs: Set<Digest>, _ index: PruneIndex) throws(StoreError) {
    for object in index.objects where !packs.isDisjoint(with: object.packIDs) {
      // Objects of the packs' own tables exist in memory only.
      guard try storage.status(RepositoryLayout.index(object.id)) != nil else { continue }
      try require()
      try session.rewrite(object, without: packs, right)
    }
  }

  private func remove(
    _ packs: Set<Digest>, _ sizes: [Digest: UInt64]
  ) throws(StoreError) -> [Digest: UInt64] {
    var removed: [Digest: UInt64] = [:]
    for pack in packs.sorted() {
      try require()
      try session.lease.remove(RepositoryLayout.pack(pack))
      removed[pack] = sizes[pack] ?? 0
    }
    return removed
  }

  private func require() throws(StoreError) {
    guard try right.isHeld() else { throw PruneLease.lost(session.repository.place) }
  }

  private func otherLeases() throws(StoreError) -> [LeaseStatus] {
    try LeaseStatus.all(storage).filter { $0.name != session.lease.path.name }
  }

  /// Removes leases without a heartbeat for an hour of the storage's clock. A lease is renamed
  /// first: its program can then commit nothing more, even if it continues at this moment.
  func removeExpiredLeases() throws(StoreError) {
    try session.lease.touchAlive()
    let alive = session.lease.path.appending("alive")
    guard let now = try storage.status(alive)?.modified else { return }
    for lease in try otherLeases() {
      let path = RepositoryLayout.leases.appending(lease.name)
      guard let heartbeat = lease.heartbeat else {
        // Its program ended before its first heartbeat, or is about to write it.
        try? storage.touch(path.appending("alive"))
        continue
      }
      guard now.since(heartbeat) > Lease.patience else { continue }
      let aside = RepositoryLayout.leases.appending(ByteString(Host.randomHex(bytes: 16)))
      do {
        try storage.rename(path, to: aside)
      } catch {
        guard error.code == .missing else { throw error }
        continue
      }
      for name in (try? storage.list(aside)) ?? [] { try? storage.remove(aside.appending(name)) }
      try? storage.remove(aside)
    }
  }
}
