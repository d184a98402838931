internal import Codecs

/// Reads index objects from a storage, or from the host's copies where there is a cache.
enum IndexLoading {
  /// All index objects. One that is gone when it is to be read was replaced by a merged one: then
  /// all are listed again.
  static func loadAll(
    from storage: any Storage, cache: IndexCache? = nil
  ) throws(StoreError) -> [IndexObject] {
    try load(try RepositoryListing.indexes(storage), from: storage, cache: cache)
  }

  /// The named index objects.
  static func load(
    _ ids: [Digest], from storage: any Storage, cache: IndexCache? = nil
  ) throws(StoreError) -> [IndexObject] {
    var ids = ids
    for attempt in 1...maximumAttempts {
      do {
        return try loadOnce(ids, from: storage, cache: cache)
      } catch {
        guard error.code == .missing, attempt < maximumAttempts else { throw error }
        ids = try RepositoryListing.indexes(storage)
      }
    }
    return []
  }

  private static let maximumAttempts = 3

  private static func loadOnce(
    _ ids: [Digest], from storage: any Storage, cache: IndexCache?
  ) throws(StoreError) -> [IndexObject] {
    var objects: [IndexObject] = []
    for id in ids {
      if let object = try cache?.object(id, of: storage) {
        objects.append(object)
      } else {
        let bytes = try storage.load(RepositoryLayout.index(id), limit: FormatLimit.index)
        objects.append(try IndexObject(id: id, bytes: bytes))
      }
    }
    cache?.keep(only: ids)
    return objects
  }
}
