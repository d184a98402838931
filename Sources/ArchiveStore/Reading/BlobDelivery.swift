internal import Codecs
internal import Synchronization
internal import SystemIO

extension RepositoryReader {
  /// Delivers data blobs to `threads` threads in pack order. Each frame is read and decoded once,
  /// each blob is verified against its hash, and the wanted blobs of a frame are delivered
  /// together. The uses must be sorted by item, then by offset.
  ///
  /// Damaged and missing blobs are reported to the sink and do not end the delivery. A blob that
  /// was moved in the meantime, or that has another copy, counts as missing here, but
  /// `readBlob(_:)` finds it. `isStopping` is called between frames. A thread holds one stored
  /// frame, and decoded frames of at most 8 MiB plus one.
  ///
  /// - Throws: the first error of a sink, or `StoreError` if the storage fails.
  package func deliver<Sink: BlobSink>(
    _ uses: [BlobUse], threads: Int, isStopping: @escaping @Sendable () -> Bool,
    to makeSink: @escaping @Sendable () throws -> Sink
  ) throws {
    let plan = try index.plan(uses)
    if !plan.missing.isEmpty {
      try makeSink().miss(plan.missing, .missing("\(plan.missing.count) blobs"))
    }
    let count = min(max(1, threads), plan.frames.count)
    let delivery = Delivery(plan, from: repository.storage, threads: count, isStopping: isStopping)
    guard count > 1 else {
      delivery.run(makeSink)
      return try delivery.finish()
    }
    let workers = try StoreError.wrap { () throws(SystemError) in
      try Workers(count: count, capacity: count, name: "read")
    }
    for _ in 0..<count { workers.submit { delivery.run(makeSink) } }
    workers.finish()
    try delivery.finish()
  }
}

/// A delivery that several threads work on. Each takes the next frames until none is left.
private final class Delivery: Sendable {
  private let plan: DeliveryPlan
  private let storage: any Storage
  private let isStopping: @Sendable () -> Bool
  /// The maximum number of frames that a thread takes at once; small if there are few frames.
  private let share: Int
  private let next = Atomic<Int>(0)
  private let failure = Mutex<(any Error)?>(nil)
  private let hasFailed = Atomic<Bool>(false)

  init(
    _ plan: DeliveryPlan, from storage: any Storage, threads: Int,
    isStopping: @escaping @Sendable () -> Bool
  ) {
    share = max(1, plan.frames.count / (4 * max(1, threads)))
    self.plan = plan
    self.storage = storage
    self.isStopping = isStopping
  }

  /// Throws the first failure, if there was one.
  func finish() throws {
    if let failure = failure.withLock({ $0 }) { throw failure }
  }

  /// Works until no frame is left or a thread has failed.
  func run<Sink: BlobSink>(_ makeSink: @Sendable () throws -> Sink) {
    do {
      let sink = try makeSink()
      var batch = try DeliveryBatch(storage)
      while try gather(&batch, sink) {
        try batch.verify(plan) { try sink.take($0, of: $1) }
        batch.clear()
      }
    } catch {
      failure.withLock { first in first = first ?? error }
      hasFailed.store(true, ordering: .relaxed)
    }
  }

  /// Fills a batch with the next frames. Returns false if there was none, or if the delivery has to
  /// end. Frames that cannot be read are reported to the sink.
  private func gather<Sink: BlobSink>(
    _ batch: inout DeliveryBatch, _ sink: Sink
  ) throws -> Bool {
    while batch.count < share, !batch.isFull {
      if hasFailed.load(ordering: .relaxed) || isStopping() { return false }
      let number = next.add(1, ordering: .relaxed).oldValue
      guard number < plan.frames.count else { break }
      do throws(StoreError) {
        try batch.add(plan.frames[number])
      } catch {
        guard error.kind == .damaged else { throw error }
        try sink.miss(plan.uses[plan.frames[number].uses].map(\.use), error)
      }
    }
    return batch.count > 0
  }
}
