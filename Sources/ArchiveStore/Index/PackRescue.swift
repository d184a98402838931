internal import Codecs
internal import SystemIO

/// The contents tables of packs that no intact index object names, as index objects in memory
/// (docs/repository-format.md, "Index").
struct PackRescue: Sendable {
  /// The index objects, 48 bytes for each blob, with about half a million blobs each.
  private(set) var objects: [IndexObject] = []
  /// The packs whose tables were read, and the faults of the others.
  private(set) var packs: Set<Digest> = []
  private(set) var faults: [(pack: Digest, error: StoreError)] = []

  /// The error of the first pack whose table this user may not read, or nil if there is none.
  var refusal: StoreError? { faults.first { $0.error.isRefused }?.error }

  private var builder = IndexBuilder()
  private static let recordsPerObject = 1 << 19

  /// Reads the tables of all packs except the named ones, which takes long for many packs.
  /// `checkCancellation` is called before each.
  init(
    in storage: RepositoryStorage, but named: Set<Digest>,
    counters: ProgressCounters = ProgressCounters(),
    checkCancellation: () throws(StoreError) -> Void = {}
  ) throws(StoreError) {
    let packs = try RepositoryListing.packSizes(storage).filter { !named.contains($0.key) }
    counters.expect(files: packs.count, bytes: 0)
    try self.init(
      of: packs, in: storage, counters: counters, checkCancellation: checkCancellation)
  }

  /// Reads the tables of the given packs and sizes, and counts them as files. `checkCancellation`
  /// is called before each.
  init(
    of packs: [Digest: UInt64], in storage: RepositoryStorage,
    counters: ProgressCounters = ProgressCounters(),
    checkCancellation: () throws(StoreError) -> Void = {}
  ) throws(StoreError) {
    for (pack, size) in packs.sorted(by: { $0.key < $1.key }) {
      try checkCancellation()
      counters.begin(ByteString("\(storage.layout.pack(pack))"))
      try add(pack, size: size, storage)
      counters.didHandle(files: 1)
    }
    try closeObject()
  }

  private mutating func add(
    _ pack: Digest, size: UInt64, _ storage: RepositoryStorage
  ) throws(StoreError) {
    do {
      let tables = try PackTables.load(pack, size: size, from: storage)
      builder.add(
        PackTables.Pack(id: pack, size: size, frames: tables.frames), records: tables.records)
      packs.insert(pack)
    } catch {
      guard error.costsTheObjectAlone else { throw error }
      // A prune removed the pack after it was listed.
      if error.code != .missing { faults.append((pack, error)) }
    }
    if builder.records.count >= Self.recordsPerObject { try closeObject() }
  }

  private mutating func closeObject() throws(StoreError) {
    guard !builder.packs.isEmpty else { return }
    let bytes = builder.encode()
    builder = IndexBuilder()
    objects.append(
      try IndexObject(
        id: Blake2b.hash(bytes), checked: .memory(SpillableArray(bytes)),
        storedSize: UInt64(bytes.count)))
  }
}
