internal import Synchronization

extension Workers {
  /// Returns the results of `body` for items, in their order, by several threads including the
  /// calling one. Without other threads it does everything. Items are begun in their order.
  ///
  /// - Parameters:
  ///   - threads: the largest number of threads.
  ///   - name: the name of the other threads.
  ///   - batch: the number of items that a thread takes at a time.
  public static func results<Item: Sendable, Value: Sendable>(
    of items: [Item], threads: Int, name: String, batch: Int = 1,
    _ body: @escaping @Sendable (Item) -> Value
  ) -> [Value] {
    let others = min(threads, (items.count + batch - 1) / batch) - 1
    guard others > 0, let workers = try? Workers(count: others, capacity: others, name: name) else {
      return items.map(body)
    }
    let run = Run<Item, Value>(items, batch: batch)
    for _ in 0..<others { workers.submit { run.work(body) } }
    run.work(body)
    workers.finish()
    return run.all
  }

  /// The remaining items, and the results, in batches.
  private final class Run<Item: Sendable, Value: Sendable>: Sendable {
    private let items: [Item]
    private let batch: Int
    private let next = Atomic<Int>(0)
    private let values: Mutex<[[Value]]>

    init(_ items: [Item], batch: Int) {
      (self.items, self.batch) = (items, batch)
      values = Mutex([[Value]](repeating: [], count: (items.count + batch - 1) / batch))
    }

    func work(_ body: (Item) -> Value) {
      while true {
        let number = next.add(1, ordering: .relaxed).oldValue
        let start = number * batch
        guard start < items.count else { return }
        let part = items[start..<min(start + batch, items.count)].map(body)
        values.withLock { $0[number] = part }
      }
    }

    var all: [Value] { values.withLock { $0.flatMap(\.self) } }
  }
}
