internal import Codecs
internal import Synchronization
internal import SystemIO

/// Reads all blobs that snapshots need and verifies each against its hash.
final class CopyCheck: Sendable {
  private let repository: Repository
  private let search: UsedBlobSearch
  private let counters: ProgressCounters
  private let state = Mutex(Result())
  private let salvage: SalvageReader
  private let unreadable = UnreadablePacks()

  /// The result of a check.
  struct Result {
    /// The blobs that match their hashes, and their bytes.
    var blobs = 0
    var bytes: UInt64 = 0
    /// The blobs that no pack has intact.
    var lost: Set<BlobID> = []
    /// The errors of frames and packs that could not be read.
    var damaged: [StoreError] = []
    /// Whether packs remain because the check was interrupted.
    var isInterrupted = false
  }

  /// Prepares to read the blobs that a search has marked.
  init(_ repository: Repository, _ search: UsedBlobSearch, counters: ProgressCounters) {
    (self.repository, self.search, self.counters) = (repository, search, counters)
    salvage = SalvageReader(repository)
  }

  /// Reads the blobs of packs in some states on `threads` threads.
  func run(
    in states: Set<PruneIndex.PackState> = [.reliable, .condemned, .damaged], threads: Int,
    isStopping: @escaping @Sendable () -> Bool
  ) throws -> Result {
    let packs = PackUsage.packs(of: search, in: states).filter { $0.usedBlobs > 0 }
    counters.expect(files: packs.count, bytes: packs.reduce(0) { $0 + $1.used })
    let delivery = FrameDelivery(packs, from: repository.storage, isStopping: isStopping)
    let isDelivered = try delivery.run(threads: threads) { Receiver(check: self) }
    let isComplete = try isDelivered && searchUnreadable(isStopping: isStopping)
    return state.withLock { result in
      result.isInterrupted = !isComplete
      if !isComplete { result.damaged += unreadable.leftDamage }
      return result
    }
  }

  private struct Receiver: FrameDelivery.Receiver {
    let check: CopyCheck

    func begin(_ pack: FrameDelivery.Pack) -> (BlobRecord) -> Bool {
      check.counters.begin(ByteString("\(check.repository.storage.layout.pack(pack.id))"))
      return check.search.isUsed(in: pack.id)
    }

    func receive(_ frame: PackFrames.Frame) {
      check.counters.didHandle(bytes: UInt64(frame.stored.count))
      check.count(frame.used)
    }

    func reportMissing(
      _ blobs: [BlobRecord]?, of pack: FrameDelivery.Pack, _ error: StoreError
    ) throws(StoreError) -> Bool {
      guard let blobs else {
        check.unreadable.add(pack, error)
        return false
      }
      try check.search(for: blobs, error)
      return true
    }

    func end(_ pack: FrameDelivery.Pack) { check.counters.didHandle(files: 1) }

    func finish() {}
  }

  /// Looks for the blobs of the packs that could not be read. Returns false if it was interrupted.
  private func searchUnreadable(isStopping: () -> Bool) throws(StoreError) -> Bool {
    try unreadable.forEach(findingBlobs: search.blobs(in:), isStopping: isStopping) {
      pack, blobs throws(StoreError) in
      try search(for: blobs, pack.error)
      counters.didHandle(files: 1)
    }
  }

  private func count(_ blobs: [BlobRecord]) {
    state.withLock { result in
      result.blobs += blobs.count
      result.bytes += blobs.reduce(0) { $0 + UInt64($1.length) }
    }
  }

  /// Looks for blobs that could not be read from their pack in all packs.
  private func search(for blobs: [BlobRecord], _ error: StoreError) throws(StoreError) {
    // A pack removed by a prune of the target is not damage if its blobs are in other packs.
    var isDamage = error.code != .missing
    for blob in blobs {
      if try salvage.read(blob.id) != nil {
        count([blob])
      } else {
        isDamage = true
        state.withLock { _ = $0.lost.insert(blob.id) }
      }
    }
    guard isDamage else { return }
    counters.didFail()
    state.withLock { $0.damaged.append(error) }
  }
}
