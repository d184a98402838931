package import ArchiveStore
package import SystemIO

extension Repository {
  /// Returns this host's copies of the repository's index, beside the state of its sources.
  ///
  /// - Parameter cache: the cache directory, as in `Host.cacheDirectory`.
  package func indexCache(in cache: ByteString) -> IndexCache {
    IndexCache(directory: StateKey.directory(of: id, in: cache).appending("index"))
  }

  /// Returns this host's file of the heads of the repository's snapshots, beside the state of its
  /// sources.
  ///
  /// - Parameter cache: the cache directory, as in `Host.cacheDirectory`.
  package func headCache(in cache: ByteString) -> SnapshotHeadCache {
    SnapshotHeadCache(directory: StateKey.directory(of: id, in: cache))
  }
}
