internal import Codecs
internal import SystemIO

/// The objects of a repository, listed in an order that stays consistent during a backup:
/// snapshots, then the index that they need, then the packs that it names.
struct RepositoryInventory: Hashable {
  var snapshots: [SnapshotID] = []
  var indexes: [Digest] = []
  /// Packs with their stored sizes.
  var packs: [Digest: UInt64] = [:]
  var condemned: [Digest] = []
  var leases: [ByteString] = []
  var pins: [ByteString] = []
  /// Directories of the layout that do not exist.
  var missingDirectories: [ObjectPath] = []
  /// Directories of the layout whose names belong to something else.
  var obstructedDirectories: [ObjectPath] = []
  /// Whether there are packs but no directory of index objects and none of snapshots.
  var hasPacksAlone: Bool {
    !packs.isEmpty && missingDirectories.contains(RepositoryLayout.indexes)
      && missingDirectories.contains(RepositoryLayout.snapshots)
  }
  /// Files whose names do not conform to the format, or do not match their directory.
  var unknownFiles: [ObjectPath] = []

  /// Lists the objects of a repository.
  ///
  /// - Parameter own: the name of a lease that is not listed.
  init(_ storage: RepositoryStorage, besides own: ByteString? = nil) throws(StoreError) {
    let layout = storage.layout
    snapshots = try list(RepositoryLayout.snapshots, storage) { layout.id($0, kind: .snapshot) }
    indexes = try list(RepositoryLayout.indexes, storage) { layout.id($0, kind: .index) }
    try listPacks(storage)
    condemned = try list(RepositoryLayout.condemned, storage) {
      RepositoryLayout.id($0, suffix: ".json")
    }
    leases = try names(RepositoryLayout.leases, storage).filter { $0 != own }
    pins = try names(RepositoryLayout.pins, storage)
  }

  /// Lists the packs; in one listing in a store without directories.
  private mutating func listPacks(_ storage: RepositoryStorage) throws(StoreError) {
    let layout = storage.layout
    guard storage.canRename else {
      var (packs, unknown) = ([Digest: UInt64](), [ObjectPath]())
      try storage.forEachObject(below: RepositoryLayout.packs) { path, status in
        if let id = layout.packID(path) {
          packs[id] = status.size
        } else if !RepositoryLayout.isProbe(path.name) {
          unknown.append(path)
        }
      }
      self.packs = packs
      unknownFiles += unknown.sorted { $0.components.lexicographicallyPrecedes($1.components) }
      return
    }
    let directories = RepositoryLayout.packDirectories.map { RepositoryLayout.packs.appending($0) }
    let listings = Self.listings(of: directories, storage)
    for (number, directory) in directories.enumerated() {
      let listing = listings?[number]
      var found = listing?.names
      if found == nil { found = try names(directory, storage) }
      for id in ids(of: found ?? [], in: directory, id: { layout.id($0, kind: .pack) }) {
        let path = layout.pack(id)
        guard path.directory == directory else {
          unknownFiles.append(directory.appending(path.name))
          continue
        }
        // A pack that no longer exists was removed by a prune after the listing.
        var known = listing?.statuses?[path.name]
        if known == nil { known = try storage.status(path) }
        guard let status = known else { continue }
        if status.isDirectory { unknownFiles.append(path) } else { packs[id] = status.size }
      }
    }
  }

  /// Returns the listings of directories of another host, made at the same time, or nil if each has
  /// to be listed by itself.
  private static func listings(
    of directories: [ObjectPath], _ storage: RepositoryStorage
  ) -> [DirectoryListing?]? {
    guard storage.isOnAnotherHost else { return nil }
    // A listing shows which names are directories, so they need no requests of their own.
    _ = try? storage.listAll([RepositoryLayout.packs])
    return try? storage.listAll(directories)
  }

  /// Returns the ids of a directory's objects. Other names are added to the unknown files.
  private mutating func list(
    _ directory: ObjectPath, _ storage: RepositoryStorage, id: (ByteString) -> Digest?
  ) throws(StoreError) -> [Digest] {
    ids(of: try names(directory, storage), in: directory, id: id)
  }

  private mutating func ids(
    of names: [ByteString], in directory: ObjectPath, id: (ByteString) -> Digest?
  ) -> [Digest] {
    var ids: [Digest] = []
    for name in names {
      if let id = id(name) {
        ids.append(id)
      } else if !RepositoryLayout.isProbe(name) {
        unknownFiles.append(directory.appending(name))
      }
    }
    return ids
  }

  private mutating func names(
    _ directory: ObjectPath, _ storage: RepositoryStorage
  ) throws(StoreError) -> [ByteString] {
    do {
      if let names = try storage.listIfPresent(directory) { return names }
      missingDirectories.append(directory)
    } catch {
      guard error.code == .missing else { throw error }
      obstructedDirectories.append(directory)
    }
    return []
  }
}
