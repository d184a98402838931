extension RepositoryCheck.Run {
  /// The loss if no snapshot exists although this host knows some and there are packs; nil if
  /// nothing is.
  ///
  /// If only some of the known snapshots exist, another host has removed the others. It removes the
  /// last ones only on request, usually with a prune that removes the packs.
  var lostSnapshots: String? {
    let hasPacks = inventory.packs.keys.contains { !condemnedPacks.contains($0) }
    guard hasPacks, inventory.snapshots.isEmpty,
      !inventory.obstructedDirectories.contains(RepositoryLayout.snapshots)
    else { return nil }
    return check.headCache?.loss
  }
}
