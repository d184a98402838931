internal import Codecs
internal import Synchronization
internal import SystemIO

extension RepositoryReader {
  /// Delivers blobs of data to `threads` threads in the order of the packs: each frame is read and
  /// decoded once, each blob held against its hash, and what is wanted of a frame handed over
  /// together. Uses are given sorted by item, then by their place in it.
  ///
  /// What is damaged or missing is told to the sink and ends nothing; a blob that was moved meanwhile,
  /// or has another copy, counts as missing here, where `readBlob(_:)` finds it. Between frames it asks
  /// whether to stop. A thread holds one frame, as stored and decoded.
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
    let delivery = Delivery(plan, repository.storage, isStopping)
    let count = min(max(1, threads), plan.frames.count)
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

/// A delivery that several threads work on: each takes the next frame until there is none.
private final class Delivery: Sendable {
  private let plan: DeliveryPlan
  private let storage: any Storage
  private let isStopping: @Sendable () -> Bool
  private let next = Atomic<Int>(0)
  private let failure = Mutex<(any Error)?>(nil)
  private let hasFailed = Atomic<Bool>(false)

  init(_ plan: DeliveryPlan, _ storage: any Storage, _ isStopping: @escaping @Sendable () -> Bool) {
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
      var decoder = try FrameDecoder(storage)
      var buffer: [UInt8] = []
      while !hasFailed.load(ordering: .relaxed), !isStopping() {
        let number = next.add(1, ordering: .relaxed).oldValue
        guard number < plan.frames.count else { return }
        try deliver(plan.frames[number], &decoder, &buffer, to: sink)
      }
    } catch {
      failure.withLock { first in first = first ?? error }
      hasFailed.store(true, ordering: .relaxed)
    }
  }

  private func deliver<Sink: BlobSink>(
    _ frame: DeliveryPlan.Frame, _ decoder: inout FrameDecoder, _ buffer: inout [UInt8],
    to sink: Sink
  ) throws {
    do throws(StoreError) {
      try decoder.decode(frame.place, into: &buffer)
    } catch {
      guard error.kind == .damaged else { throw error }
      return try sink.miss(plan.uses[frame.uses].map(\.use), error)
    }
    try sink.take(verified(plan.uses[frame.uses], in: buffer), of: buffer)
  }

  /// Holds each blob against its hash, once however many uses it has.
  private func verified(
    _ uses: ArraySlice<(use: BlobUse, offset: Int, length: Int)>, in frame: [UInt8]
  ) -> [DeliveredBlob] {
    var known: [Int: Digest] = [:]
    return uses.map { use, offset, length in
      let range = offset..<(offset + length)
      guard length == Int(use.length), range.upperBound <= frame.count else {
        return DeliveredBlob(use: use, range: nil)
      }
      if known[offset] != use.digest {
        guard Blake2b.hash(frame.span.extracting(range)) == use.digest else {
          return DeliveredBlob(use: use, range: nil)
        }
        known[offset] = use.digest
      }
      return DeliveredBlob(use: use, range: range)
    }
  }
}
