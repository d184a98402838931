internal import ArchiveStore
internal import SystemIO

extension S3Storage {
  /// Makes a request for each path, several at the same time, and returns the results in the order
  /// of the paths. All requests are made, even after a failure.
  ///
  /// - Throws: the failure of the first path that failed.
  func atOnce<Value: Sendable>(
    _ paths: [ObjectPath],
    _ request: @escaping @Sendable (ObjectPath) throws(StoreError) -> Value
  ) throws(StoreError) -> [Value] {
    let results = Workers.results(of: paths, threads: options.connections, name: "requests") {
      path in
      Result { () throws(StoreError) in try request(path) }
    }
    var values: [Value] = []
    for result in results { values.append(try result.get()) }
    return values
  }
}
