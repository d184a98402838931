internal import Codecs
internal import SystemIO

/// What a repository holds, listed in the order that a writer must keep: condemned objects, index,
/// packs, snapshots. A pack that is listed and not condemned stays while the lease is held.
///
/// Of the packs only the folders are listed in which one lies that the index names: on others nobody
/// relies. A small repository has few of them, and a folder costs as much as a file to read.
///
/// Folders that are missing are made, so that this is known before the first object is to lie there.
struct RepositoryListing {
  var condemnedPacks: Set<Digest> = []
  /// Whether any condemned object was there.
  var hasCondemned = false
  var indexes: [Digest] = []
  var packs: Set<Digest> = []
  var snapshots: [Digest] = []
  /// Folders that are not there.
  private var missing: [ObjectPath] = []

  /// Begins to list for a writer, which notes in its lease each condemned object that it has seen:
  /// the index is to be read before the rest is listed.
  init(_ storage: any Storage, lease: Lease) throws(StoreError) {
    for name in try names(RepositoryLayout.condemned, storage) {
      guard let id = name.utf8.flatMap({ $0.hasSuffix(".json") ? $0.dropLast(5) : nil }) else {
        continue
      }
      hasCondemned = true
      guard let object = try CondemnedObject.load(name, from: storage) else { continue }
      condemnedPacks.formUnion(object.packs)
      try lease.noteSeen(String(id))
    }
    indexes = Self.indexes(try names(RepositoryLayout.indexes, storage))
  }

  /// Lists the rest: those of the packs that the index names, and the snapshots. Makes the folders
  /// that are missing.
  ///
  /// - Throws: `missing` where one was not empty.
  mutating func finish(
    _ storage: any Storage, indexed: Set<Digest>
  ) throws(StoreError) {
    let folders = Set(indexed.map { RepositoryLayout.pack($0).folder })
    let present = Set(try names(RepositoryLayout.packs, storage))
    for name in RepositoryLayout.packFolders {
      let folder = RepositoryLayout.packs.appending(name)
      if !present.contains(name) {
        missing.append(folder)
      } else if folders.contains(folder) {
        packs.formUnion(try Self.packs(in: folder, storage))
      }
    }
    snapshots = Self.snapshots(try names(RepositoryLayout.snapshots, storage))
    try makeMissing(
      storage,
      FolderNeeds(
        hasSnapshots: !snapshots.isEmpty, hasIndexes: !indexes.isEmpty,
        hasPacksAlone: try hasPacksAlone(storage), packFolders: folders))
  }

  private func hasPacksAlone(_ storage: any Storage) throws(StoreError) -> Bool {
    guard missing.contains(RepositoryLayout.indexes), missing.contains(RepositoryLayout.snapshots)
    else { return false }
    return try !Self.packs(storage, bearingMissingFolders: true).isEmpty
  }

  private func makeMissing(
    _ storage: any Storage, _ needs: FolderNeeds
  ) throws(StoreError) {
    for folder in missing { try needs.requireEmpty(folder) }
    if missing.contains(where: { $0.folder == .root }) {
      try storage.makeMissing(RepositoryLayout.folders, in: .root)
    }
    if missing.contains(where: { $0.folder == RepositoryLayout.packs }) {
      try storage.makeMissing(RepositoryLayout.packFolders, in: RepositoryLayout.packs)
    }
  }

  private mutating func names(
    _ folder: ObjectPath, _ storage: any Storage
  ) throws(StoreError) -> [ByteString] {
    if let names = try storage.listIfPresent(folder) { return names }
    missing.append(folder)
    return []
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

  /// All index objects; a folder of them that is missing is an empty one.
  static func indexes(_ storage: any Storage) throws(StoreError) -> [Digest] {
    indexes(try storage.listIfPresent(RepositoryLayout.indexes) ?? [])
  }

  private static func indexes(_ names: [ByteString]) -> [Digest] {
    names.compactMap { RepositoryLayout.id($0, suffix: ".index") }
  }

  /// All snapshots; a folder of them that is missing is an empty one.
  static func snapshots(_ storage: any Storage) throws(StoreError) -> [Digest] {
    snapshots(try storage.listIfPresent(RepositoryLayout.snapshots) ?? [])
  }

  private static func snapshots(_ names: [ByteString]) -> [Digest] {
    names.compactMap { RepositoryLayout.id($0, suffix: ".json") }
  }
}
