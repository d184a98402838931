internal import Codecs
internal import Synchronization
internal import SystemIO

/// Copies the used blobs of packs to new packs. Frames with no unused data, or within the limit for
/// it, move unchanged, without recompression. The used members of all others are collected in new
/// frames, those that the latest snapshots need apart from those that only older ones need: a
/// restore of a latest one then decodes less, and the data that becomes unused next is in separate
/// frames.
///
/// Every used blob is verified against its hash before it is copied. A pack in which one is damaged
/// is left unchanged: its blobs stay where they are, and no copy replaces it.
final class PackRewriter: Sendable {
  private let session: WritingSession
  private let search: UsedBlobSearch
  private let right: PruneLease
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool
  private let packs: [PrunePlan.Pack]
  private let limit: UnusedShare
  private let result = Mutex(Result())

  /// The result of a rewrite.
  struct Result {
    /// The packs whose used blobs are now all in other packs.
    var rewritten: Set<Digest> = []
    /// The errors of damaged packs, which stay.
    var damaged: [StoreError] = []
    /// Whether packs remain because the rewrite was interrupted.
    var isInterrupted = false
  }

  init(
    _ session: WritingSession, rewriting packs: [PrunePlan.Pack], movingUpTo limit: UnusedShare,
    needs search: UsedBlobSearch, right: PruneLease, counters: ProgressCounters,
    isStopping: @escaping @Sendable () -> Bool
  ) {
    (self.session, self.search, self.right, self.limit) = (session, search, right, limit)
    (self.counters, self.isStopping) = (counters, isStopping)
    // The largest first, so that the threads end at the same time.
    self.packs = packs.sorted { ($0.used, $0.id) > ($1.used, $1.id) }
    counters.expect(files: packs.count, bytes: packs.reduce(0) { $0 + $1.size })
  }

  /// Rewrites all packs on `threads` threads and makes the new ones durable, with an index object.
  /// After an interruption the packs that are done are in the result. The session must not rely on
  /// any pack that is rewritten or removed (`exclude`).
  func run(threads: Int) throws -> Result {
    let isComplete = try session.store(
      packs, from: session.repository.storage, movingUpTo: limit, threads: threads,
      isStopping: isStopping
    ) { writer throws(StoreError) in
      let older = (writer: try self.session.makeWriter(), contains: self.search.isOlder)
      return Receiver(rewriter: self, writers: FrameWriters(usual: writer, older: older))
    }
    return result.withLock { result in
      result.isInterrupted = !isComplete
      return result
    }
  }

  private struct Receiver: FrameDelivery.Receiver {
    let rewriter: PackRewriter
    let writers: FrameWriters

    private var session: WritingSession { rewriter.session }

    func begin(_ pack: FrameDelivery.Pack) throws(StoreError) -> (BlobRecord) -> Bool {
      rewriter.counters.begin(ByteString("\(session.repository.storage.layout.pack(pack.id))"))
      try rewriter.right.requireHeld()
      return rewriter.search.isUsed(in: pack.id)
    }

    func receive(_ frame: PackFrames.Frame) throws(StoreError) {
      _ = try session.store(frame, by: writers)
      rewriter.counters.didHandle(bytes: UInt64(frame.stored.count))
    }

    func reportMissing(
      _ blobs: [BlobRecord]?, of pack: FrameDelivery.Pack, _ error: StoreError
    ) -> Bool {
      rewriter.counters.didFail()
      rewriter.result.withLock { $0.damaged.append(error) }
      return false
    }

    func end(_ pack: FrameDelivery.Pack) throws(StoreError) {
      rewriter.counters.didHandle(files: 1)
      rewriter.result.withLock { _ = $0.rewritten.insert(pack.id) }
      if session.checkpointIsDue { try session.checkpoint() }
    }

    func finish() throws(StoreError) { try writers.flush() }
  }
}

extension UsedBlobSearch {
  /// Returns a check for the used blobs whose marked copy a pack holds.
  func isUsed(in pack: Digest) -> (BlobRecord) -> Bool {
    { record in
      guard let entry = index.find(record.id)?.entry,
        used.contains(Int(entry.number), of: Int(entry.object))
      else { return false }
      let object = index.objects[Int(entry.object)]
      guard let found = object.record(Int(entry.number)) else { return false }
      return object.pack(Int(found.pack)).id == pack
    }
  }
}

/// The writers of one thread for the used blobs of frames that do not move as they are.
struct FrameWriters {
  let usual: ContentWriter
  /// The writer of blobs that only older snapshots need, if these are apart.
  var older: (writer: ContentWriter, contains: (BlobRecord) -> Bool)?

  /// Divides blobs among the writers, in their order.
  fileprivate func divide(
    _ blobs: [BlobRecord]
  ) -> [(writer: ContentWriter, blobs: [BlobRecord])] {
    guard let older else { return [(usual, blobs)] }
    let apart = blobs.filter(older.contains)
    if apart.isEmpty { return [(usual, blobs)] }
    if apart.count == blobs.count { return [(older.writer, blobs)] }
    return [(usual, blobs.filter { !older.contains($0) }), (older.writer, apart)]
  }

  /// Writes everything that the writers have collected to packs.
  func flush() throws(StoreError) {
    try usual.flush()
    try older?.writer.flush()
  }
}

extension WritingSession {
  /// The result of storing a frame of another pack.
  enum StoredFrame {
    /// All blobs of the frame were new: it moved unchanged.
    case moved
    /// Some of its blobs were stored again in other frames.
    case partly
    /// None of it was new.
    case known
  }

  /// Stores the used blobs of packs through receivers, one with its own writer for each of the
  /// `threads` threads, and makes the new packs durable with an index object, even after an
  /// interruption. Returns false if it was interrupted.
  func store<Receiver: FrameDelivery.Receiver>(
    _ packs: [PrunePlan.Pack], from storage: RepositoryStorage,
    movingUpTo limit: UnusedShare = .none, threads: Int,
    isStopping: @escaping @Sendable () -> Bool,
    through makeReceiver: @escaping @Sendable (ContentWriter) throws(StoreError) -> Receiver
  ) throws -> Bool {
    let delivery = FrameDelivery(
      packs, from: storage, movingUpTo: limit, isStopping: isStopping)
    let isComplete = try delivery.run(threads: threads) { () throws(StoreError) in
      try makeReceiver(try self.makeWriter())
    }
    try checkpoint()
    return isComplete
  }

  /// Stores the used blobs of a frame that are new. If it may move, and all of its blobs are new,
  /// it moves unchanged, without compression. Its unused blobs then count as stored as well.
  func store(
    _ frame: PackFrames.Frame, by writers: FrameWriters
  ) throws(StoreError) -> StoredFrame {
    let all = frame.used + frame.unused
    // A blob that moved without being listed could never be removed.
    if frame.mayMove, known.claim(all: all) {
      try append(whole: frame.packFrame(all), isData: frame.used[0].kind == .data)
      return .moved
    }
    let claimed = frame.used.filter { known.claim($0.id, length: Int($0.length)) }
    guard !claimed.isEmpty else { return .known }
    guard claimed[0].kind == .data else {
      for blob in claimed { try append(Array(frame.plain[blob.range]), of: blob.id) }
      return .partly
    }
    for (writer, blobs) in writers.divide(claimed) {
      for part in frame.parts(of: blobs) {
        try writer.append(
          part.member, bytes: frame.plain.span.extracting(part.range), blobs: part.blobs)
      }
    }
    return .partly
  }

  /// Stops relying on packs, so that their blobs are stored again.
  func exclude(_ packs: Set<Digest>) { known.exclude(packs) }

  /// Appends an unchanged frame to an open pack. The caller has claimed all of its blobs.
  private func append(whole frame: PackFrame, isData: Bool) throws(StoreError) {
    try status.mustStep { () throws(StoreError) in
      if isData { try packers.append(frame) } else { try trees.packs.append(frame) }
    }
  }
}
