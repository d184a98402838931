internal import Codecs

/// A planned delivery. Data fetched ahead for it is dropped at the end of its lifetime.
package final class PreparedDelivery {
  private let plan: BlobDelivery.Plan
  private let storage: RepositoryStorage
  /// Held while the delivery may run.
  private let lease: ReaderLease?

  init(
    _ plan: BlobDelivery.Plan, sizes: @autoclosure () -> [Digest: UInt64],
    from storage: RepositoryStorage, under lease: ReaderLease?
  ) {
    (self.plan, self.storage, self.lease) = (plan, storage, lease)
    guard storage.isOnAnotherHost else { return }
    let ranges = plan.frames.map { frame in
      (pack: frame.location.pack, content: frame.location.frame.range)
    }
    storage.expect(ranges, sizes: sizes())
  }

  deinit { storage.expect([]) }

  /// Delivers as `RepositoryReader.deliver` does.
  package func run<Sink: BlobDelivery.Sink>(
    threads: Int, isStopping: @escaping @Sendable () -> Bool,
    to makeSink: @escaping @Sendable () throws -> Sink
  ) throws {
    if !plan.missing.isEmpty {
      try makeSink().reportMissing(plan.missing, .missing("\(plan.missing.count) blobs"))
    }
    let count = min(max(1, threads), plan.frames.count)
    try BlobDelivery(plan, from: storage, threads: count, isStopping: isStopping)
      .run(threads: count, makeSink)
  }
}
