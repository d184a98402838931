internal import Codecs

/// The index of a reader: the usable objects and, if something cannot be found with them, the
/// contents tables of the packs that none of them names.
///
/// It is extended only on demand. First the objects are listed again, once for each missing pack,
/// because another program may have moved the blobs. Then the packs' own tables are read, once.
struct ReaderIndex {
  private(set) var set: IndexSet
  private let storage: RepositoryStorage
  private let cache: IndexCache?
  /// The loaded objects; nil in a reader with a fixed index.
  private var loaded: LoadedIndex?
  private var rescue: PackRescue?
  /// The error of a pack that the fixed index lacks because this user may not read its table.
  private var lacking: StoreError?
  /// Packs that are named but do not exist.
  private var gone: Set<Digest> = []
  /// Whether the objects were listed since a blob or a pack was last found missing.
  private var isCurrent = false
  /// The errors of all objects that could not be used.
  private var faults: [Digest: StoreError] = [:]
  /// Packs that were found by their own tables and were needed.
  private var needed: Set<Digest> = []
  /// Whether another program has removed an index object since the first listing: it has merged
  /// index objects, or removed packs.
  private(set) var hasShrunk = false

  /// Loads all index objects. A missing directory of index objects counts as empty.
  init(_ storage: RepositoryStorage, cache: IndexCache?) throws(StoreError) {
    self.storage = storage
    self.cache = cache
    set = IndexSet([])
    try reload()
    isCurrent = false
  }

  /// Uses the given objects and no others.
  ///
  /// - Parameter lacking: the error of a pack that none of them names and that this user may not
  ///   read.
  init(_ storage: RepositoryStorage, fixed set: IndexSet, lacking: StoreError? = nil) {
    self.storage = storage
    cache = nil
    (self.set, self.lacking) = (set, lacking)
  }

  /// Records that a pack does not exist.
  mutating func markLost(_ pack: Digest) {
    if gone.insert(pack).inserted { isCurrent = false }
  }

  /// Forgets which packs do not exist, so that all are looked for again: a repository on another
  /// host may have been unavailable, or a pack may have been copied from a mirror.
  mutating func forgetLost() {
    isCurrent = false
    if rescue?.packs.isEmpty == true { rescue = nil }
    guard !gone.isEmpty else { return }
    gone = []
    if loaded != nil { makeSet() }
  }

  /// Returns the locations of a blob, except in missing packs.
  func locations(_ blob: BlobID) -> [IndexSet.BlobLocation] {
    set.findAll(blob).filter { !gone.contains($0.pack) }
  }

  /// Returns the locations of wanted blobs of a kind in pack order. Looks for more packs if some
  /// blobs are missing.
  mutating func plan(
    _ uses: [BlobDelivery.Use], of kind: BlobKind
  ) throws(StoreError) -> BlobDelivery.Plan {
    if !gone.isEmpty { makeSet() }
    var plan = BlobDelivery.Plan(uses, of: kind, set)
    while !plan.missing.isEmpty, try widen() { plan = BlobDelivery.Plan(uses, of: kind, set) }
    recordUse(of: plan.frames.lazy.map(\.location.pack))
    return plan
  }

  /// Looks for more packs. Returns whether any were found.
  mutating func widen() throws(StoreError) -> Bool {
    guard let loaded else { return false }
    if !isCurrent, try reload() { return true }
    guard rescue == nil else { return false }
    let rescue = try PackRescue(in: storage, but: loaded.packs)
    self.rescue = rescue
    makeSet()
    return !rescue.packs.isEmpty
  }

  /// Returns the error of a pack that this user may not read and that may hold a blob: the blob is
  /// in no index, and neither is the pack. Nil if there is none, after `widen` found nothing more.
  func refusal(of blob: BlobID) -> StoreError? {
    let found = lacking ?? rescue?.refusal
    guard let found, set.objects.allSatisfy({ $0.findAll(blob).isEmpty }) else { return nil }
    return found
  }

  /// Records that blobs were read from these packs.
  mutating func recordUse(of packs: some Sequence<Digest>) {
    guard let rescue else { return }
    for pack in packs where rescue.packs.contains(pack) { needed.insert(pack) }
  }

  /// Loads the objects that were added since they were last listed, for a reader that outlives
  /// them.
  mutating func refresh() throws(StoreError) {
    if loaded != nil { try reload() }
    isCurrent = false
  }

  /// The size of all known packs in bytes.
  var packedBytes: UInt64 { packSizes.values.reduce(0) { $0 &+ $1 } }

  /// The stored sizes of all known packs in bytes.
  var packSizes: [Digest: UInt64] { self.set.packSizes }

  /// Lists the objects and loads the new ones. Returns whether the list changed.
  @discardableResult
  private mutating func reload() throws(StoreError) -> Bool {
    isCurrent = true
    let (ids, sizes) = try Self.list(storage)
    return try load(ids, sizes: sizes)
  }

  /// Loads the new objects of a listing that was made under a lease which the reader did not have
  /// before. The tables of packs that were read without it are read again if they are needed.
  mutating func reload(listed ids: [Digest]) throws(StoreError) {
    guard loaded != nil else { return }
    if try !load(ids, sizes: nil), rescue != nil {
      rescue = nil
      makeSet()
    }
    isCurrent = false
  }

  private mutating func load(
    _ ids: [Digest], sizes: [ObjectPath: UInt64]?
  ) throws(StoreError) -> Bool {
    if let loaded, loaded.ids == Set(ids) { return false }
    let next = try LoadedIndex.load(
      ids, from: storage, cache: cache, known: loaded?.objects ?? [], sizes: sizes)
    for (id, error) in next.faults { faults[id] = error }
    if let loaded, !loaded.ids.isSubset(of: ids) { hasShrunk = true }
    loaded = next
    rescue = nil
    makeSet()
    return true
  }

  /// Lists the index objects, on another host with their sizes. If a file occupies the directory's
  /// name, the list is empty, and the packs' tables are used.
  private static func list(
    _ storage: RepositoryStorage
  ) throws(StoreError) -> (ids: [Digest], sizes: [ObjectPath: UInt64]?) {
    do {
      guard storage.isOnAnotherHost else { return (try RepositoryListing.indexes(storage), nil) }
      return try RepositoryListing.indexesWithSizes(storage)
    } catch {
      guard error.code == .missing else { throw error }
      return ([], nil)
    }
  }

  private mutating func makeSet() {
    let gone = gone
    let objects = (loaded?.objects ?? []) + (rescue?.objects ?? [])
    set = gone.isEmpty ? IndexSet(objects) : IndexSet(objects) { !gone.contains($0) }
  }

  /// The problems found with the index so far.
  var remarks: [StoreError] {
    var remarks = faults.sorted { $0.key < $1.key }.map(\.value)
    if !needed.isEmpty {
      let reason =
        needed.count == 1
        ? "1 pack is in no usable index object; its content was found with its own table"
        : "\(needed.count) packs are in no usable index object; their content was found "
          + "with their own tables"
      remarks.append(
        StoreError(
          .damaged, "find everything in", subject: "index", reason: reason,
          hint: StoreError.indexHint))
    }
    return remarks
  }
}
