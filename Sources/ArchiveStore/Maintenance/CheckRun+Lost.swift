extension RepositoryCheck.Run {
  /// Returns the loss if no snapshot exists although this host knows some and there are packs; nil
  /// if nothing is lost.
  ///
  /// If only some of the known snapshots exist, another host has removed the others. It removes the
  /// last ones only on request, usually with a prune that removes the packs. This host knows those
  /// of the original of a mirror, whose first run may have ended before it copied a snapshot.
  func lostSnapshots() throws(StoreError) -> String? {
    let hasPacks = inventory.packs.keys.contains { !condemnedPacks.contains($0) }
    guard hasPacks, inventory.snapshots.isEmpty,
      !inventory.obstructedDirectories.contains(RepositoryLayout.snapshots)
    else { return nil }
    guard let loss = check.headCache?.loss, try !check.repository.isMirror()
    else { return nil }
    return loss
  }
}
