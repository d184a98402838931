internal import Codecs
internal import SystemIO

/// Removes the packs and index objects of a mirror that the original no longer has.
///
/// Not thread-safe. The caller holds the right to remove objects of the mirror.
struct MirrorRemoval {
  private let session: WritingSession
  private let right: PruneLease
  private let found: MirrorListing
  private let mirror: RepositoryMirror
  private let isStopping: @Sendable () -> Bool
  private(set) var removedPacks = 0
  private(set) var removedBytes: UInt64 = 0
  /// The packs that a later run removes, because other programs are using the mirror.
  private(set) var waitingPacks = 0
  /// The errors of packs that the original has lost and that snapshots need.
  private(set) var kept: [StoreError] = []

  init(
    _ session: WritingSession, _ right: PruneLease, found: MirrorListing,
    mirror: RepositoryMirror, isStopping: @escaping @Sendable () -> Bool
  ) {
    (self.session, self.right, self.found) = (session, right, found)
    (self.mirror, self.isStopping) = (mirror, isStopping)
  }

  private var storage: any Storage { session.repository.storage }

  /// Removes index objects that are no longer needed, then packs, as a prune sweeps condemned packs.
  ///
  /// - Throws: `damaged` or `missing` if it is unknown what the snapshots of the mirror need.
  mutating func run(_ surplus: Set<Digest>) throws {
    let sweep = PruneSweep(session, right, reserve: SpaceReserve(storage))
    try session.lease.removeExpiredOthers()
    try removeRedundantIndexes()
    try condemn(surplus)
    let condemned = try CondemnedObjects.intact(storage).objects
    guard !condemned.isEmpty else { return }
    let heartbeat = RepositoryPrune.Heartbeat(right)
    var needs = try SnapshotNeeds(
      session.repository, for: "remove packs from", cache: mirror.indexCache, headCache: nil,
      threads: mirror.workers
    ) { [isStopping] in
      heartbeat.beat()
      return isStopping()
    }
    let swept = try sweep.run(condemned, &needs)
    removedPacks = swept.removed.count
    removedBytes = swept.removed.values.reduce(0, +)
    waitingPacks = Set(swept.waiting.keys.flatMap { condemned[$0]?.packs ?? [] }).count
    kept = swept.kept.subtracting(found.packs.keys).sorted().map { pack in
      StoreError(
        .missing, "find", subject: "\(RepositoryLayout.pack(pack))",
        reason: "the original lacks it, but snapshots need it; the mirror keeps it",
        hint:
          "copy the file from the mirror to the original and run 'sandboxctl repair index' there")
    }
    if waitingPacks == 0 { try removeRedundantIndexes() }
  }

  /// Condemns packs that are not condemned yet.
  private func condemn(_ packs: Set<Digest>) throws(StoreError) {
    let all = packs.subtracting(try CondemnedObjects.intact(storage).packs).sorted()
    for start in stride(from: 0, to: all.count, by: CondemnedObject.maximumPacks) {
      let part = all[start..<min(start + CondemnedObject.maximumPacks, all.count)]
      let bytes = CondemnedObject(packs: Set(part)).encode()
      let id = Blake2b.hash(bytes)
      try session.lease.recordSeen(id)
      guard try right.isHeld() else { throw PruneLease.lost(session.repository.location) }
      try session.lease.save(bytes, as: CondemnedObject.path(id))
    }
  }

  /// Removes index objects that the original does not have and that name no pack which only they
  /// name.
  private func removeRedundantIndexes() throws(StoreError) {
    let loaded = try LoadedIndex.loadAll(from: storage, cache: mirror.indexCache)
    let named = Set(
      loaded.objects.filter { found.indexes.contains($0.id) }.flatMap(\.packIDs))
    let packs = try RepositoryListing.packs(storage)
    for object in loaded.objects where !found.indexes.contains(object.id) {
      guard object.packIDs.allSatisfy({ named.contains($0) || !packs.contains($0) }) else {
        continue
      }
      guard try right.isHeld() else { throw PruneLease.lost(session.repository.location) }
      try session.lease.remove(index: object.id)
    }
  }
}
