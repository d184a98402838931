public import Codecs
internal import Synchronization
internal import SystemIO

/// One run that writes into a repository: a lease, what is known, and what is stored until the
/// snapshot makes it a backup.
///
/// For several threads: each stores contents through a `ContentWriter` of its own. A blob that the
/// index (in packs that stay) or this run has is not stored again; of two threads that have the
/// same new blob one stores it, and the other relies on it, for a failure of any thread ends the
/// session for all. Everything is durable only when `finish` returns; after `abandon`, or an error
/// of storage, whole packs of the run may be left, which no snapshot needs.
public final class WritingSession: Sendable {
  public let repository: Repository
  /// Whether no condemned object was listed: then contents that an earlier snapshot has, and that
  /// `holds(snapshot:)` finds, can be relied on without a look at each blob.
  public let canRelyOnLists: Bool

  /// Index objects that are amiss. What they alone name is not relied on, and stored again, but where
  /// the host has a whole copy.
  public let damagedIndexes: [StoreError]

  let cache: IndexCache?
  let lease: Lease
  let status: RunStatus
  let known: KnownBlobs
  let packs: RunPacks
  let trees: TreePacker
  /// Of frames' buffers that are not in use so many bytes are kept for each worker.
  private static let keptBytes = 8 << 20

  /// Frames of large files that any thread may compress.
  let queue: FrameQueue
  let buffers: BufferPool
  /// The ways of contents into packs.
  let lanes: PackerPool

  /// Why index objects that were due were not merged.
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

  /// Makes a way of storing contents for one thread.
  public func makeWriter() throws(StoreError) -> ContentWriter {
    try status.check()
    return try ContentWriter(self)
  }

  /// Begins to read what is stored already, by way of the same copies of the index.
  public func beginReading() throws(StoreError) -> RepositoryReader {
    try repository.beginReading(cache: cache)
  }

  /// Whether a blob is known to the index, in a pack that may be relied on, or to this run.
  public func contains(_ blob: BlobID) -> Bool { known.contains(blob) }

  /// Tells that work goes on, if the last time is a minute ago: for work that stores nothing. Where it
  /// cannot be told, the next thing that is stored fails.
  public func keepAlive() { try? lease.keepAlive() }

  /// The packs that are there in full, that an index object names, and that are neither condemned nor
  /// recorded as damaged. While none of them goes, what was in the repository is in it.
  public var indexedPacks: Set<Digest> { known.packs }

  /// Why index objects were not merged though that was due: worth a word, and no more.
  public var indexRemark: StoreError? { mergeFailure.withLock { $0 } }

  /// Whether a snapshot was there when the session had its lease and listed.
  public func holds(snapshot: SnapshotID) -> Bool { snapshots.contains(snapshot) }

  /// What the run has done so far.
  public var statistics: WritingStatistics {
    var statistics = known.statistics
    (statistics.packs, statistics.storedBytes) = packs.counts
    return statistics
  }

  /// Runs steps that only one thread may be in.
  func alone<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    try ending.withLock { _ throws(StoreError) in try body() }
  }

  /// Ends the run without a snapshot and removes what is unfinished. Other threads' steps throw
  /// from now on.
  public func abandon() {
    guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
    status.end()
    lanes.discard()
    trees.packs.discard()
    try? packs.wait()
    lease.release()
  }
}

/// What a run has done.
public struct WritingStatistics: Hashable, Sendable {
  /// Blobs that were not there before, and their bytes before compression.
  public var newBlobs: UInt64 = 0
  public var newBytes: UInt64 = 0
  /// Blobs that were there already, and their bytes.
  public var knownBlobs: UInt64 = 0
  public var knownBytes: UInt64 = 0
  /// Packs that are durable, and their bytes.
  public var packs = 0
  public var storedBytes: UInt64 = 0

  mutating func countKnown(_ length: Int) {
    knownBlobs += 1
    knownBytes += UInt64(length)
  }
}

extension Repository {
  /// Begins a run that writes: takes a lease, then lists and opens the index, by way of the host's
  /// copies if there is a cache. At most `workers` threads will store contents at the same time.
  public func beginWriting(
    workers: Int = 1, cache: IndexCache? = nil
  ) throws(StoreError) -> WritingSession {
    try WritingSession(self, workers: workers, cache: cache)
  }
}
