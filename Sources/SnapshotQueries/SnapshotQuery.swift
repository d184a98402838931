package import ArchiveStore

/// A repository that is open for queries of its snapshots.
package struct SnapshotQuery {
  package let repository: Repository
  package let watch: ReadingWatch
  private let finder: SnapshotFinder
  private let indexCache: () -> IndexCache?

  /// Creates a query.
  ///
  /// - Parameters:
  ///   - finder: the finder of the snapshots that the query names.
  ///   - watch: the progress of the reading.
  ///   - indexCache: opens this host's copies of the index when the reading begins.
  package init(
    _ repository: Repository, finder: SnapshotFinder, watch: ReadingWatch,
    indexCache: @escaping () -> IndexCache?
  ) {
    self.repository = repository
    self.finder = finder
    self.watch = watch
    self.indexCache = indexCache
  }

  /// Returns the named snapshot.
  package func find(_ name: SnapshotName) throws -> StoredSnapshot { try finder.find(name) }

  /// Returns the named snapshots, or all if none is named. All are reported to the finder.
  package func snapshots(named names: [SnapshotName] = []) throws -> SnapshotListing {
    if names.isEmpty { return try allSnapshots() }
    return SnapshotListing(try names.map { try finder.find($0) })
  }

  private func allSnapshots() throws(StoreError) -> SnapshotListing {
    let listing = try repository.snapshots()
    for stored in listing.snapshots.reversed() { finder.report(stored) }
    return listing
  }

  /// Begins reading through this host's copies of the index.
  package func beginReading() throws -> RepositoryReader {
    try repository.beginReading(cache: indexCache(), watch: watch)
  }

  /// Returns the statistics of the whole repository.
  package func statistics() throws -> RepositoryStatistics {
    _ = try allSnapshots()
    return try repository.statistics(cache: indexCache(), watch: watch)
  }
}
