internal import Codecs
internal import Synchronization
internal import SystemIO

extension WritingSession {
  /// Merges index objects if some are due and no other program is removing objects.
  ///
  /// A failure does not fail the backup: the merge is left to the next run. A merged object is
  /// durable and read back before the first object that it replaces is removed.
  func mergeIndexes() {
    do throws(StoreError) {
      guard mayMerge, try isMergeDue(), let right = try PruneLease(lease) else { return }
      defer { right.release() }
      try mergeIndexes(right)
    } catch {
      mergeFailure.withLock { $0 = error }
    }
  }

  /// Merges index objects for the holder of the right, in a store where writers do not: without
  /// rename, each of them would need several requests for the right.
  func mergeIndexes(holding right: PruneLease) {
    guard !storage.canRename, storage.canRead, supportsPruning else { return }
    do throws(StoreError) { try mergeIndexes(right) } catch { mergeFailure.withLock { $0 = error } }
  }

  private var storage: RepositoryStorage { repository.storage }

  /// Whether this program supports the prune features, which removing index objects requires.
  private var mayMerge: Bool { storage.canRename && storage.canRead && supportsPruning }

  private var supportsPruning: Bool {
    repository.settings.features.prune.allSatisfy(RepositorySettings.known.contains)
  }

  /// Whether a merge is due among the objects of all writers. On another host these are listed only
  /// if one is due among the objects that this session knows: a later run merges the others.
  private func isMergeDue() throws(StoreError) -> Bool {
    if storage.isOnAnotherHost, try plan(for: known.objects.map(\.id)).groups.isEmpty {
      return false
    }
    return try !plan(for: RepositoryListing.indexes(storage)).groups.isEmpty
  }

  /// Returns the merges due among objects, based on their sizes.
  private func plan(for ids: [Digest]) throws(StoreError) -> IndexMerge.Plan {
    var sizes = Dictionary(known.objects.map { ($0.id, Int(clamping: $0.storedSize)) }) {
      first, _ in first
    }
    guard ids.count > 1 else { return IndexMerge.Plan(sizes: []) }
    for id in ids where sizes[id] == nil {
      sizes[id] = try storage.status(storage.layout.index(id)).map { Int(clamping: $0.size) }
    }
    return IndexMerge.Plan(sizes: ids.compactMap { sizes[$0] })
  }

  private func mergeIndexes(_ right: PruneLease) throws(StoreError) {
    let index = try LoadedIndex.loadAll(from: storage, cache: cache, known: known.objects)
    var ids = index.ids
    for group in IndexMerge.Plan(sizes: index.objects.map { Int(clamping: $0.storedSize) }).groups {
      let objects = group.map { index.objects[$0] }
      guard let merged = try merge(objects, right) else { continue }
      let old = Set(objects.map(\.id)).subtracting([merged.id])
      guard try right.isHeld() else { break }
      known.replace(old, by: merged)
      for id in old { try lease.remove(index: id) }
      ids.subtract(old)
      ids.insert(merged.id)
    }
    cache?.retain(only: Array(ids))
  }

  /// Writes the merged object and reads it back. Returns nil if the objects cannot be merged.
  private func merge(
    _ objects: [IndexObject], _ right: PruneLease
  ) throws(StoreError) -> IndexObject? {
    let isPresent = try presence(of: Set(objects.flatMap(\.packIDs)))
    guard let merge = try IndexMerge(objects, isPresent: isPresent) else { return nil }
    return try write(merge, right)
  }

  /// Writes an index object again without some packs and removes the old one. The caller holds the
  /// right to remove objects.
  func rewrite(
    _ object: IndexObject, without packs: Set<Digest>, _ right: PruneLease
  ) throws(StoreError) {
    if !packs.isSuperset(of: object.packIDs) {
      let rest = try IndexMerge([object], without: packs) { _ in true }
      guard let rest, try write(rest, right) != nil else {
        try right.requireHeld()
        throw .damaged("\(storage.layout.index(object.id))", "its entries contradict each other")
      }
    }
    try right.requireHeld()
    try lease.remove(index: object.id)
  }

  private func write(
    _ merge: consuming IndexMerge, _ right: PruneLease
  ) throws(StoreError) -> IndexObject? {
    var merge = merge
    var object = try lease.explained { () throws(StoreError) in
      try storage.startEncoding(in: lease.path)
    }
    do {
      let isMerged = try merge.write { bytes throws(StoreError) in
        try lease.keepAlive()
        try object.append(bytes)
      }
      guard isMerged, try right.isHeld() else {
        object.discard()
        return nil
      }
      let id = try object.finish()
      try lease.explained { () throws(StoreError) in
        try lease.sending { () throws(StoreError) in
          try object.commit(as: storage.layout.index(id), id: id, isReadSoon: true)
        }
      }
      try lease.requireAlive(afterPutting: storage.layout.index(id))
      return try IndexObject.readAgain(id, from: storage, cache: cache)
    } catch {
      object.discard()
      throw error
    }
  }

  /// Returns a check for the existence of packs. Few packs are checked one by one, many with one
  /// listing.
  private func presence(
    of packs: Set<Digest>
  ) throws(StoreError) -> (Digest) throws(StoreError) -> Bool {
    if packs.count < RepositoryLayout.packDirectories.count {
      return { [storage] pack throws(StoreError) in
        try storage.status(storage.layout.pack(pack)) != nil
      }
    }
    let listed = try RepositoryListing.packs(storage)
    return { listed.contains($0) }
  }
}

extension WritingSession {
  /// Writes index objects for the packs that no index object names, so that this run relies on
  /// their content. They belong to runs that were killed before they wrote their index, or to runs
  /// in progress; both is allowed (docs/repository-format.md, "Rebuilding the index").
  ///
  /// Condemned packs, and those recorded as damaged, are not used. No pack disappears in between: a
  /// prune that condemns one of them after this session has begun waits for the session's lease.
  func adoptPacks() throws(StoreError) {
    let storage = repository.storage
    let excluded = try CondemnedObjects.intact(storage).packs
      .union(DamageRecords(storage).complete().packs.keys)
      .union(IndexSet(known.objects).packs)
    let packs = try RepositoryListing.packSizes(storage).filter { !excluded.contains($0.key) }
    guard !packs.isEmpty else { return }
    let rescue = try PackRescue(of: packs, in: storage) { () throws(StoreError) in
      try lease.keepAlive()
    }
    for object in rescue.objects {
      known.add(try lease.save(object), packs: [])
    }
  }
}
