internal import Codecs
internal import Synchronization
internal import SystemIO

/// Copies the used blobs of packs to new packs. Frames whose blobs are all used move as they are,
/// without compression; of the others the used members are collected in new frames.
///
/// Every used blob is verified against its hash before it is copied. A pack in which one is damaged
/// is left as it is: its blobs stay where they are, and no copy replaces it.
final class PackRewriter: Sendable {
  private let session: WritingSession
  private let search: UsedBlobSearch
  private let right: PruneLease
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool
  private let queue: Mutex<[PrunePlan.Pack]>
  private let state = Mutex(State())

  private struct State {
    var result = Result()
    var failure: (any Error)?
  }

  /// The result of a rewrite.
  struct Result {
    /// The packs whose used blobs are all in other packs now.
    var rewritten: Set<Digest> = []
    /// The errors of damaged packs, which stay.
    var damaged: [StoreError] = []
    /// Whether packs remain because the rewrite was interrupted.
    var isInterrupted = false
  }

  init(
    _ session: WritingSession, rewriting packs: [PrunePlan.Pack], needs search: UsedBlobSearch,
    right: PruneLease, counters: ProgressCounters, isStopping: @escaping @Sendable () -> Bool
  ) {
    (self.session, self.search, self.right) = (session, search, right)
    (self.counters, self.isStopping) = (counters, isStopping)
    // The largest first, so that the threads end at the same time.
    queue = Mutex(packs.sorted { ($0.used, $0.id) < ($1.used, $1.id) })
    counters.expect(files: packs.count, bytes: packs.reduce(0) { $0 + $1.size })
  }

  /// Rewrites all packs on `threads` threads and makes the new ones durable, with an index object.
  /// After an interruption the packs that are done are in the result. The session must not rely on
  /// any pack that is rewritten or removed (`exclude`).
  func run(threads: Int) throws -> Result {
    let workers = try StoreError.wrap { () throws(SystemError) in
      try Workers(count: threads, capacity: threads, name: "rewrite")
    }
    for _ in 0..<threads { workers.submit { self.work() } }
    workers.finish()
    let state = state.withLock { $0 }
    if let failure = state.failure { throw failure }
    try session.checkpoint()
    return state.result
  }

  private func work() {
    do {
      let writer = try session.makeWriter()
      var reader = try PackFrames(session.repository.storage)
      while let pack = next() {
        try rewrite(pack, reading: &reader, to: writer)
        if session.checkpointIsDue { try session.checkpoint() }
      }
      try writer.flush()
    } catch {
      state.withLock { $0.failure = $0.failure ?? error }
    }
  }

  private func next() -> PrunePlan.Pack? {
    if state.withLock({ $0.failure != nil }) { return nil }
    guard let pack = queue.withLock({ $0.popLast() }) else { return nil }
    guard !isStopping() else {
      state.withLock { $0.result.isInterrupted = true }
      return nil
    }
    return pack
  }

  private func rewrite(
    _ pack: PrunePlan.Pack, reading reader: inout PackFrames, to writer: ContentWriter
  ) throws(StoreError) {
    counters.begin(ByteString("\(RepositoryLayout.pack(pack.id))"))
    guard try right.isHeld() else { throw PruneLease.lost(session.repository.place) }
    do throws(StoreError) {
      try reader.open(pack.id, size: pack.size)
      while var frame = try reader.next(where: isUsed(in: pack.id)) {
        try store(frame, writer)
        counters.didHandle(bytes: UInt64(frame.stored.count))
        reader.reuse(&frame)
      }
    } catch {
      guard error.kind == .damaged else { throw error }
      counters.didFail()
      state.withLock { $0.result.damaged.append(error) }
      return
    }
    counters.didHandle(files: 1)
    state.withLock { _ = $0.result.rewritten.insert(pack.id) }
  }

  /// Returns a check for blobs of which the pack holds the copy that stays.
  private func isUsed(in pack: Digest) -> (BlobRecord) -> Bool {
    { [search] record in
      guard let entry = search.index.find(record.id)?.entry,
        search.used.contains(Int(entry.number), of: Int(entry.object))
      else { return false }
      let object = search.index.objects[Int(entry.object)]
      guard let found = object.record(Int(entry.number)) else { return false }
      return object.pack(Int(found.pack)).id == pack
    }
  }

  private func store(_ frame: PackFrames.Frame, _ writer: ContentWriter) throws(StoreError) {
    let claimed = frame.used.filter {
      session.known.claim($0.id, length: Int($0.length))
    }
    guard !claimed.isEmpty else { return }
    if claimed.count == frame.blobs {
      try session.append(whole: frame.packFrame(claimed), isData: claimed[0].kind == .data)
    } else if claimed[0].kind == .data {
      try frame.forEachMember(of: claimed) { member, range, blobs throws(StoreError) in
        try writer.append(member, bytes: frame.plain.span.extracting(range), blobs: blobs)
      }
    } else {
      for blob in claimed { try session.append(Array(frame.plain[blob.place]), of: blob.id) }
    }
  }
}

extension WritingSession {
  /// No longer relies on packs, so that their blobs are stored again.
  func exclude(_ packs: Set<Digest>) { known.exclude(packs) }

  /// Appends a frame as it is to an open pack. The caller has claimed all of its blobs.
  func append(whole frame: PackFrame, isData: Bool) throws(StoreError) {
    try status.mustStep { () throws(StoreError) in
      if isData { try lanes.append(frame) } else { try trees.packs.append(frame) }
    }
  }
}
