internal import ArchiveStore
internal import Backup
internal import PolicyEngine
internal import RemoteStorage
internal import SystemIO

/// A repository that a command has opened, on this host or another one.
struct OpenRepository {
  let repository: Repository
  /// Whether the command created it.
  var isNew = false

  /// The storage of the repository.
  var storage: RepositoryStorage { repository.storage }

  /// The warnings of the storage about what a crash can cost, as far as they are known.
  var warnings: [String] { (storage.base as? ReadAheadStorage)?.warnings ?? [] }

  /// Returns the directories of this host that no backup includes and no restore replaces: that of
  /// the repository, or none if it is on another host.
  func protectedDirectories() throws -> Set<FileIdentity> { try storage.protectedDirectories() }
}

extension Repository {
  /// This host's copies of the index; nil if there is no cache directory.
  var hostIndexCache: IndexCache? { Host.cacheDirectory.map { indexCache(in: $0) } }

  /// Returns the heads of all snapshots, through this host's cache of them.
  func hostHeads() throws(StoreError) -> SnapshotHeads { try heads(cache: hostHeadCache) }

  /// Returns the heads of all snapshots, through this host's cache of them, and the ids of pinned
  /// ones.
  func hostHeadsAndPins() throws(StoreError) -> (heads: SnapshotHeads, pins: Set<SnapshotID>) {
    try headsAndPins(cache: hostHeadCache)
  }

  /// This host's cache of snapshot heads; nil if there is no cache directory.
  var hostHeadCache: SnapshotHeadCache? { Host.cacheDirectory.map { headCache(in: $0) } }

  /// The directory of this host's files of the repository; nil if there is no cache directory.
  var hostDirectory: ByteString? { Host.cacheDirectory.map { hostDirectory(in: $0) } }

  /// This host's record of the packs that partial checks have read; nil if there is no cache
  /// directory.
  var hostCheckRounds: CheckRoundFile? { Host.cacheDirectory.map { checkRounds(in: $0) } }

  /// This host's record of the last successful run of a command with these options; nil if there is
  /// no cache directory.
  func hostRunStamp(of command: String, words: [String]) -> RunStamp? {
    Host.cacheDirectory.map { runStamp(of: command, words: words, in: $0) }
  }

  /// Whether the repository is in a bucket, which counts as hosted by another party.
  var isInBucket: Bool { !storage.canRename }

  /// The destination of backups to the repository, as policies distinguish destinations.
  var destination: Destination {
    Destination(isCloud: isInBucket, isUnencrypted: !isEncrypted)
  }

  /// The destination of a snapshot of the data that an operation is about to change. It includes
  /// the bundles even in a bucket, because without them the operation could not be undone.
  var safetyDestination: Destination { destination.withBundles }

  /// Begins reading for a restore, with each copy of the index verified against its id again. In a
  /// repository that can be written to, a lease keeps the packs that the restore may need.
  func beginCarefulReading() throws -> RepositoryReader {
    let cache = hostIndexCache
    cache?.prefetchVerification()
    let lease = try? ReaderLease(self)
    (storage.base as? ReadAheadStorage)?.listAhead(Self.listedByQueries)
    return try beginReading(cache: cache, lease: lease)
  }

  /// Begins reading in the same way, from another host without waiting for the lease. The restored
  /// snapshot must be passed to `RepositoryReader.requireKept(_:)`.
  func beginEarlyReading() throws -> RepositoryReader {
    guard let ahead = storage.base as? ReadAheadStorage else { return try beginCarefulReading() }
    let cache = hostIndexCache
    cache?.prefetchVerification()
    return try beginReading(cache: cache, early: EarlyLease(self, through: ahead.base))
  }
}
