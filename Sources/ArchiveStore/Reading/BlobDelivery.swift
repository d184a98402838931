internal import Codecs
internal import Synchronization
internal import SystemIO

extension RepositoryReader {
  /// Delivers blobs of data to `threads` threads in the order of the packs: each frame is read and
  /// decoded once, each blob held against its hash, those of some frames together, and what is wanted
  /// of a frame handed over together. Uses are given sorted by item, then by their place in it.
  ///
  /// What is damaged or missing is told to the sink and ends nothing; a blob that was moved meanwhile,
  /// or has another copy, counts as missing here, where `readBlob(_:)` finds it. Between frames it asks
  /// whether to stop. A thread holds one frame as stored, and decoded ones of 8 MiB and one more at most.
  ///
  /// - Throws: the first error that a sink threw, and `StoreError` when storage fails.
  public func deliver<Sink: BlobSink>(
    _ uses: [BlobUse], threads: Int, isStopping: @escaping @Sendable () -> Bool,
    to makeSink: @escaping @Sendable () throws -> Sink
  ) throws {
    let plan = try index.plan(uses)
    if !plan.missing.isEmpty {
      try makeSink().miss(plan.missing, .missing("\(plan.missing.count) blobs"))
    }
    let count = min(max(1, threads), plan.frames.count)
    let delivery = Delivery(plan, repository.storage, threads: count, isStopping)
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

/// A delivery that several threads work on: each takes the next frames until there is none.
private final class Delivery: Sendable {
  private let plan: DeliveryPlan
  private let storage: any Storage
  private let isStopping: @Sendable () -> Bool
  /// How many frames a thread takes together at most: few where few are to be had by all threads.
  private let share: Int
  private let next = Atomic<Int>(0)
  private let failure = Mutex<(any Error)?>(nil)
  private let hasFailed = Atomic<Bool>(false)

  init(
    _ plan: DeliveryPlan, _ storage: any Storage, threads: Int,
    _ isStopping: @escaping @Sendable () -> Bool
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

  /// Works until nothing is left, or somebody failed.
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

  /// Fills a batch with the next frames; false where there was none to take, or it has to end. What
  /// cannot be read is told to the sink.
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
