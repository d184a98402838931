internal import Codecs
internal import SystemIO

/// What a repository holds, listed in the order that a writer must keep: condemned objects, index,
/// packs, snapshots. A pack that is listed and not condemned stays while the lease is held.
struct RepositoryListing {
  var condemnedPacks: Set<Digest> = []
  /// Whether any condemned object was there.
  var hasCondemned = false
  var indexes: [Digest] = []
  var packs: Set<Digest> = []
  var snapshots: [Digest] = []

  /// Lists for a writer, which notes in its lease each condemned object that it has seen.
  init(_ storage: any Storage, lease: Lease) throws(StoreError) {
    for name in try storage.list(RepositoryLayout.condemned) {
      guard let id = name.utf8.flatMap({ $0.hasSuffix(".json") ? $0.dropLast(5) : nil }) else {
        continue
      }
      hasCondemned = true
      guard let object = try CondemnedObject.load(name, from: storage) else { continue }
      condemnedPacks.formUnion(object.packs)
      try lease.noteSeen(String(id))
    }
    indexes = try Self.indexes(storage)
    packs = try Self.packs(storage)
    snapshots = try Self.snapshots(storage)
  }

  /// All packs. Readers bear that folders are missing: they are empty ones.
  static func packs(
    _ storage: any Storage, bearingMissingFolders: Bool = false
  ) throws(StoreError) -> Set<Digest> {
    var packs: Set<Digest> = []
    for folder in RepositoryLayout.packFolders {
      do throws(StoreError) {
        for name in try storage.list(RepositoryLayout.packs.appending(folder)) {
          if let id = RepositoryLayout.id(name, suffix: ".tar.zst") { packs.insert(id) }
        }
      } catch {
        guard error.code == .missing, bearingMissingFolders else { throw error }
      }
    }
    return packs
  }

  static func indexes(_ storage: any Storage) throws(StoreError) -> [Digest] {
    try storage.list(RepositoryLayout.indexes).compactMap {
      RepositoryLayout.id($0, suffix: ".index")
    }
  }

  static func snapshots(_ storage: any Storage) throws(StoreError) -> [Digest] {
    try storage.list(RepositoryLayout.snapshots).compactMap {
      RepositoryLayout.id($0, suffix: ".json")
    }
  }
}
