internal import Codecs
internal import SystemIO

/// The index of a repository as a reader of large parts of it uses it: every pack that exists is
/// read, whichever is the most reliable first.
struct ReadableIndex {
  private(set) var index = PruneIndex()
  /// The errors of index objects that cannot be used.
  let faults: [StoreError]

  /// Loads the index. If an index object cannot be used, or with `isRescuing`, the packs that no
  /// usable object names are found by their own tables.
  init(
    _ repository: Repository, cache: IndexCache?, isRescuing: Bool = false
  ) throws(StoreError) {
    let storage = repository.storage
    // These only change the order in which packs are tried.
    let condemned = (try? CondemnedObjects(storage).packs) ?? []
    let damaged = Set((try? DamageRecords(storage))?.packs.keys.map { $0 } ?? [])
    let loaded = try LoadedIndex.loadAll(from: storage, cache: cache)
    faults = loaded.faults.map(\.error)
    let sizes = try RepositoryListing.packSizes(storage)
    var objects = loaded.objects
    if isRescuing || !faults.isEmpty {
      objects += try PackRescue(in: storage, but: loaded.packs).objects
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
