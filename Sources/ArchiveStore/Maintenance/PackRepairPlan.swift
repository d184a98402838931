internal import Codecs
internal import SystemIO

/// The packs of a repository to repair.
struct PackRepairPlan {
  var packs: [PackRepair.Pack]
  /// Whether no check has recorded anything.
  let isUnchecked: Bool
  /// Recorded packs that stay unchanged because they are condemned.
  let others: [DamageRecord.Pack]
  let index: CheckedIndex
  /// The stored sizes of all packs.
  let sizes: [Digest: UInt64]
  /// The index of blobs that need not be stored again.
  private let sound: IndexSet

  init(_ repository: Repository) throws(StoreError) {
    let storage = repository.storage
    let records = try DamageRecords(storage)
    let condemned = try CondemnedObject.allPacks(storage)
    let loaded = try IndexLoading.loadAll(from: storage)
    let (sizes, expected) = (try RepositoryListing.packSizes(storage), loaded.packSizes)
    var packs: [Digest: PackRepair.Pack] = [:]
    for (id, size) in expected where sizes[id] != size && !condemned.contains(id) {
      packs[id] = PackRepair.Pack(id: id, state: sizes[id] == nil ? .missing : .damaged)
    }
    for id in records.packs.keys where sizes[id] != nil && !condemned.contains(id) {
      packs[id] = PackRepair.Pack(id: id, state: .damaged)
    }
    self.sizes = sizes
    self.packs = packs.values.sorted { $0.id < $1.id }
    others = records.packs.values.filter { condemned.contains($0.id) && sizes[$0.id] != nil }
    isUnchecked = records.names.isEmpty
    index = CheckedIndex(loaded.objects)
    sound = IndexSet(loaded.objects) { [packs] id in
      packs[id] == nil && !condemned.contains(id) && sizes[id] == expected[id]
    }
  }

  /// Whether a pack that needs no repair holds a blob.
  func isElsewhere(_ blob: BlobID) -> Bool { sound.contains(blob) }

  /// The packs to remove from the index.
  var gone: Set<Digest> { Set(packs.filter { $0.state != .whole }.map(\.id)) }

  /// Returns the index objects that name any of the packs.
  func indexes(naming packs: Set<Digest>) -> [IndexObject] {
    index.objects.filter { !packs.isDisjoint(with: $0.packIDs) }
  }

  /// Returns the blobs that the index lists for each pack, in one pass.
  func blobs(of packs: Set<Digest>) -> [Digest: Set<BlobID>] {
    var blobs: [Digest: Set<BlobID>] = [:]
    for object in indexes(naming: packs) {
      let ids = object.packIDs
      for number in 0..<object.blobs {
        guard let record = object.record(number) else { continue }
        let pack = ids[Int(record.pack)]
        if packs.contains(pack) { blobs[pack, default: []].insert(record.id) }
      }
    }
    return blobs
  }
}
