internal import Codecs

/// The index of a repository for a reader of large parts of it: every existing pack is read, the
/// most reliable ones first.
struct ReadableIndex {
  private(set) var index = PruneIndex()
  /// The errors of index objects that cannot be used.
  let faults: [StoreError]
  /// The error of a pack that no usable object names and whose table this user may not read.
  private(set) var refusal: StoreError?
  /// Whether packs that no usable object names were found by their own tables.
  private(set) var hasUnindexedPacks = false

  /// Loads the index. If an index object cannot be used, or with `isRescuing`, the packs that no
  /// usable object names are found by their own tables.
  ///
  /// - Parameter isReliedOn: whether `isReliable` decides what is stored again.
  init(
    _ repository: Repository, cache: IndexCache?, isRescuing: Bool = false,
    isReliedOn: Bool = false
  ) throws(StoreError) {
    let storage = repository.storage
    var (condemned, damaged): (Set<Digest>, Set<Digest>) = ([], [])
    // A reader needs each of these only to choose the order in which it tries packs.
    do throws(StoreError) {
      condemned = try CondemnedObjects(storage).packs
    } catch { if isReliedOn { throw error } }
    do throws(StoreError) {
      let records = try DamageRecords(storage)
      damaged = Set(try (isReliedOn ? records.complete() : records).packs.keys)
    } catch { if isReliedOn { throw error } }
    let loaded = try LoadedIndex.loadAll(from: storage, cache: cache)
    faults = loaded.faults.map(\.error)
    let sizes = try RepositoryListing.packSizes(storage)
    var objects = loaded.objects
    if isRescuing || !faults.isEmpty {
      let named = loaded.packs
      let others = sizes.filter { !named.contains($0.key) }
      let rescue = try PackRescue(of: others, in: storage)
      objects += rescue.objects
      refusal = rescue.refusal
      hasUnindexedPacks = !rescue.objects.isEmpty
    }
    for object in objects {
      try index.add(object) { pack throws(StoreError) in
        guard let size = sizes[pack.id] else { return .missing }
        if condemned.contains(pack.id) { return .condemned }
        return size == pack.size && !damaged.contains(pack.id) ? .reliable : .damaged
      }
    }
  }

  /// Whether a writer may rely on a blob.
  func isReliable(_ blob: BlobID) -> Bool { index.find(blob)?.state == .reliable }
}
