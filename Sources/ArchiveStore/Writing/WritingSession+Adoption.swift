internal import Codecs
internal import SystemIO

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
      .union(DamageRecords(storage).packs.keys)
      .union(IndexSet(known.objects).packs)
    let packs = try RepositoryListing.packSizes(storage).filter { !excluded.contains($0.key) }
    guard !packs.isEmpty else { return }
    let rescue = try PackRescue(of: packs, in: storage) { () throws(StoreError) in
      try lease.keepAlive()
    }
    for object in rescue.objects {
      guard case .memory(let bytes) = object.bytes else { continue }
      try lease.save(Array(bytes), as: RepositoryLayout.index(object.id))
      known.add(object, packs: [])
    }
  }
}
