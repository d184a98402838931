package import ArchiveStore

extension Repository {
  /// Lists and reads all snapshots. A damaged snapshot does not affect the others.
  package func snapshots() throws(StoreError) -> SnapshotListing {
    try snapshots(cache: nil) { _ in true }
  }
}
