internal import Codecs

/// The index as a reader has it: the objects that can be used, and, from when something is not to be
/// had by these, what all packs that none of them names say of themselves.
///
/// It is widened only when it has to be: first the objects are listed again, once for each pack that
/// is found gone, because another program may have moved what was in it; then the packs' own tables
/// are read, once.
struct ReaderIndex {
  private(set) var set: IndexSet
  private let storage: any Storage
  private let cache: IndexCache?
  /// Nothing in a reader that goes by what it is given.
  private var loaded: LoadedIndex?
  private var rescue: PackRescue?
  /// Packs that are named and not there.
  private var gone: Set<Digest> = []
  /// Whether the objects were listed since they were missed anything in, or a pack was found gone.
  private var isCurrent = false
  /// What could not be used at any time.
  private var faults: [Digest: StoreError] = [:]
  /// Packs that were found by their own tables and were needed.
  private var needed: Set<Digest> = []

  /// Loads all index objects; a directory of them that is missing is an empty one.
  init(_ storage: any Storage, cache: IndexCache?) throws(StoreError) {
    self.storage = storage
    self.cache = cache
    set = IndexSet([])
    try reload()
    isCurrent = false
  }

  /// Goes by what is given and nothing else.
  init(_ storage: any Storage, fixed set: IndexSet) {
    self.storage = storage
    cache = nil
    self.set = set
  }

  /// Notes that a pack is not there.
  mutating func lose(_ pack: Digest) {
    if gone.insert(pack).inserted { isCurrent = false }
  }

  /// The places of a blob, in packs that were not found gone.
  func places(_ blob: BlobID) -> [IndexSet.Found] {
    set.findAll(blob).filter { !gone.contains($0.pack) }
  }

  /// Where wanted blobs lie, in the order of the packs; more packs are looked for where some are
  /// missing.
  mutating func plan(_ uses: [BlobUse]) throws(StoreError) -> DeliveryPlan {
    if !gone.isEmpty { makeSet() }
    var plan = DeliveryPlan(uses, set)
    while !plan.missing.isEmpty, try widen() { plan = DeliveryPlan(uses, set) }
    noteUse(of: plan.frames.lazy.map(\.place.pack))
    return plan
  }

  /// Looks for more packs; whether there are any.
  mutating func widen() throws(StoreError) -> Bool {
    guard let loaded else { return false }
    if !isCurrent, try reload() { return true }
    guard rescue == nil else { return false }
    let rescue = try PackRescue(in: storage, but: loaded.packs)
    self.rescue = rescue
    makeSet()
    return !rescue.packs.isEmpty
  }

  /// Notes that something was taken from these packs.
  mutating func noteUse(of packs: some Sequence<Digest>) {
    guard let rescue else { return }
    for pack in packs where rescue.packs.contains(pack) { needed.insert(pack) }
  }

  /// Lists the objects and loads those that are new; whether any are.
  @discardableResult
  private mutating func reload() throws(StoreError) -> Bool {
    isCurrent = true
    let ids = try Self.list(storage)
    if let loaded, loaded.ids == Set(ids) { return false }
    let next = try IndexLoading.load(
      ids, from: storage, cache: cache, known: loaded?.objects ?? [])
    for (id, error) in next.faults { faults[id] = error }
    loaded = next
    rescue = nil
    makeSet()
    return true
  }

  /// Bears that something else is in the directory's place, too: the packs tell.
  private static func list(_ storage: any Storage) throws(StoreError) -> [Digest] {
    do {
      return try RepositoryListing.indexes(storage)
    } catch {
      guard error.code == .missing else { throw error }
      return []
    }
  }

  private mutating func makeSet() {
    let gone = gone
    let objects = (loaded?.objects ?? []) + (rescue?.objects ?? [])
    set = gone.isEmpty ? IndexSet(objects) : IndexSet(objects) { !gone.contains($0) }
  }

  /// What was amiss with the index, so far.
  var remarks: [StoreError] {
    var remarks = faults.sorted { $0.key < $1.key }.map(\.value)
    if !needed.isEmpty {
      let reason =
        needed.count == 1
        ? "1 pack is in no index object that can be used; what it holds was found by its own table"
        : "\(needed.count) packs are in no index object that can be used; what they hold was found "
          + "by their own tables"
      remarks.append(
        StoreError(
          .damaged, "find everything by the", "index", reason, hint: StoreError.indexHint))
    }
    return remarks
  }
}

extension StoreError {
  static let indexHint = "'sandboxctl repair index' makes the index anew from the packs"
}
