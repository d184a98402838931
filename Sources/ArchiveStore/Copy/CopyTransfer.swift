internal import Codecs
internal import Synchronization
internal import SystemIO

/// Moves the wanted blobs of a source's packs into new packs of a session. A frame whose blobs are
/// all wanted and new moves unchanged, without recompression.
///
/// Every blob is verified against its hash. If a frame or a pack cannot be read, each of its blobs
/// is looked for in all packs of the source; blobs that no pack has are lost.
final class CopyTransfer: Sendable {
  private let source: Repository
  private let session: WritingSession
  private let search: UsedBlobSearch
  private let counters: ProgressCounters
  private let result = Mutex(Result())
  private let salvage: SalvageReader
  private let unreadable = UnreadablePacks()

  /// The result of a transfer.
  struct Result {
    /// The frames that moved unchanged, and those that were stored again only in part.
    var movedFrames = 0
    var partFrames = 0
    /// The wanted blobs that no pack of the source has.
    var lost: Set<BlobID> = []
    /// The errors of frames and packs that could not be read.
    var damaged: [StoreError] = []
    /// Whether packs remain because the transfer was interrupted.
    var isInterrupted = false
  }

  /// Prepares to copy the blobs that a search has marked.
  init(
    from source: Repository, into session: WritingSession, _ search: UsedBlobSearch,
    counters: ProgressCounters
  ) {
    (self.source, self.session, self.search) = (source, session, search)
    (self.counters, salvage) = (counters, SalvageReader(source))
  }

  /// Copies the blobs on `threads` threads, and makes them durable with an index object, even after
  /// an interruption.
  func run(
    _ packs: [PrunePlan.Pack], threads: Int, isStopping: @escaping @Sendable () -> Bool
  ) throws -> Result {
    counters.expect(files: packs.count, bytes: packs.reduce(0) { $0 + $1.used })
    let isComplete = try session.store(
      packs, from: source.storage, threads: threads, isStopping: isStopping
    ) { Receiver(transfer: self, writer: $0) }
    let isSalvaged = try isComplete && salvageUnreadable(isStopping: isStopping)
    try session.requireSettled()
    return result.withLock { result in
      result.isInterrupted = !isSalvaged
      if !isSalvaged { result.damaged += unreadable.leftDamage }
      return result
    }
  }

  /// Stores the blobs of the packs that could not be read, from any pack that has them. Returns
  /// false if it was interrupted.
  private func salvageUnreadable(isStopping: () -> Bool) throws(StoreError) -> Bool {
    if unreadable.isEmpty { return true }
    let writer = try session.makeWriter()
    let isComplete = try unreadable.forEach(
      findingBlobs: search.blobs(in:), isStopping: isStopping
    ) { pack, blobs throws(StoreError) in
      try salvage(blobs, after: pack.error, to: writer)
      counters.didHandle(files: 1)
      if session.checkpointIsDue { try session.checkpoint() }
    }
    try writer.flush()
    try session.checkpoint()
    return isComplete
  }

  private struct Receiver: FrameDelivery.Receiver {
    let transfer: CopyTransfer
    let writer: ContentWriter

    private var session: WritingSession { transfer.session }

    func begin(_ pack: FrameDelivery.Pack) -> (BlobRecord) -> Bool {
      transfer.counters.begin(ByteString("\(transfer.source.storage.layout.pack(pack.id))"))
      return transfer.search.isUsed(in: pack.id)
    }

    func receive(_ frame: PackFrames.Frame) throws(StoreError) {
      let stored = try session.store(frame, by: FrameWriters(usual: writer))
      transfer.counters.didHandle(bytes: UInt64(frame.stored.count))
      transfer.result.withLock { result in
        if stored == .moved { result.movedFrames += 1 }
        if stored == .partly { result.partFrames += 1 }
      }
    }

    func reportMissing(
      _ blobs: [BlobRecord]?, of pack: FrameDelivery.Pack, _ error: StoreError
    ) throws(StoreError) -> Bool {
      guard let blobs else {
        transfer.unreadable.add(pack, error)
        return false
      }
      try transfer.salvage(blobs, after: error, to: writer)
      return true
    }

    func end(_ pack: FrameDelivery.Pack) throws(StoreError) {
      transfer.counters.didHandle(files: 1)
      if session.checkpointIsDue { try session.checkpoint() }
    }

    func finish() throws(StoreError) { try writer.flush() }
  }

  /// Stores blobs that could not be read from their pack, from any pack that has them.
  private func salvage(
    _ blobs: [BlobRecord], after error: StoreError, to writer: ContentWriter
  ) throws(StoreError) {
    // A pack that a prune of the source removed is not damage if its blobs are in other packs.
    var isDamage = error.code != .missing
    for blob in blobs where !session.contains(blob.id) {
      guard let bytes = try salvage.read(blob.id) else {
        isDamage = true
        result.withLock { _ = $0.lost.insert(blob.id) }
        continue
      }
      _ = try writer.storeBytes(bytes, kind: blob.kind)
    }
    guard isDamage else { return }
    counters.didFail()
    result.withLock { $0.damaged.append(error) }
  }
}
