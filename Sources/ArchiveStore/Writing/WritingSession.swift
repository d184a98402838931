package import Codecs
internal import Synchronization
internal import SystemIO

/// A run that writes to a repository: a lease, the known blobs, and the stored content that a
/// snapshot turns into a backup.
///
/// For several threads, each of which stores content through its own `ContentWriter`. A blob that
/// is in the index (in packs that stay) or in this run is not stored again. If two threads have the
/// same new blob, one stores it and the other relies on it, because a failure of any thread ends
/// the session for all. Nothing is guaranteed to be durable until `finish` returns. After
/// `abandon`, or an error of the storage, complete packs of the run may remain, which no snapshot
/// needs.
package final class WritingSession: Sendable {
  package let repository: Repository
  /// Whether no condemned object was listed. If so, content of an earlier snapshot that
  /// `holds(snapshot:)` finds can be relied on without checking each blob.
  package let canRelyOnLists: Bool

  /// The errors of faulty index objects. Blobs that only they name are stored again, unless this
  /// host has an intact copy of the object.
  package let damagedIndexes: [StoreError]

  let cache: IndexCache?
  let lease: Lease
  let status: RunStatus
  let known: KnownBlobs
  let packs: RunPacks
  let trees: TreePacker
  /// The capacity in bytes of unused frame buffers to keep for each worker.
  private static let keptBytes = 8 << 20

  /// Frames of large files that any thread may compress.
  let queue: FrameQueue
  let buffers: BufferPool
  /// The packers of file contents.
  let lanes: PackerPool

  /// The reason a due merge of index objects failed.
  let mergeFailure = Mutex<StoreError?>(nil)
  private let snapshots: Set<Digest>
  private let isReleased = Atomic<Bool>(false)
  private let ending = Mutex<Void>(())

  init(
    _ repository: Repository, workers: Int, cache: IndexCache?,
    packTarget: Int = PackWriter.target, hashes: (() -> PackHashes)? = PackerPool.usualHashes
  ) throws(StoreError) {
    let settings = repository.settings
    try settings.requireKnown(settings.features.write, for: "write", place: repository.place)
    let storage = repository.storage
    let workers = max(1, workers)
    lease = try Lease(storage)
    var started = try RepositoryListing(storage, lease: lease)
    cache?.invalidateVerification()
    let objects = try IndexLoading.load(started.indexes, from: storage, cache: cache)
    try started.finish(storage, indexed: objects.packSizes)
    let listing = started
    damagedIndexes = objects.faults.map(\.error)
    self.repository = repository
    self.cache = cache
    canRelyOnLists = !listing.hasCondemned
    snapshots = Set(listing.snapshots)
    status = RunStatus(place: repository.place)
    let index = IndexSet(objects.objects, relyingOn: listing.isReliable)
    known = KnownBlobs(index)
    packs = RunPacks(lease, status)
    queue = FrameQueue(workers: workers)
    buffers = BufferPool(
      sizes: FrameBuilder.bufferSizes, capacity: Self.keptBytes * workers)
    trees = try TreePacker(DataPacker(packs, known, isReadSoon: true))
    lanes = PackerPool(packs, known, workers: workers, target: packTarget, hashes: hashes)
  }

  deinit { abandon() }

  /// Creates the content writer of one thread.
  package func makeWriter() throws(StoreError) -> ContentWriter {
    try status.check()
    return try ContentWriter(self)
  }

  /// Begins to read stored content, through the same copies of the index.
  package func beginReading() throws(StoreError) -> RepositoryReader {
    try repository.beginReading(cache: cache)
  }

  /// Whether a blob is in the index, in a pack that may be relied on, or in this run.
  package func contains(_ blob: BlobID) -> Bool { known.contains(blob) }

  /// Updates the heartbeat if it is a minute old, during work that stores nothing. If that fails,
  /// the next store operation fails.
  package func keepAlive() { try? lease.keepAlive() }

  /// The packs that exist completely, are named by an index object, and are neither condemned nor
  /// recorded as damaged. While all of them exist, the repository has its earlier content.
  package var indexedPacks: Set<Digest> { known.packs }

  /// The reason a due merge of index objects failed. This is only worth a note.
  package var indexRemark: StoreError? { mergeFailure.withLock { $0 } }

  /// Whether a snapshot existed when the session listed the repository under its lease.
  package func holds(snapshot: SnapshotID) -> Bool { snapshots.contains(snapshot) }

  /// The statistics of the run so far.
  package var statistics: WritingStatistics {
    var statistics = known.statistics
    (statistics.packs, statistics.storedBytes) = packs.counts
    return statistics
  }

  /// Runs steps that only one thread may run at a time.
  func alone<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    try ending.withLock { _ throws(StoreError) in try body() }
  }

  /// Ends the run without a snapshot and removes unfinished objects. Steps of other threads throw
  /// from now on.
  package func abandon() {
    guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
    status.end()
    lanes.discard()
    trees.packs.discard()
    try? packs.wait()
    lease.release()
  }
}

/// The statistics of a run.
package struct WritingStatistics: Hashable, Sendable {
  /// The new blobs, and their bytes before compression.
  package var newBlobs: UInt64 = 0
  package var newBytes: UInt64 = 0
  /// The known blobs, and their bytes.
  package var knownBlobs: UInt64 = 0
  package var knownBytes: UInt64 = 0
  /// The durable packs, and their bytes.
  package var packs = 0
  package var storedBytes: UInt64 = 0

  mutating func countKnown(_ length: Int) {
    knownBlobs += 1
    knownBytes += UInt64(length)
  }
}

extension Repository {
  /// Begins a run that writes: takes a lease, then lists and opens the index, through this host's
  /// copies if there is a cache. At most `workers` threads may store content at the same time.
  package func beginWriting(
    workers: Int = 1, cache: IndexCache? = nil
  ) throws(StoreError) -> WritingSession {
    try WritingSession(self, workers: workers, cache: cache)
  }
}
