internal import Codecs
internal import SystemIO

/// One run that writes into a repository: a lease, what is known, and what is stored until the
/// snapshot makes it a backup.
///
/// A blob that the index (in packs that stay) or this run has is not stored again. Everything is
/// durable only when `finish` returns; after `abandon`, or an error of storage, whole packs of the
/// run may be left, which no snapshot needs. Not for two threads at once.
public final class WritingSession {
  public let repository: Repository
  let lease: Lease
  let known: IndexSet
  var packs: RunPacks
  var data: PackLane
  var trees: PackLane
  /// The writer of the file in hand, kept for its buffers.
  let files = FileWriter()
  /// The first failure; it ends the session.
  private var failure: StoreError?
  private var isOpen = true

  /// What the run has done so far.
  public internal(set) var statistics = WritingStatistics()

  init(_ repository: Repository) throws(StoreError) {
    let settings = repository.settings
    try settings.requireKnown(settings.features.write, for: "write", place: repository.place)
    let storage = repository.storage
    let lease = try Lease(storage)
    let listing = try RepositoryListing(storage, lease: lease)
    let objects = try IndexLoading.load(listing.indexes, from: storage)
    self.repository = repository
    self.lease = lease
    known = IndexSet(objects) { id in
      listing.packs.contains(id) && !listing.condemnedPacks.contains(id)
    }
    packs = RunPacks(storage: storage, lease: lease)
    data = try PackLane(frameLimit: FrameBuilder.dataLimit)
    trees = try PackLane(frameLimit: FrameBuilder.treeLimit)
  }

  /// Makes what was stored durable and then the snapshot: packs, index, snapshot, in this order.
  /// The session is over, whether it succeeds or fails.
  public func finish(_ snapshot: Snapshot) throws(StoreError) -> StoredSnapshot {
    defer { abandon() }
    return try work { () throws(StoreError) in
      try data.finish(into: &packs)
      try trees.finish(into: &packs)
      if let index = packs.index() {
        try save(index, as: RepositoryLayout.index(Blake2b.hash(index)))
      }
      statistics.packs = packs.count
      statistics.storedBytes = packs.storedBytes
      var snapshot = snapshot
      snapshot.totals.stored = packs.storedBytes
      let bytes = snapshot.encode()
      let id = Blake2b.hash(bytes)
      try save(bytes, as: RepositoryLayout.snapshot(id))
      return StoredSnapshot(id: id, snapshot: snapshot)
    }
  }

  private func save(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) {
    try lease.explained { () throws(StoreError) in
      try repository.storage.save(bytes, as: path, by: lease.path)
    }
  }

  /// Ends the run without a snapshot and removes what is unfinished.
  public func abandon() {
    guard isOpen else { return }
    isOpen = false
    data.discard()
    trees.discard()
    lease.release()
  }

  /// Runs a step of an open session. A failure other than of what the caller gave ends it: all
  /// later steps throw the same.
  func work<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    if let failure { throw failure }
    guard isOpen else { throw .invalid(repository.place, "the session is over") }
    do {
      return try body()
    } catch {
      if error.code != .invalid { failure = error }
      throw error
    }
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
  /// Packs made and their bytes; known at the end.
  public var packs = 0
  public var storedBytes: UInt64 = 0
}

extension Repository {
  /// Begins a run that writes: takes a lease, then lists and loads the index.
  public func beginWriting() throws(StoreError) -> WritingSession { try WritingSession(self) }
}
