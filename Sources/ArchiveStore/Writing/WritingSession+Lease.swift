internal import Codecs
internal import SystemIO

extension WritingSession {
  /// Takes a new lease after a program that removes packs marked this one as dead, and checks that
  /// all packs on which the session relies are still there, in the index, and not condemned. From
  /// then on they stay, as for a session that has just begun (docs/repository-format.md, "Stores
  /// without rename").
  ///
  /// - Throws: `busy` if one of them is gone or condemned: the next run stores again what is
  ///   missing.
  func renewLease() throws(StoreError) {
    try lease.renew()
    let storage = repository.storage
    let condemned = try CondemnedObjects.intact(storage)
    let index = try LoadedIndex.loadAll(from: storage, cache: cache, known: known.objects)
    let there = try RepositoryListing.packSizes(storage)
    let avoided = condemned.packs
    let gone = known.packs.subtracting(index.packSizes.keys)
    let needed = known.packs.union(packs.unindexed.map(\.pack.id))
    let lost = needed.count { there[$0] == nil || avoided.contains($0) || gone.contains($0) }
    guard lost == 0 else {
      throw StoreError(
        .busy, "finish the work in", subject: storage.location,
        reason: "no heartbeat was written for an hour, and another program is removing \(lost) "
          + "of the packs that this one relies on",
        hint: "run the command again: data stored so far is reused")
    }
    try lease.recordSeen(condemned.objects.keys.sorted())
  }
}
