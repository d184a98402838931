public import ArchiveStore
public import SystemIO

extension Repository {
  /// This host's copies of the repository's index, beside the state of its sources.
  ///
  /// - Parameter cache: the folder of caches, as `Host.cacheFolder`.
  public func indexCache(in cache: ByteString) -> IndexCache {
    IndexCache(folder: StateKey.folder(of: id, in: cache).appending("index"))
  }

  /// This host's file of the heads of the repository's snapshots, beside the state of its sources.
  ///
  /// - Parameter cache: the folder of caches, as `Host.cacheFolder`.
  public func headCache(in cache: ByteString) -> SnapshotHeadCache {
    SnapshotHeadCache(folder: StateKey.folder(of: id, in: cache))
  }
}
