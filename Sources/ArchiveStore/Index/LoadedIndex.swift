internal import Codecs
internal import SystemIO

/// The usable index objects of a repository, and the faults of the others.
struct LoadedIndex: Sendable {
  var objects: [IndexObject] = []
  /// Objects that exist but cannot be read or are damaged. If this host has an intact copy, the
  /// object is also in `objects`.
  var faults: [(id: Digest, error: StoreError)] = []
  /// Objects that this host cannot read and of which it has no copy.
  private(set) var unreadable: Set<Digest> = []

  /// The ids of all listed objects, usable or not.
  var ids: Set<Digest> { Set(objects.map(\.id) + faults.map(\.id)).union(unreadable) }

  /// The errors of the objects that are not in `objects`, ordered as the faults.
  var unusable: [StoreError] {
    let usable = Set(objects.map(\.id))
    return faults.filter { !usable.contains($0.id) }.map(\.error)
  }

  /// Adds an object that cannot be used, or only through this host's copy.
  mutating func add(_ id: Digest, _ error: StoreError) {
    let isDamage = error.kind == .damaged && !error.isRefused
    faults.append((id, isDamage ? error.hinting(StoreError.indexHint) : error))
  }

  /// The packs named by usable objects.
  var packs: Set<Digest> { IndexSet(objects).packs }

  /// Returns the packs named by some of the usable objects.
  func packs(of ids: Set<Digest>) -> Set<Digest> {
    Set(objects.filter { ids.contains($0.id) }.flatMap(\.packIDs))
  }

  /// The packs named by usable objects, with their sizes.
  var packSizes: [Digest: UInt64] { IndexSet(objects).packSizes }
}

// MARK: - Loading

extension LoadedIndex {
  /// Loads all index objects from a storage, or from this host's copies if there is a cache.
  static func loadAll(
    from storage: RepositoryStorage, cache: IndexCache? = nil, known: [IndexObject] = []
  ) throws(StoreError) -> LoadedIndex {
    try load(try RepositoryListing.indexes(storage), from: storage, cache: cache, known: known)
  }

  /// Loads the given index objects, except those already `known`. If one no longer exists when it
  /// is read, a merge replaced it, and the objects are listed again.
  ///
  /// An object that is damaged, of an unsupported version or inaccessible to this user is reported
  /// in `faults` and does not affect the others. If this host has a copy of an object, only the
  /// object's size is checked.
  ///
  /// - Parameter sizes: the sizes of all objects, if they were listed with them.
  static func load(
    _ ids: [Digest], from storage: RepositoryStorage, cache: IndexCache? = nil,
    known: [IndexObject] = [], sizes: [ObjectPath: UInt64]? = nil
  ) throws(StoreError) -> LoadedIndex {
    var (ids, sizes) = (ids, sizes)
    var known = Dictionary(known.map { ($0.id, $0) }) { first, _ in first }
    for _ in 1..<maximumAttempts {
      let index = try loadOnce(
        ids, from: storage, cache: cache, known: &known, sizes: sizes, isLast: false)
      if let index { return index }
      (ids, sizes) = (try RepositoryListing.indexes(storage), nil)
    }
    return try loadOnce(ids, from: storage, cache: cache, known: &known, sizes: nil, isLast: true)
      ?? LoadedIndex()
  }

  /// The number of listings after which an index that keeps changing is used without the objects
  /// that disappear.
  private static let maximumAttempts = 8

  /// Returns nil if an object no longer exists.
  private static func loadOnce(
    _ ids: [Digest], from storage: RepositoryStorage, cache: IndexCache?,
    known: inout [Digest: IndexObject], sizes: [ObjectPath: UInt64]?, isLast: Bool
  ) throws(StoreError) -> LoadedIndex? {
    var index = LoadedIndex()
    var sizes = sizes
    if sizes == nil { sizes = try self.sizes(of: ids, in: storage, cache: cache) }
    let open = { @Sendable [known] (id: Digest) throws(StoreError) -> IndexObject in
      if let object = known[id] { return object }
      return try IndexObject.open(id, from: storage, cache: cache)
    }
    do throws(StoreError) {
      try storage.forEach(ids, open) { id, result throws(StoreError) in
        do throws(StoreError) {
          let object = try result.get()
          known[id] = object
          if let fault = try fault(of: object, in: storage, sizes: sizes) { index.add(id, fault) }
          index.objects.append(object)
        } catch {
          if error.code == .missing, !isLast { throw error }
          if error.code == .keyRequired {
            index.unreadable.insert(id)
            return
          }
          guard error.costsTheObjectAlone else { throw error }
          index.add(id, error)
        }
      }
    } catch {
      if error.code == .missing, !isLast { return nil }
      throw error
    }
    if storage.canRead {
      cache?.retain(only: ids)
    } else if let cache {
      // Another host merged the objects: this one can read only its copies of its own objects.
      index.objects += cache.copies(besides: Set(ids))
    }
    return index
  }

  /// Returns the sizes of all index objects if one request is better than one for each object that
  /// this host has a copy of; otherwise nil.
  private static func sizes(
    of ids: [Digest], in storage: RepositoryStorage, cache: IndexCache?
  ) throws(StoreError) -> [ObjectPath: UInt64]? {
    guard cache != nil, ids.count > 1, storage.isOnAnotherHost else { return nil }
    return try RepositoryListing.indexesWithSizes(storage).sizes
  }

  /// Returns the visible fault of an object whose copy is used without reading the object, or nil
  /// if there is none.
  ///
  /// - Parameter sizes: the sizes of all objects; nil to ask for the one of this object.
  /// - Throws: `missing` if the object does not exist.
  private static func fault(
    of object: IndexObject, in storage: RepositoryStorage, sizes: [ObjectPath: UInt64]?
  ) throws(StoreError) -> StoreError? {
    guard case .mapped = object.bytes else { return nil }
    let path = storage.layout.index(object.id)
    var found = sizes?[path]
    if sizes == nil { found = try storage.status(path)?.size }
    guard let size = found else { throw .missing("\(path)") }
    if size == object.storedSize { return nil }
    return .damaged(
      "\(path)",
      "it has \(size) bytes where \(object.storedSize) are expected; this host's copy is used instead"
    )
  }
}
