package import ArchiveStore
internal import SystemIO

extension S3Storage {
  /// Checks that the store guarantees what repositories rely on, before one is created: an object
  /// can be listed and read at once after its put, and is gone at once after its removal.
  ///
  /// - Throws: an error of the endpoint, the bucket, the credentials or the store.
  package func requireConsistency() throws(StoreError) {
    let name = ByteString("probe-" + Host.randomHex(bytes: 8))
    let path = ObjectPath.root.appending(name)
    let content = Host.random(count: 64)
    try put(.bytes(content), as: path)
    do throws(StoreError) {
      guard try list(.root).contains(name) else { throw inconsistent("a new object is not listed") }
      guard try load(path, limit: 64) == content else {
        throw inconsistent("an object is read with other bytes")
      }
    } catch {
      try? remove(path)
      throw error
    }
    try remove(path)
    guard try !list(.root).contains(name) else { throw inconsistent("a removed object is listed") }
  }

  private func inconsistent(_ words: String) -> StoreError {
    StoreError(
      .unsupported, "use the store", subject: location, reason: words,
      hint: "choose a store whose listings are strongly consistent")
  }
}
