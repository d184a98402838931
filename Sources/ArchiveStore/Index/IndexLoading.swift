internal import Codecs
internal import SystemIO

/// The index objects of a repository, as far as they can be used.
struct LoadedIndex: Sendable {
  var objects: [IndexObject] = []
  /// Those that are there and cannot be read, or are not as they were written. One of which the host
  /// has a whole copy is among the objects, too.
  var faults: [(id: Digest, error: StoreError)] = []

  /// All that were listed, whole or not.
  var ids: Set<Digest> { Set(objects.map(\.id) + faults.map(\.id)) }

  /// Adds an object that cannot be used, or not without the host's copy.
  mutating func add(_ id: Digest, _ error: StoreError) {
    let isDamage = error.kind == .damaged
    faults.append((id, isDamage ? error.hinting(StoreError.indexHint) : error))
  }

  /// The packs that the whole ones name.
  var packs: Set<Digest> { IndexSet(objects).packs }

  /// The packs that the whole ones name, with their sizes.
  var packSizes: [Digest: UInt64] {
    var sizes: [Digest: UInt64] = [:]
    for object in objects {
      for number in 0..<object.packs {
        let pack = object.pack(number)
        sizes[pack.id] = pack.size
      }
    }
    return sizes
  }
}

/// Reads index objects from a storage, or from the host's copies where there is a cache.
enum IndexLoading {
  /// All index objects.
  static func loadAll(
    from storage: any Storage, cache: IndexCache? = nil, known: [IndexObject] = []
  ) throws(StoreError) -> LoadedIndex {
    try load(try RepositoryListing.indexes(storage), from: storage, cache: cache, known: known)
  }

  /// The named index objects; those that are `known` are not read again. One that is gone when it is
  /// to be read was replaced by a merged one: then all are listed again.
  ///
  /// One that is damaged, of another version or closed to this user costs itself alone: it is among
  /// the faults. Of one that the host has a copy of only the size is looked at.
  static func load(
    _ ids: [Digest], from storage: any Storage, cache: IndexCache? = nil,
    known: [IndexObject] = []
  ) throws(StoreError) -> LoadedIndex {
    var ids = ids
    var known = Dictionary(known.map { ($0.id, $0) }) { first, _ in first }
    for _ in 1..<maximumAttempts {
      if let index = try loadOnce(ids, from: storage, cache, &known, isLast: false) { return index }
      ids = try RepositoryListing.indexes(storage)
    }
    return try loadOnce(ids, from: storage, cache, &known, isLast: true) ?? LoadedIndex()
  }

  /// How often a repository whose index changes all the time is listed.
  private static let maximumAttempts = 8

  /// Opens one object; its bytes are held against its id.
  static func open(
    _ id: Digest, from storage: any Storage, cache: IndexCache? = nil
  ) throws(StoreError) -> IndexObject {
    if let object = try cache?.object(id, of: storage) { return object }
    return try IndexObject.load(id, from: storage)
  }

  /// Reads what an object's storage holds now, and holds it against its id, whatever the host has.
  static func readAgain(
    _ id: Digest, from storage: any Storage, cache: IndexCache? = nil
  ) throws(StoreError) -> IndexObject {
    if let object = try cache?.readAgain(id, of: storage) { return object }
    return try open(id, from: storage)
  }

  /// Nothing when an object is gone.
  private static func loadOnce(
    _ ids: [Digest], from storage: any Storage, _ cache: IndexCache?,
    _ known: inout [Digest: IndexObject], isLast: Bool
  ) throws(StoreError) -> LoadedIndex? {
    var index = LoadedIndex()
    for id in ids {
      do throws(StoreError) {
        if known[id] == nil { known[id] = try open(id, from: storage, cache: cache) }
        guard let object = known[id] else { continue }
        if let fault = try fault(of: object, in: storage) { index.add(id, fault) }
        index.objects.append(object)
      } catch {
        if error.code == .missing, !isLast { return nil }
        guard error.costsTheObjectAlone else { throw error }
        index.add(id, error)
      }
    }
    cache?.keep(only: ids)
    return index
  }

  /// What can be seen to be amiss with an object whose copy is used without a look into it.
  ///
  /// - Throws: `missing` when it is gone.
  private static func fault(
    of object: IndexObject, in storage: any Storage
  ) throws(StoreError) -> StoreError? {
    guard case .mapped = object.bytes else { return nil }
    let path = RepositoryLayout.index(object.id)
    guard let size = try storage.status(path)?.size else { throw .missing("\(path)") }
    if size == UInt64(object.bytes.count) { return nil }
    return .damaged(
      "\(path)",
      "it has \(size) bytes where \(object.bytes.count) were written; this host's copy is used instead"
    )
  }
}

extension StoreError {
  /// Whether an object cannot be used and others may be: it is damaged, of a version that is not
  /// known, or closed to this user.
  var costsTheObjectAlone: Bool {
    kind == .damaged || code == .unsupported || cause?.isRefused == true
  }
}
