internal import Codecs
internal import SystemIO

/// What packs say of themselves, as index objects in memory: for packs that no whole index object
/// names (docs/repository-format.md, "Index").
struct PackRescue: Sendable {
  /// 48 bytes a blob; each object has about half a million.
  private(set) var objects: [IndexObject] = []
  /// The packs whose tables could be read, and those whose could not.
  private(set) var packs: Set<Digest> = []
  private(set) var faults: [(pack: Digest, error: StoreError)] = []

  private var builder = IndexBuilder()
  private static let recordsPerObject = 1 << 19

  /// Reads no pack.
  init() {}

  /// Reads the tables of all packs but those that are named. Where they are many it takes long: before
  /// each `goOn` is called.
  init(
    in storage: any Storage, but named: Set<Digest>,
    counters: ProgressCounters = ProgressCounters(),
    goOn: () throws(StoreError) -> Void = {}
  ) throws(StoreError) {
    let packs = try RepositoryListing.packSizes(storage).filter { !named.contains($0.key) }
    counters.expect(files: packs.count, bytes: 0)
    for (pack, size) in packs.sorted(by: { $0.key < $1.key }) {
      try goOn()
      counters.begin(ByteString("\(RepositoryLayout.pack(pack))"))
      try add(pack, size: size, storage)
      counters.didHandle(files: 1)
    }
    try closeObject()
  }

  /// Reads the tables of some packs, whose sizes are known; before each `goOn` is called.
  init(
    of packs: [Digest: UInt64], in storage: any Storage, goOn: () throws(StoreError) -> Void
  ) throws(StoreError) {
    for (pack, size) in packs.sorted(by: { $0.key < $1.key }) {
      try goOn()
      try add(pack, size: size, storage)
    }
    try closeObject()
  }

  private mutating func add(
    _ pack: Digest, size: UInt64, _ storage: any Storage
  ) throws(StoreError) {
    do {
      let tables = try PackTables.load(pack, size: size, from: storage)
      builder.add(
        IndexBuilder.Pack(id: pack, size: size, frames: tables.frames), records: tables.records)
      packs.insert(pack)
    } catch {
      guard error.costsTheObjectAlone else { throw error }
      // One that is gone since the listing was removed by a prune.
      if error.code != .missing { faults.append((pack, error)) }
    }
    if builder.records.count >= Self.recordsPerObject { try closeObject() }
  }

  private mutating func closeObject() throws(StoreError) {
    guard !builder.packs.isEmpty else { return }
    let bytes = builder.encode()
    builder = IndexBuilder()
    objects.append(
      try IndexObject(id: Blake2b.hash(bytes), checked: .memory(SpillableArray(bytes))))
  }
}
