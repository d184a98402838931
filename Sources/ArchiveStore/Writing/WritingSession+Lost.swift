extension WritingSession {
  /// Returns the error if no snapshot exists although this host knows some and there are packs. It
  /// is used as a warning: the run adds a snapshot, after which the others are no longer known.
  ///
  /// - Parameter cache: the host's cache of snapshot heads.
  package func lostSnapshots(cache: SnapshotHeadCache?) -> StoreError? {
    guard snapshots.isEmpty, !indexedPacks.isEmpty, let reason = cache?.loss else { return nil }
    return StoreError(
      .missing, "find the earlier", subject: "\(RepositoryLayout.snapshots)", reason: reason,
      hint: "if nobody removed them, copy the files in snapshots/ again from a copy of the "
        + "repository, for example a mirror, and run no prune before")
  }
}
