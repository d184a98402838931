internal import Codecs
internal import SystemIO

extension WritingSession {
  /// Whether a checkpoint is due: 512 MiB of packs are finished, five minutes have passed, or 262,144
  /// blobs were stored, which are held in memory until then, since the last.
  public var checkpointIsDue: Bool {
    packs.isIndexDue || known.unindexed >= FormatLimit.blobsPerPack
  }

  /// Makes durable what is in whole frames, and writes an index object for it, so that a run which
  /// is interrupted later need not store it again. Other threads may be storing meanwhile; what
  /// their writers gather is not part of it.
  public func checkpoint() throws(StoreError) {
    try alone { () throws(StoreError) in
      try status.mustStep { () throws(StoreError) in try settle() }
      mergeIndexes()
    }
  }

  /// Makes what was stored durable and then the snapshot: packs, index, snapshot, in this order.
  /// Index objects are merged where that is due. The session is over, whether it succeeds or fails.
  ///
  /// All writers must have flushed before, and their threads must store nothing more.
  public func finish(_ snapshot: Snapshot) throws(StoreError) -> StoredSnapshot {
    defer { abandon() }
    return try alone { () throws(StoreError) in
      try status.step { () throws(StoreError) in
        try settle()
        let unplaced = known.unplaced
        guard unplaced == 0 else {
          throw .invalid(repository.place, "\(unplaced) blobs are in a writer that did not flush")
        }
        guard packs.areAllClosed else {
          throw .invalid(repository.place, "a pack was not closed: no snapshot may rely on it")
        }
        var snapshot = snapshot
        snapshot.totals.stored = packs.counts.bytes
        let bytes = snapshot.encode()
        let id = Blake2b.hash(bytes)
        try requireReadable(bytes, id)
        try save(bytes, id)
        mergeIndexes()
        return StoredSnapshot(id: id, snapshot: snapshot)
      }
    }
  }

  /// Saves the snapshot. Where it is in its place and only its name may not be on the disk, which is
  /// neither a success nor a snapshot that was not written, the error says so and names it.
  private func save(_ bytes: [UInt8], _ id: SnapshotID) throws(StoreError) {
    let path = RepositoryLayout.snapshot(id)
    do {
      try lease.save(bytes, as: path)
    } catch {
      guard error.code == .notDurable else { throw error }
      throw StoreError(
        .notDurable, "make sure that the disk keeps", "snapshot \(id.hex.prefix(8))",
        "it was written and is listed, but is not known to be durable: \(error.reason)",
        hint: "after a loss of power it may be gone: check the system's log, and back up again",
        cause: error.cause)
    }
  }

  /// A snapshot that nobody could read would be none: what is too large for one, say.
  private func requireReadable(_ bytes: [UInt8], _ id: SnapshotID) throws(StoreError) {
    let reason: String
    do {
      _ = try StoredSnapshot(id: id, bytes: bytes)
      if bytes.count <= FormatLimit.snapshot { return }
      reason = "it would have \(bytes.count) bytes, more than \(FormatLimit.snapshot)"
    } catch { reason = "it could not be read again: \(error.reason)" }
    throw .invalid("the snapshot in \(repository.place)", reason)
  }

  /// Closes the open packs, then writes an index object for all that have none.
  private func settle() throws(StoreError) {
    try trees.flush()
    var open = (lanes.all + [trees.packs]).compactMap { $0.takeOpen() }
    let last = open.popLast()
    for pack in open { try packs.closeSoon(pack) }
    if let last { try packs.close(last) }
    try packs.wait()
    try saveIndex()
  }

  private func saveIndex() throws(StoreError) {
    let finished = packs.unindexed
    guard !finished.isEmpty else { return }
    let numbers = Set(finished.map { UInt32($0.number) })
    let places = Dictionary(
      uniqueKeysWithValues: finished.enumerated().map { (UInt32($1.number), UInt32($0)) })
    // In place: there may be as many as a backup has small files.
    var records = known.records(ofPacks: numbers)
    for number in records.indices {
      records[number].pack = places[records[number].pack] ?? records[number].pack
    }
    let bytes = IndexBuilder(packs: finished.map(\.pack), records: records).encode()
    let id = Blake2b.hash(bytes)
    try lease.save(bytes, as: RepositoryLayout.index(id))
    let object: IndexObject
    if let copy = cache?.add(id, bytes) {
      object = copy
    } else {
      object = try IndexObject(id: id, bytes: bytes)
    }
    known.add(object, packs: numbers)
    packs.noteIndexed(finished.map(\.number))
  }
}
