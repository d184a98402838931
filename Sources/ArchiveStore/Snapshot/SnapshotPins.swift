public import Codecs
internal import SystemIO

/// Pins: empty files that exempt snapshots from removal (docs/repository-format.md, "Pins").
extension Repository {
  /// Returns the ids of the pinned snapshots, including snapshots that no longer exist. A missing
  /// directory counts as empty.
  public func pins() throws(StoreError) -> Set<SnapshotID> {
    let names = try storage.listIfPresent(RepositoryLayout.pins) ?? []
    return Set(names.compactMap { RepositoryLayout.id($0, suffix: "") })
  }

  /// Returns the pinned snapshots that do not exist. A snapshot is pinned only while it exists, and
  /// not removed while it is pinned: so it is lost, or the program that pinned it was killed while
  /// another removed it.
  public func lostPinned() throws(StoreError) -> Set<SnapshotID> {
    // Listed first, because their snapshots existed then.
    let pins = try pins()
    guard !pins.isEmpty, let names = try storage.listIfPresent(RepositoryLayout.snapshots) else {
      return []
    }
    let missing = pins.subtracting(RepositoryListing.ids(.snapshot, in: names, of: storage))
    // A snapshot that was unpinned and removed meanwhile no longer has a pin.
    return missing.isEmpty ? [] : missing.intersection(try self.pins())
  }

  /// Returns the errors of pinned snapshots that do not exist.
  func lossesOfPinned() throws(StoreError) -> [StoreError] {
    try lostPinned().sorted().map { id in
      StoreError(
        .missing, "find", subject: "\(storage.layout.snapshot(id))",
        reason: "the snapshot is pinned and does not exist", hint: DamageRemedy.pinnedSnapshot)
    }
  }

  /// Returns the heads of all snapshots, and the ids that `pins` returns. On another host both are
  /// listed by one request, if they are few enough for its answer.
  ///
  /// - Throws: as `heads(cache:)` and `pins`.
  public func headsAndPins(
    cache: SnapshotHeadCache?
  ) throws(StoreError) -> (heads: SnapshotHeads, pins: Set<SnapshotID>) {
    // Without a cache no sizes are needed. A directory on this host also shows the names of special
    // files, which are reported.
    guard cache != nil, storage.isOnAnotherHost else {
      return (try heads(cache: cache), try pins())
    }
    try storage.requireReadable()
    let (layout, directories) = (
      storage.layout, [RepositoryLayout.pins, RepositoryLayout.snapshots]
    )
    var pinned: Set<SnapshotID> = []
    var statuses: [SnapshotID: ObjectStatus] = [:]
    try storage.forEachObject(belowAny: directories) { path, status in
      if let id = layout.snapshotID(path) {
        statuses[id] = status
      } else if let id = RepositoryLayout.pinID(path) {
        pinned.insert(id)
      }
    }
    let found = try heads(of: statuses.keys.sorted(), cache: cache, statuses: statuses)
    return (SnapshotHeads(found.heads, damaged: found.damaged), pinned)
  }

  /// Pins snapshots. Returns those that were not pinned before.
  ///
  /// - Throws: `noSnapshot` if one does not exist, or was removed in the meantime; `leaseLost`;
  ///   `writeRefusal`.
  @discardableResult
  public func pin(_ ids: [SnapshotID]) throws(StoreError) -> Set<SnapshotID> {
    let lease = try leaseToChangePins()
    defer { lease.release() }
    try storage.makeMissing([RepositoryLayout.pins.name], in: .root)
    let old = try pins()
    let new = Set(ids).subtracting(old)
    for id in ids where new.contains(id) {
      try lease.save([], as: RepositoryLayout.pin(id))
      try requirePresent(id, lease)
    }
    return new
  }

  /// Checks that a snapshot still exists after its pin was written: a removal looks for the pin
  /// after it has moved the snapshot away.
  private func requirePresent(_ id: SnapshotID, _ lease: Lease) throws(StoreError) {
    if try storage.status(storage.layout.snapshot(id)) != nil { return }
    try lease.remove(pinOf: id)
    throw .noSnapshot(String(id.hex.prefix(8)), "it was removed")
  }

  /// Removes the pins of snapshots. Returns those that were pinned.
  ///
  /// - Throws: `leaseLost`; `writeRefusal`.
  @discardableResult
  public func unpin(_ ids: [SnapshotID]) throws(StoreError) -> Set<SnapshotID> {
    let lease = try leaseToChangePins()
    defer { lease.release() }
    let old = Set(ids).intersection(try pins())
    for id in ids where old.contains(id) { try lease.remove(pinOf: id) }
    return old
  }

  private func leaseToChangePins() throws(StoreError) -> Lease {
    try requireKnownFeatures(for: .write)
    try requireWritable()
    return try Lease(storage)
  }
}

extension Lease {
  /// Removes the pin of a snapshot through the lease. One that is already gone is ignored.
  func remove(pinOf id: SnapshotID) throws(StoreError) {
    try remove(RepositoryLayout.pin(id))
  }
}
