public import Codecs
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
public final class WritingSession: Sendable {
  public let repository: Repository
  /// Whether no condemned object was listed. If so, content of an earlier snapshot that
  /// `holds(snapshot:)` finds can be relied on without checking each blob.
  public let canRelyOnLists: Bool

  /// The errors of faulty index objects. Blobs that only they name are stored again, unless this
  /// host has an intact copy of the object.
  public let damagedIndexes: [StoreError]

  /// The errors of the damaged condemned objects, which were removed.
  public let damagedCondemned: [StoreError]

  let cache: IndexCache?
  let lease: Lease
  /// Keeps the lease alive while the run waits: for a slow source, an answer, a program.
  private let heartbeat: LeaseHeartbeat
  let status: RunStatus
  let known: KnownBlobs
  let packs: RunPacks
  let trees: TreePacker
  /// The capacity in bytes of unused frame buffers to keep for each worker.
  private static let keptBytes = 8 << 20

  /// Frames of large files that any thread may compress.
  let queue: ContentWriter.FrameQueue
  let buffers: BufferPool
  /// The packers of file contents.
  let packers: PackerPool

  /// The reason a due merge of index objects failed.
  let mergeFailure = Mutex<StoreError?>(nil)
  private let listObserver = Mutex<(@Sendable (StoredList) -> Void)?>(nil)
  /// The snapshots that existed when the session listed the repository under its lease.
  let snapshots: Set<Digest>
  private let snapshotStatuses: [Digest: ObjectStatus]?
  /// The last snapshot that was saved, and its stored size in bytes.
  private let lastSaved = Mutex<(id: SnapshotID, size: UInt64)?>(nil)
  private let isReleased = Atomic<Bool>(false)
  private let ending = Mutex<Void>(())

  init(
    _ repository: Repository, workers: Int, cache: IndexCache?,
    packTarget: Int = PackWriter.target,
    hasher: (() -> MultiStreamHasher)? = MultiStreamHasher.usual,
    timing: LeaseHeartbeat.Timing = LeaseHeartbeat.Timing()
  ) throws(StoreError) {
    try repository.requireKnownFeatures(for: .write)
    let storage = repository.storage
    let workers = max(1, workers)
    let lease = try Lease(storage, clock: timing.clock)
    self.lease = lease
    heartbeat = try LeaseHeartbeat(milliseconds: timing.milliseconds) { try? lease.keepAlive() }
    let leased = Host.bootSeconds()
    let isShown = storage.isOnAnotherHost
    if !isShown { try repository.requireCurrent("write to") }
    var started = try RepositoryListing(repository, lease: lease)
    if isShown, !repository.isCurrent(by: started, leased: leased) {
      try repository.requireCurrent("write to")
    }
    cache?.invalidateVerification()
    let objects = try LoadedIndex.load(
      started.indexes, from: storage, cache: cache, sizes: started.indexSizes)
    try started.finish(
      storage, indexed: objects.packSizes, listed: objects.packs(of: Set(started.indexes)))
    let listing = started
    if !storage.canRead { cache?.retain(naming: listing.packs) }
    damagedIndexes = objects.faults.map(\.error)
    damagedCondemned = listing.damagedCondemned
    self.repository = repository
    self.cache = cache
    canRelyOnLists = !listing.hasCondemned
    snapshots = Set(listing.snapshots)
    snapshotStatuses = listing.snapshotStatuses
    status = RunStatus(location: repository.location)
    let index = IndexSet(objects.objects, relyingOn: listing.isReliable)
    known = KnownBlobs(index)
    packs = RunPacks(lease, status)
    queue = ContentWriter.FrameQueue(workers: workers)
    buffers = BufferPool(
      sizes: FrameBuilder.bufferSizes, capacity: Self.keptBytes * workers)
    trees = try TreePacker(DataPacker(packs, known, isReadSoon: true))
    packers = PackerPool(packs, known, workers: workers, target: packTarget, hasher: hasher)
  }

  deinit { abandon() }

  /// Creates the content writer of one thread.
  public func makeWriter() throws(StoreError) -> ContentWriter {
    try status.check()
    return try ContentWriter(self)
  }

  /// Begins to read stored content, through the same copies of the index.
  public func beginReading() throws(StoreError) -> RepositoryReader {
    try repository.beginReading(cache: cache)
  }

  /// Whether a blob is in the index, in a pack that may be relied on, or in this run.
  public func contains(_ blob: BlobID) -> Bool { known.contains(blob) }

  /// The packs that exist completely, are named by an index object, and are neither condemned nor
  /// recorded as damaged. While all of them exist, the repository has its earlier content.
  public var indexedPacks: Set<Digest> { known.packs }

  /// The reason a due merge of index objects failed, which deserves only a note.
  public var indexRemark: StoreError? { mergeFailure.withLock { $0 } }

  /// Whether a snapshot existed when the session listed the repository under its lease.
  public func holds(snapshot: SnapshotID) -> Bool { snapshots.contains(snapshot) }

  /// Returns the earlier runs of a source among the snapshots that existed when the session listed
  /// the repository under its lease.
  public func history(
    of source: Digest, scope: Scope, cache: SnapshotHeadCache?
  ) throws(StoreError) -> Repository.SourceHistory {
    try repository.history(
      of: source, scope: scope, cache: cache, in: snapshots, statuses: snapshotStatuses)
  }

  /// The statistics of the run so far.
  public var statistics: Statistics {
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
  public func abandon() {
    guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
    status.end()
    packers.discard()
    trees.packs.discard()
    try? packs.wait()
    heartbeat.finish()
    lease.release()
  }
}

extension WritingSession {
  /// A list of a large file's pieces that was stored.
  public struct StoredList: Sendable {
    public let digest: Digest
    /// The bytes of the list's blob.
    public let bytes: [UInt8]
    /// The lists that it consists of; none if it lists data.
    public let lists: [Digest]
  }

  /// The statistics of a run.
  public struct Statistics: Hashable, Sendable {
    /// The new blobs, and their bytes before compression.
    public var newBlobs: UInt64 = 0
    public var newBytes: UInt64 = 0
    /// The known blobs, and their bytes.
    public var knownBlobs: UInt64 = 0
    public var knownBytes: UInt64 = 0
    /// The durable packs, and their bytes.
    public var packs = 0
    public var storedBytes: UInt64 = 0

    mutating func countKnown(_ length: Int) {
      knownBlobs += 1
      knownBytes += UInt64(length)
    }
  }
}

extension Repository {
  /// Begins a run that writes: takes a lease, then lists and opens the index, through this host's
  /// copies if there is a cache. At most `workers` threads may store content at the same time.
  public func beginWriting(
    workers: Int = 1, cache: IndexCache? = nil
  ) throws(StoreError) -> WritingSession {
    try WritingSession(self, workers: workers, cache: cache)
  }
}

extension WritingSession {
  /// Stores a directory of complete entries, in any order, and returns its reference. The same
  /// entries have the same reference on every host. Safe to call from any thread.
  ///
  /// - Throws: `invalid` for two entries of the same name, and for an invalid entry.
  public func storeTree(_ entries: [TreeEntry]) throws(StoreError) -> TreeReference {
    try storeTree(EncodedDirectory(entries))
  }

  /// Stores a directory of encoded entries and returns its reference. Safe to call from any thread.
  public func storeTree(_ directory: EncodedDirectory) throws(StoreError) -> TreeReference {
    try status.step { () throws(StoreError) in
      try lease.keepAlive()
      let pages = TreeCoding.pages(of: directory)
      var table: [TreeBlob.Page] = []
      for page in pages {
        let bytes = TreeCoding.encodePage(page.lazy.map { directory.entry($0) })
        let digest = try store(bytes, kind: .tree)
        if pages.count == 1 { return TreeReference(digest) }
        table.append(TreeBlob.Page(last: directory.name(page.upperBound - 1), digest: digest))
      }
      return TreeReference(try store(TreeCoding.encodeTable(table), kind: .tree))
    }
  }

  /// Stores a list of a large file's pieces.
  func storeList(level: UInt8, pieces: [Piece]) throws(StoreError) -> Digest {
    let bytes = ContentCoding.encodeList(level: level, pieces: pieces)
    let digest = try store(bytes, kind: .list)
    if let observer = listObserver.withLock({ $0 }) {
      let lists = level == 0 ? [] : pieces.compactMap(\.digest)
      observer(StoredList(digest: digest, bytes: bytes, lists: lists))
    }
    return digest
  }

  /// Passes each list of a large file's pieces that is stored from now on to `observer`, even if
  /// the repository already has it. It is called by any thread.
  public func observeLists(_ observer: @escaping @Sendable (StoredList) -> Void) {
    listObserver.withLock { $0 = observer }
  }

  /// Stores a tree or a list unless it is known, and returns its digest.
  func store(_ bytes: [UInt8], kind: BlobKind) throws(StoreError) -> Digest {
    let id = BlobID(kind: kind, digest: Blake2b.hash(bytes))
    guard known.claim(id, length: bytes.count) else { return id.digest }
    try append(bytes, of: id)
    return id.digest
  }

  /// Adds a tree or a list that the caller has claimed.
  func append(_ bytes: [UInt8], of id: BlobID) throws(StoreError) {
    let blob = PackFrame.Blob(id: id, offset: 0, length: bytes.count)
    try status.mustStep { () throws(StoreError) in
      try trees.append(PackMembers.single(id, size: bytes.count), bytes: bytes, blob: blob)
    }
  }

  /// Whether a checkpoint is due: since the last one, 512 MiB of packs were finished, five minutes
  /// have passed, or 262,144 blobs were stored, which stay in memory until then.
  public var checkpointIsDue: Bool {
    packs.isIndexDue || known.unindexed >= FormatLimit.blobsPerPack
  }

  /// Makes complete frames durable and writes an index object for them, so that a run interrupted
  /// later need not store them again. Other threads may continue to store; content still in their
  /// writers is not included.
  public func checkpoint() throws(StoreError) {
    try alone { () throws(StoreError) in
      try status.mustStep { () throws(StoreError) in try settle() }
      mergeIndexes()
    }
  }

  /// Makes the stored content and then the snapshot durable: packs, index, snapshot, in this order.
  /// Merges index objects if that is due. The session ends, whether this succeeds or fails.
  ///
  /// All writers must have flushed before, and their threads must store nothing more.
  public func finish(_ snapshot: Snapshot) throws(StoreError) -> StoredSnapshot {
    defer { abandon() }
    return try alone { () throws(StoreError) in
      try status.step { () throws(StoreError) in
        try settle()
        try requireSettled()
        var snapshot = snapshot
        snapshot.totals.stored = packs.counts.bytes
        let stored = try save(snapshot, renewing: true)
        mergeIndexes()
        return stored
      }
    }
  }

  /// Checks that everything stored so far is in durable packs that an index object names.
  ///
  /// - Throws: `invalid` if a writer was not flushed or a pack was not closed.
  func requireSettled() throws(StoreError) {
    let unplaced = known.unplaced
    guard unplaced == 0 else {
      throw .invalid(repository.location, "\(unplaced) blobs are in a writer that was not flushed")
    }
    guard packs.areAllClosed else {
      throw .invalid(repository.location, "a pack that the snapshot needs was not closed")
    }
  }

  /// Saves a snapshot whose content is durable, signed by this host if it has a key.
  func save(
    _ snapshot: Snapshot, isSigned: Bool = true, renewing: Bool = false
  ) throws(StoreError) -> StoredSnapshot {
    let key = isSigned ? repository.signingKey?() : nil
    let id = try save(encoded: snapshot.encode(signedBy: key), renewing: renewing)
    guard let key else { return StoredSnapshot(id: id, snapshot: snapshot) }
    return StoredSnapshot(id: id, snapshot: snapshot, signature: .valid(key.signer))
  }

  /// Adds the head of the snapshot that this session has just made to this host's cache, so that no
  /// command has to read it, and a host that cannot read finds it.
  public func record(_ stored: StoredSnapshot, in cache: SnapshotHeadCache) {
    guard let saved = lastSaved.withLock({ $0 }), saved.id == stored.id else { return }
    repository.record(stored, size: saved.size, in: cache)
  }

  /// Saves a snapshot, from its content, whose blobs are durable.
  func save(encoded bytes: [UInt8], renewing: Bool = false) throws(StoreError) -> SnapshotID {
    let object = try repository.storage.encode(bytes)
    try requireReadable(bytes, object.id)
    try save(object, renewing: renewing)
    return object.id
  }

  /// Saves the snapshot. If it has its name but may not be durable, which is neither success nor
  /// failure, the error reports that and names the snapshot.
  ///
  /// - Parameter renewing: whether everything that the snapshot needs is known to this session, so
  ///   that a dead lease can be replaced.
  func save(_ object: EncodedObject, renewing: Bool = false) throws(StoreError) {
    do {
      try lease.commit(object) { () throws(StoreError) in
        guard renewing else { throw Lease.lost(repository.location) }
        try renewLease()
      }
      lastSaved.withLock { $0 = (object.id, object.size) }
    } catch {
      guard error.code == .notDurable else { throw error }
      throw StoreError(
        .notDurable, "guarantee the durability of", subject: "snapshot \(object.id.hex.prefix(8))",
        reason: "it was written and is listed, but may not be durable: \(error.reason)",
        hint: "it may be lost after a power failure: check the system log and back up again",
        cause: error.cause)
    }
  }

  /// Checks that the snapshot can be read, for example that it is not too large.
  private func requireReadable(_ bytes: [UInt8], _ id: SnapshotID) throws(StoreError) {
    let reason: String
    do {
      _ = try StoredSnapshot(id: id, content: bytes, object: "the snapshot")
      if bytes.count <= FormatLimit.snapshot { return }
      reason = "it would have \(bytes.count) bytes, more than \(FormatLimit.snapshot)"
    } catch { reason = "it cannot be read back: \(error.reason)" }
    throw .invalid("the snapshot in \(repository.location)", reason)
  }

  /// Closes the open packs, then writes an index object for all packs that have none.
  private func settle() throws(StoreError) {
    try trees.flush()
    var open = (packers.all + [trees.packs]).compactMap { $0.detachOpen() }
    let last = open.popLast()
    for pack in open { try packs.closeSoon(pack) }
    if let last { try packs.close(last) }
    try packs.wait()
    try saveIndex()
  }

  private func saveIndex() throws(StoreError) {
    let finished = packs.unindexed
    guard !finished.isEmpty else { return }
    let numbers = Set(finished.map { UInt32($0.number) })
    let indexes = Dictionary(
      uniqueKeysWithValues: finished.enumerated().map { (UInt32($1.number), UInt32($0)) })
    // In place, because there may be one entry for each small file of the backup.
    var records = known.records(ofPacks: numbers)
    for number in records.indices {
      records[number].pack = indexes[records[number].pack] ?? records[number].pack
    }
    let bytes = IndexBuilder(packs: finished.map(\.pack), records: records).encode()
    let stored = try repository.storage.encode(bytes)
    try lease.save(stored.bytes, as: repository.storage.layout.index(stored.id)) {
      () throws(StoreError) in try renewLease()
    }
    let object: IndexObject
    if let copy = cache?.add(stored, content: bytes, cipher: repository.storage.cipher) {
      object = copy
    } else {
      object = try IndexObject(
        id: stored.id, content: SpillableArray(bytes), storedSize: stored.size)
    }
    known.add(object, packs: numbers)
    packs.recordIndexed(finished.map(\.number))
  }
}
