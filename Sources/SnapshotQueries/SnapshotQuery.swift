package import ArchiveStore
package import SystemIO

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
  ///
  /// - Parameter fits: whether a snapshot can have the path that is named with it.
  package func find(
    _ name: SnapshotName, fitting fits: @escaping (SnapshotHead) -> Bool = { _ in true }
  ) throws -> StoredSnapshot {
    try finder.find(name, fitting: fits)
  }

  /// The heads of the snapshots to search, and the errors of those that cannot be read.
  package typealias Found = (heads: [SnapshotHead], damaged: [StoreError])

  /// Returns the heads of the named snapshots, or of all if none is named. A snapshot that several
  /// of the names refer to is returned once.
  package func heads(named names: [SnapshotName] = []) throws -> Found {
    guard names.isEmpty else {
      var seen: Set<SnapshotID> = []
      let heads = try names.map { SnapshotHead(try finder.find($0)) }
      return (heads.filter { seen.insert($0.id).inserted }, [])
    }
    let all = try finder.all()
    return (all.heads, all.damaged)
  }

  /// Begins reading through this host's copies of the index.
  ///
  /// - Parameter takesLease: whether packs that the reader may need are kept until it is
  ///   deallocated, if the repository can be written to.
  package func beginReading(takesLease: Bool = false) throws -> RepositoryReader {
    let lease = takesLease ? ReaderLease.ifPossible(repository) : nil
    return try repository.beginReading(cache: indexCache(), watch: watch, lease: lease)
  }

  /// Returns the growth of the repository over all snapshots.
  ///
  /// - Parameter report: receives each tree or list that cannot be read, with a path that leads to
  ///   it.
  package func growth(
    unreadable report: (ByteString, StoreError) -> Void
  ) throws -> RepositoryGrowth {
    try repository.growth(
      of: finder.all(), cache: indexCache(), watch: watch, unreadable: report)
  }

  /// Returns the statistics of the whole repository.
  package func statistics() throws -> RepositoryStatistics {
    try repository.statistics(of: finder.all(), cache: indexCache(), watch: watch)
  }
}
