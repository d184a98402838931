internal import Codecs
internal import SystemIO

extension WritingSession {
  /// Whether a checkpoint is due: since the last one, 512 MiB of packs were finished, five minutes
  /// have passed, or 262,144 blobs were stored, which stay in memory until then.
  package var checkpointIsDue: Bool {
    packs.isIndexDue || known.unindexed >= FormatLimit.blobsPerPack
  }

  /// Makes complete frames durable and writes an index object for them, so that a run interrupted
  /// later need not store them again. Other threads may continue to store; content still in their
  /// writers is not included.
  package func checkpoint() throws(StoreError) {
    try alone { () throws(StoreError) in
      try status.mustStep { () throws(StoreError) in try settle() }
      mergeIndexes()
    }
  }

  /// Makes the stored content and then the snapshot durable: packs, index, snapshot, in this order.
  /// Merges index objects if that is due. The session ends, whether this succeeds or fails.
  ///
  /// All writers must have flushed before, and their threads must store nothing more.
  package func finish(_ snapshot: Snapshot) throws(StoreError) -> StoredSnapshot {
    defer { abandon() }
    return try alone { () throws(StoreError) in
      try status.step { () throws(StoreError) in
        try settle()
        let unplaced = known.unplaced
        guard unplaced == 0 else {
          throw .invalid(repository.place, "\(unplaced) blobs are in a writer that was not flushed")
        }
        guard packs.areAllClosed else {
          throw .invalid(repository.place, "a pack that the snapshot needs was not closed")
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

  /// Saves the snapshot. If it has its name but may not be durable, which is neither a success nor
  /// a failure to write it, the error says so and names the snapshot.
  private func save(_ bytes: [UInt8], _ id: SnapshotID) throws(StoreError) {
    let path = RepositoryLayout.snapshot(id)
    do {
      try lease.save(bytes, as: path)
    } catch {
      guard error.code == .notDurable else { throw error }
      throw StoreError(
        .notDurable, "guarantee the durability of", subject: "snapshot \(id.hex.prefix(8))",
        reason: "it was written and is listed, but may not be durable: \(error.reason)",
        hint: "it may be lost after a power failure: check the system log and back up again",
        cause: error.cause)
    }
  }

  /// Checks that the snapshot can be read, for example that it is not too large.
  private func requireReadable(_ bytes: [UInt8], _ id: SnapshotID) throws(StoreError) {
    let reason: String
    do {
      _ = try StoredSnapshot(id: id, bytes: bytes)
      if bytes.count <= FormatLimit.snapshot { return }
      reason = "it would have \(bytes.count) bytes, more than \(FormatLimit.snapshot)"
    } catch { reason = "it cannot be read back: \(error.reason)" }
    throw .invalid("the snapshot in \(repository.place)", reason)
  }

  /// Closes the open packs, then writes an index object for all packs that have none.
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
    // In place, because there may be as many entries as a backup has small files.
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
