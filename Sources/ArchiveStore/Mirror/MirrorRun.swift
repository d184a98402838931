internal import Codecs
internal import SystemIO

/// A run of a mirror that holds its leases: copies what the mirror lacks, and then removes what the
/// original no longer has.
struct MirrorRun {
  private let mirror: RepositoryMirror
  let session: WritingSession
  private var found: MirrorListing
  private let old: MirrorListing
  private var record: MirrorRecord
  private let isStopping: @Sendable () -> Bool
  private let copier: ObjectCopier
  /// The packs and index objects that the mirror has, without packs that are recorded as damaged.
  private var packs: Set<Digest>
  private var indexes: Set<Digest> = []
  /// Damaged objects of the original that the mirror does not have either.
  private var lacking: Set<Digest> = []
  var report = RepositoryMirror.Report()

  /// The number of listings after which an original that keeps changing is left to a later run.
  static let maximumAttempts = 8

  init(
    _ mirror: RepositoryMirror, _ session: WritingSession, found: MirrorListing,
    old: MirrorListing, record: MirrorRecord, isStopping: @escaping @Sendable () -> Bool
  ) {
    (self.mirror, self.session, self.found, self.old) = (mirror, session, found, old)
    (self.record, self.isStopping) = (record, isStopping)
    packs = Set(old.packs.keys).subtracting(old.damagedPacks)
    copier = ObjectCopier(
      from: mirror.source.storage, by: session.lease, counters: mirror.counters)
    report.snapshots = found.snapshots.count
  }

  private var source: RepositoryStorage { mirror.source.storage }
  private var target: RepositoryStorage { session.repository.storage }

  /// Runs until the end, or until it is interrupted.
  mutating func run() throws {
    do {
      try update()
    } catch let error as StoreError where error.code == .interrupted {
      report.isInterrupted = true
    }
  }

  private mutating func update() throws {
    // A damaged index object is copied again, even if this host has a copy of it.
    for id in old.indexes.intersection(found.indexes)
    where try ObjectCopier.isIntact(id, at: target.layout.index(id), in: target) {
      indexes.insert(id)
    }
    try copyContent()
    // Must precede the search for the needs of snapshots: recorded packs count as missing there.
    try removeRecords()
    if !report.isInterrupted { try copySnapshots() }
    if !report.isInterrupted { try copyMarks() }
    if !report.isInterrupted { try remove() }
  }

  // MARK: - Content

  /// Copies packs, then index objects. If one disappears, a prune or a merge has replaced it: the
  /// original is then listed again.
  private mutating func copyContent() throws {
    for _ in 0..<Self.maximumAttempts {
      let packs = try copyPacks()
      if report.isInterrupted { return }
      let indexes = try copyIndexes()
      if report.isInterrupted { return }
      if !packs.hasGone, !indexes.hasGone { return }
      try found.update(source)
    }
    throw Self.originalKeepsChanging(session.repository.location)
  }

  static func originalKeepsChanging(_ target: String) -> StoreError {
    StoreError(
      .busy, "mirror the repository to", subject: target,
      reason: "packs of the original keep disappearing while they are copied",
      hint: "try again when no prune is running there")
  }

  private mutating func copyPacks() throws -> ObjectCopier.Result {
    var objects: [ObjectCopier.Object] = []
    for (id, size) in found.packs.sorted(by: { $0.key < $1.key }) {
      let object = ObjectCopier.Object(id: id, path: target.layout.pack(id), size: size)
      if packs.contains(id) {
        guard let present = old.packs[id], present != size else { continue }
        if try ObjectCopier.isIntact(id, at: object.path, in: target) {
          recordDamage(
            StoreError.damaged("\(object.path)", "its size differs from the mirror's copy"))
          found.replaceSize(of: id, by: present)
          continue
        }
      }
      objects.append(object)
    }
    let result = try copier.copy(
      objects, threads: mirror.workers, isReadSoon: false, isStopping: isStopping)
    copy(result)
    report.copied.packs += result.copied
    packs.formUnion(result.objects.map(\.id))
    return result
  }

  private mutating func copyIndexes() throws -> ObjectCopier.Result {
    var objects: [ObjectCopier.Object] = []
    var hasGone = false
    for id in found.indexes.subtracting(indexes).sorted() {
      let path = target.layout.index(id)
      guard let status = try source.status(path) else {
        hasGone = true
        continue
      }
      guard status.size <= UInt64(source.storedLimit(of: FormatLimit.index)) else {
        recordDamage(
          .damaged("\(path)", "it has \(status.size) bytes, more than an index may have"))
        lacking.insert(id)
        continue
      }
      objects.append(ObjectCopier.Object(id: id, path: path, size: status.size))
    }
    var result = try copier.copy(
      objects, threads: mirror.workers, isReadSoon: true, isStopping: isStopping)
    copy(result)
    report.copied.indexes += result.copied
    indexes.formUnion(result.objects.map(\.id))
    if hasGone { result.hasGone = true }
    return result
  }

  private mutating func copy(_ result: ObjectCopier.Result) {
    report.copied.bytes += result.bytes
    if result.isInterrupted { report.isInterrupted = true }
    for (object, error) in result.damaged where lacking.insert(object.id).inserted {
      let hint = DamageRemedy.remedy(for: object.path, error)
      recordDamage(hint.map(error.hinting) ?? error)
    }
  }

  private mutating func recordDamage(_ error: StoreError) {
    mirror.counters.didFail()
    if !report.damaged.contains(error) { report.damaged.append(error) }
  }

  // MARK: - Snapshots

  /// Copies the snapshots that the mirror lacks, if everything that they need is there. They are
  /// recorded first, so that after a crash none seems to have been made in the mirror.
  private mutating func copySnapshots() throws {
    var new = found.snapshots.subtracting(old.snapshots)
    for error in try mirror.losses(in: found, besides: old) { recordDamage(error) }
    let index = lacking.isEmpty ? try originalIndex() : nil
    let isWhole = index?.isWhole(with: packs) == true
    let unread = try mirror.unread(among: new, isWhole: isWhole)
    for (id, error) in unread.unusable {
      recordDamage(error)
      new.remove(id)
    }
    if try index?.hasLostObject(in: mirror) == true { recordDamage(.incompleteIndex()) }
    guard !new.isEmpty else { return }
    if !isWhole { new.subtract(try incomplete(new)) }
    let sizes = try RepositoryListing.snapshotStatuses(source)
    let objects = new.sorted().compactMap { id in
      sizes[id].map {
        ObjectCopier.Object(id: id, path: target.layout.snapshot(id), size: $0.size)
      }
    }
    try save(record: record.snapshots.union(objects.map(\.id)))
    let result = try copier.copy(
      objects, threads: mirror.workers, isReadSoon: true, isStopping: isStopping)
    copy(result)
    if try session.lease.isDead() {
      // Their data may have been removed meanwhile. The next run copies them again.
      try target.remove(objects.map(\.path))
      throw Lease.lost(target.location)
    }
    report.copied.snapshots = result.copied
    report.unread = Set(unread.older).intersection(result.objects.map(\.id)).count
  }

  /// Returns the new snapshots that need something that the mirror lacks.
  private mutating func incomplete(_ new: Set<SnapshotID>) throws -> Set<SnapshotID> {
    let listing = try mirror.source.heads(cache: mirror.headCache)
    try listing.requireSent(new)
    let heads = listing.heads.filter { new.contains($0.id) }
    var needs = try SnapshotNeedsSearch(
      session.repository, cache: mirror.indexCache, threads: mirror.workers, isStopping: isStopping
    ) { [source = mirror.source] in try source.snapshot($0) }
    report.incomplete = try needs.mark(heads)
    if needs.needsUnindexedPacks, lacking.isEmpty { recordDamage(.incompleteIndex()) }
    return Set(report.incomplete.map(\.head.id))
  }

  /// The index objects of the original, which the mirror now has.
  private func originalIndex() throws(StoreError) -> OriginalIndex {
    OriginalIndex(
      found, try LoadedIndex.load(found.indexes.sorted(), from: target, cache: mirror.indexCache))
  }

  private mutating func save(record snapshots: Set<SnapshotID>) throws(StoreError) {
    let isSaved = try target.status(MirrorRecord.path) != nil
    guard snapshots != record.snapshots || !isSaved else { return }
    record.snapshots = snapshots
    try session.lease.save(record.encode(), as: MirrorRecord.path)
  }

  /// Copies pins and damage records.
  private mutating func copyMarks() throws {
    for id in found.pins.subtracting(old.pins).sorted() {
      try session.lease.save([], as: RepositoryLayout.pin(id))
    }
    let new = found.records.subtracting(old.records)
    guard !new.isEmpty else { return }
    try target.makeMissing([RepositoryLayout.damaged.name], in: .root)
    for id in new.sorted() {
      let path = RepositoryLayout.record(id)
      let bytes: [UInt8]
      do throws(StoreError) {
        bytes = try source.loadStored(id, at: path, limit: FormatLimit.contents)
      } catch {
        // A replaced or unusable record protects nothing: only intact packs were copied.
        guard error.costsTheObjectAlone else { throw error }
        continue
      }
      try session.lease.save(bytes, as: path)
    }
  }

  // MARK: - Removal

  private mutating func remove() throws {
    let gone = found.snapshotsRemoved(from: old)
    let lost = found.losses(comparedTo: old, in: target)
    for error in lost { recordDamage(error) }
    let target = target
    report.refusal = try mirror.refusal(of: found, old, in: session.repository) {
      () throws(StoreError) in Set(try RepositoryListing.snapshots(target))
    }
    // An original without snapshots is never mistaken for the result of removals.
    if report.refusal != nil || found.snapshots.isEmpty { return }
    for id in gone.sorted() {
      if isStopping() {
        report.isInterrupted = true
        return
      }
      try session.lease.remove(target.layout.snapshot(id))
      report.removed.snapshots += 1
    }
    try removePins()
    if lost.isEmpty { try removeContent() }
    try removeRecords()
    try save(record: found.snapshots.union(old.snapshots.subtracting(gone)))
  }

  private func removePins() throws(StoreError) {
    guard !found.missing.contains(RepositoryLayout.pins) else { return }
    for id in old.pins.subtracting(found.pins).sorted() { try session.lease.remove(pinOf: id) }
  }

  /// Removes the damage records that the original does not have, unless a pack in one of them is
  /// still damaged.
  private func removeRecords() throws(StoreError) {
    for pack in old.damagedPacks.subtracting(packs) {
      if try target.status(target.layout.pack(pack)) != nil { return }
    }
    for id in old.records.subtracting(found.records).sorted() {
      try session.lease.remove(RepositoryLayout.record(id))
    }
  }

  /// Removes index objects and packs that the original no longer has, by the rules of a prune: a
  /// pack stays if a snapshot of the mirror needs it or a program may rely on it.
  private mutating func removeContent() throws {
    let surplus = Set(old.packs.keys).subtracting(found.packs.keys)
    let condemned = try CondemnedObjects.intact(target).objects
    let hasIndexes = !old.indexes.isSubset(of: found.indexes)
    guard !surplus.isEmpty || hasIndexes || !condemned.isEmpty else { return }
    guard lacking.isEmpty else { return }
    guard let right = try PruneLease(session.lease) else {
      report.waitingPacks = surplus.count
      return
    }
    defer { right.release() }
    do {
      var removal = MirrorRemoval(
        session, right, found: found, mirror: mirror, isStopping: isStopping)
      try removal.run(surplus)
      report.removed.packs = removal.totals.removedPacks
      report.removed.bytes = removal.totals.removedBytes
      report.removed.indexes = old.indexes.subtracting(try RepositoryListing.indexes(target)).count
      report.waitingPacks = removal.totals.waitingPacks
      for error in removal.kept { recordDamage(error) }
    } catch let error as StoreError where error.kind == .damaged {
      recordDamage(error)
    }
  }
}

/// Removes the packs and index objects of a mirror that the original no longer has.
///
/// Not thread-safe. The caller holds the right to remove objects of the mirror.
struct MirrorRemoval {
  private var removal: PackRemoval
  private let found: MirrorListing
  private let mirror: RepositoryMirror
  private let isStopping: @Sendable () -> Bool
  /// The errors of packs that the original has lost and that snapshots need.
  private(set) var kept: [StoreError] = []

  init(
    _ session: WritingSession, _ right: PruneLease, found: MirrorListing,
    mirror: RepositoryMirror, isStopping: @escaping @Sendable () -> Bool
  ) {
    removal = PackRemoval(session, right, reserve: SpaceReserve(session.repository.storage))
    (self.found, self.mirror, self.isStopping) = (found, mirror, isStopping)
  }

  /// The packs that were removed, and those that a later run removes.
  var totals: RemovalTotals { removal.totals }

  private var session: WritingSession { removal.session }
  private var storage: RepositoryStorage { session.repository.storage }

  /// Removes index objects that are no longer needed, then packs, as a prune sweeps condemned
  /// packs.
  ///
  /// - Throws: `damaged` or `missing` if it is unknown what the snapshots of the mirror need.
  mutating func run(_ surplus: Set<Digest>) throws {
    try session.lease.removeExpiredOthers()
    try removeRedundantIndexes()
    try condemn(surplus)
    let condemned = try CondemnedObjects.intact(storage).objects
    guard !condemned.isEmpty else { return }
    var needs = try SnapshotNeeds(
      session.repository, for: "remove packs from", cache: mirror.indexCache, headCache: nil,
      threads: mirror.workers, isStopping: removal.stopping(isStopping))
    let swept = try removal.sweep(condemned, &needs)
    kept = swept.kept.subtracting(found.packs.keys).sorted().map {
      Self.keeps(storage.layout.pack($0))
    }
    if totals.waitingPacks == 0 { try removeRedundantIndexes() }
  }

  /// The error for a pack that the original has lost and that snapshots need.
  static func keeps(_ pack: ObjectPath) -> StoreError {
    StoreError(
      .missing, "find", subject: "\(pack)",
      reason: "the original lacks it, but snapshots need it; the mirror keeps it",
      hint:
        "copy the file from the mirror to the original and run 'sandboxctl repair index' there")
  }

  /// Condemns packs that are not condemned yet.
  private func condemn(_ packs: Set<Digest>) throws(StoreError) {
    let condemned = try CondemnedObjects.intact(storage).packs
    try session.condemn(
      packs.subtracting(condemned), by: removal.right, reserve: removal.reserve)
  }

  /// Removes index objects that the original does not have and that are not the only ones to name a
  /// pack, and those that cannot be read. The latter would prevent each removal; after a rewrap of
  /// the original, they include the mirror's older objects. If snapshots then need packs that no
  /// index object names, the sweep does not remove these packs.
  private func removeRedundantIndexes() throws(StoreError) {
    let loaded = try LoadedIndex.loadAll(from: storage, cache: mirror.indexCache)
    let damaged = Set(loaded.faults.filter { $0.error.kind == .damaged }.map(\.id))
    let readable = Set(loaded.objects.map(\.id)).subtracting(damaged)
    if !found.indexes.isEmpty, found.indexes.isSubset(of: readable) { try remove(indexes: damaged) }
    let named = Set(
      loaded.objects.filter { found.indexes.contains($0.id) }.flatMap(\.packIDs))
    let packs = try RepositoryListing.packs(storage)
    let redundant = loaded.objects.filter { object in
      !found.indexes.contains(object.id) && readable.contains(object.id)
        && object.packIDs.allSatisfy { named.contains($0) || !packs.contains($0) }
    }
    try remove(indexes: redundant.map(\.id))
  }

  private func remove(indexes: some Sequence<Digest>) throws(StoreError) {
    for id in indexes {
      try removal.right.requireHeld()
      try session.lease.remove(index: id)
    }
  }
}
