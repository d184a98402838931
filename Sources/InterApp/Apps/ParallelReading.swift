internal import Synchronization
internal import SystemIO

/// The reading of files of many apps by several threads.
enum ParallelReading {
  /// The number of items that one job reads.
  private static let batch = 16

  /// Returns a result for each item, in the order of the items. A few items, and all if no thread
  /// can be started, are read by the calling thread.
  static func results<Item: Sendable, Result: Sendable>(
    of items: [Item], _ read: @escaping @Sendable (Item) -> Result
  ) -> [Result] {
    let threads = min(Host.processors, items.count / batch)
    guard threads > 1, let workers = try? Workers(count: threads, capacity: threads, name: "apps")
    else { return items.map(read) }
    let found = Found<Result>()
    for start in stride(from: 0, to: items.count, by: batch) {
      let part = items[start..<min(start + batch, items.count)]
      workers.submit { found.add(part.map(read), at: start) }
    }
    workers.finish()
    return found.all
  }

  /// The results of batches that end in any order.
  private final class Found<Result: Sendable>: Sendable {
    private let batches = Mutex<[Int: [Result]]>([:])

    func add(_ results: [Result], at start: Int) { batches.withLock { $0[start] = results } }

    var all: [Result] {
      batches.withLock { $0.sorted { $0.key < $1.key }.flatMap(\.value) }
    }
  }
}
