internal import Codecs
internal import SystemIO

/// What a repository holds, listed in the order that a writer must keep: condemned objects, index,
/// packs, snapshots. A pack that is listed and not condemned stays while the lease is held.
///
/// Of the packs only the folders are listed in which one lies that the index names: on others nobody
/// relies. A small repository has few of them, and a folder costs as much as a file to read.
struct RepositoryListing {
  var condemnedPacks: Set<Digest> = []
  /// Whether any condemned object was there.
  var hasCondemned = false
  var indexes: [Digest] = []
  var packs: Set<Digest> = []
  var snapshots: [Digest] = []

  /// Begins to list for a writer, which notes in its lease each condemned object that it has seen:
  /// the index is to be read before the rest is listed.
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
  }

  /// Lists the rest: those of the packs that the index names, and the snapshots.
  mutating func finish(
    _ storage: any Storage, indexed: Set<Digest>
  ) throws(StoreError) {
    let folders = Set(indexed.map { RepositoryLayout.pack($0).folder })
    let names = Set(try storage.list(RepositoryLayout.packs))
    for name in RepositoryLayout.packFolders {
      let folder = RepositoryLayout.packs.appending(name)
      // Better known now than when the first pack is to lie there.
      guard names.contains(name) else { throw .missing("\(folder)") }
      if folders.contains(folder) { packs.formUnion(try Self.packs(in: folder, storage)) }
    }
    snapshots = try Self.snapshots(storage)
  }

  /// All packs. Readers bear that folders are missing: they are empty ones.
  static func packs(
    _ storage: any Storage, bearingMissingFolders: Bool = false
  ) throws(StoreError) -> Set<Digest> {
    var packs: Set<Digest> = []
    for folder in RepositoryLayout.packFolders {
      do throws(StoreError) {
        packs.formUnion(try Self.packs(in: RepositoryLayout.packs.appending(folder), storage))
      } catch {
        guard error.code == .missing, bearingMissingFolders else { throw error }
      }
    }
    return packs
  }

  private static func packs(
    in folder: ObjectPath, _ storage: any Storage
  ) throws(StoreError) -> [Digest] {
    try storage.list(folder).compactMap { RepositoryLayout.id($0, suffix: ".tar.zst") }
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
