internal import ArchiveStore
internal import Synchronization
internal import SystemIO

extension S3Storage {
  /// The results of requests that several threads make.
  private final class Results<Value: Sendable>: Sendable {
    let made: Mutex<[Result<Value, StoreError>?]>

    init(count: Int) { made = Mutex([Result<Value, StoreError>?](repeating: nil, count: count)) }
  }

  /// Makes a request for each path, several at the same time, and returns the results in the order
  /// of the paths. All requests are made, also after a failure.
  ///
  /// - Throws: the failure of the first path that has one.
  func atOnce<Value: Sendable>(
    _ paths: [ObjectPath],
    _ request: @escaping @Sendable (ObjectPath) throws(StoreError) -> Value
  ) throws(StoreError) -> [Value] {
    let results = Results<Value>(count: paths.count)
    let work: @Sendable (Int) -> Void = { number in
      let result: Result<Value, StoreError>
      do throws(StoreError) { result = .success(try request(paths[number])) } catch {
        result = .failure(error)
      }
      results.made.withLock { $0[number] = result }
    }
    let others = min(options.connections, paths.count) - 1
    var workers: Workers?
    // Without threads this one makes all requests.
    if others > 0 {
      workers = try? Workers(count: others, capacity: paths.count, name: "requests")
    }
    for number in paths.indices.dropFirst() {
      if let workers { workers.submit { work(number) } } else { work(number) }
    }
    if !paths.isEmpty { work(0) }
    workers?.finish()
    var values: [Value] = []
    for result in results.made.withLock({ $0 }) {
      if let result { values.append(try result.get()) }
    }
    return values
  }
}
