internal import Codecs
internal import SystemIO

/// All that lies in a repository, listed in an order that a running backup does not upset:
/// snapshots, then the index that they need, then the packs that it names.
struct RepositoryInventory: Hashable {
  var snapshots: [SnapshotID] = []
  var indexes: [Digest] = []
  /// Packs with their sizes as stored.
  var packs: [Digest: UInt64] = [:]
  var condemned: [ByteString] = []
  var leases: [ByteString] = []
  var pins: [ByteString] = []
  /// Folders of the layout that are not there.
  var missingFolders: [ObjectPath] = []
  /// Those in whose place something else is.
  var obstructedFolders: [ObjectPath] = []
  /// Whether there are packs, and neither a folder of index objects nor one of snapshots.
  var hasPacksAlone: Bool {
    !packs.isEmpty && missingFolders.contains(RepositoryLayout.indexes)
      && missingFolders.contains(RepositoryLayout.snapshots)
  }
  /// Files whose names are not of the format, or not of their folder.
  var strangers: [ObjectPath] = []

  init(_ storage: any Storage) throws(StoreError) {
    snapshots = try list(RepositoryLayout.snapshots, suffix: ".json", storage)
    indexes = try list(RepositoryLayout.indexes, suffix: ".index", storage)
    for name in RepositoryLayout.packFolders {
      let folder = RepositoryLayout.packs.appending(name)
      for id in try list(folder, suffix: ".tar.zst", storage) {
        let path = RepositoryLayout.pack(id)
        guard path.folder == folder else {
          strangers.append(folder.appending(path.name))
          continue
        }
        // One that is gone since the listing was removed by a prune.
        if let status = try storage.status(path) { packs[id] = status.size }
      }
    }
    condemned = try names(RepositoryLayout.condemned, storage)
    leases = try names(RepositoryLayout.leases, storage)
    pins = try names(RepositoryLayout.pins, storage)
  }

  /// The ids of a folder's objects; other names are strangers.
  private mutating func list(
    _ folder: ObjectPath, suffix: String, _ storage: any Storage
  ) throws(StoreError) -> [Digest] {
    var ids: [Digest] = []
    for name in try names(folder, storage) {
      if let id = RepositoryLayout.id(name, suffix: suffix) {
        ids.append(id)
      } else {
        strangers.append(folder.appending(name))
      }
    }
    return ids
  }

  private mutating func names(
    _ folder: ObjectPath, _ storage: any Storage
  ) throws(StoreError) -> [ByteString] {
    do {
      if let names = try storage.listIfPresent(folder) { return names }
      missingFolders.append(folder)
    } catch {
      guard error.code == .missing else { throw error }
      obstructedFolders.append(folder)
    }
    return []
  }
}
