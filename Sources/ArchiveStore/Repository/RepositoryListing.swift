internal import Codecs
internal import SystemIO

/// The objects of a repository, listed in the order that a writer must follow: condemned objects,
/// index, packs, snapshots. A pack that is listed and not condemned stays while the lease is held.
///
/// Only pack directories with a pack in the index are listed, because writers rely on no other
/// packs. A small repository has few of them, and listing a directory costs as much as reading a
/// file.
///
/// Missing directories are created, so that a failure is known before the first object is written.
struct RepositoryListing {
  var condemnedPacks: Set<Digest> = []
  /// Whether there was any condemned object, except damaged ones.
  var hasCondemned = false
  /// The errors of the damaged condemned objects, which were removed.
  var damagedCondemned: [StoreError] = []
  var indexes: [Digest] = []
  /// The packs that exist with the size in the index.
  var packs: Set<Digest> = []
  /// The packs that a check recorded as damaged.
  var damagedPacks: Set<Digest> = []
  var snapshots: [Digest] = []
  /// The sizes and times of the snapshots, if the listing has them.
  private(set) var snapshotStatuses: [Digest: ObjectStatus]?
  /// The sizes of the index objects, if the listing has them.
  private(set) var indexSizes: [ObjectPath: UInt64]?
  /// The packs with their sizes, in a store without directories.
  private var listedPacks: [Digest: UInt64] = [:]
  /// The time of the sign that names this program, and that of `repository.json`, by the storage's
  /// clock, if the listing has them.
  private(set) var began: Timestamp?
  private(set) var settingsModified: Timestamp?
  /// The directories that do not exist.
  private var missing: [ObjectPath] = []
  /// The directories of another host that were listed together.
  private var together: [ObjectPath: DirectoryListing?] = [:]

  /// Starts to list for a writer, and records each condemned object in its lease. Damaged ones are
  /// removed. The index must be read before `finish` is called.
  init(_ repository: Repository, lease: Lease) throws(StoreError) {
    let storage = repository.storage
    var condemned = try CondemnedObjects(try names(RepositoryLayout.condemned, storage), storage)
    if !condemned.damaged.isEmpty {
      try condemned.removeDamaged(from: repository, by: lease)
      damagedCondemned = condemned.removed
      condemned = try CondemnedObjects(storage)
      if let (_, error) = condemned.damaged.first { throw error }
    }
    hasCondemned = !condemned.ids.isEmpty
    condemnedPacks = condemned.packs
    try lease.recordSeen(condemned.objects.keys.sorted())
    guard storage.canRename else {
      try listAll(storage, lease)
      return
    }
    if storage.isOnAnotherHost { try listTogether(storage, lease) }
    damagedPacks = Set(
      try DamageRecords(try names(ofRecords: storage), storage).complete().packs.keys)
    indexes = Self.ids(.index, in: try names(RepositoryLayout.indexes, storage), of: storage)
  }

  /// Lists the directories of another host that are listed after the condemned objects, at once,
  /// with the sizes and times if it shows them. Their order does not matter (`listAll`).
  private mutating func listTogether(
    _ storage: RepositoryStorage, _ lease: Lease
  ) throws(StoreError) {
    let directories = [
      RepositoryLayout.damaged, RepositoryLayout.indexes, RepositoryLayout.packs,
      RepositoryLayout.snapshots, .root, lease.path,
    ]
    let found = try storage.listAll(directories)
    for (directory, listing) in zip(directories, found) { together[directory] = .some(listing) }
    if let statuses = found[1]?.statuses {
      indexSizes = Dictionary(
        uniqueKeysWithValues: statuses.lazy.filter { !$1.isDirectory }.map {
          (RepositoryLayout.indexes.appending($0), $1.size)
        })
    }
    if let statuses = found[3]?.statuses {
      snapshotStatuses = [:]
      for (name, status) in statuses where !status.isDirectory {
        if let id = storage.layout.id(name, kind: .snapshot) { snapshotStatuses?[id] = status }
      }
    }
    settingsModified = found[4]?.statuses?[RepositoryLayout.settings.name]?.modified
    began = found[5]?.statuses?[LeaseStatus.Owner.sign]?.modified
  }

  /// Lists everything except condemned objects in a store without directories, by one request for
  /// 1,000 objects.
  ///
  /// The order in which damage records, index objects, packs and snapshots are seen does not
  /// matter, even if the store looks at them at different times: the condemned objects were listed
  /// before all of them. A pack that is seen after that, and is in no condemned object, stays: one
  /// that was put into such an object later is not removed while this lease exists, and one whose
  /// object was removed before was removed before its object.
  private mutating func listAll(
    _ storage: RepositoryStorage, _ lease: Lease
  ) throws(StoreError) {
    let layout = storage.layout
    let sign = lease.path.appending(LeaseStatus.Owner.sign)
    var damaged: [ByteString] = []
    var sizes: [ObjectPath: UInt64] = [:]
    var found: [Digest: ObjectStatus] = [:]
    try storage.forEachObject(below: .root) { path, status in
      if let pack = layout.packID(path) {
        listedPacks[pack] = status.size
      } else if let snapshot = layout.snapshotID(path) {
        found[snapshot] = status
      } else if path.directory == RepositoryLayout.indexes {
        sizes[path] = status.size
      } else if path.directory == RepositoryLayout.damaged {
        damaged.append(path.name)
      } else if path == sign {
        began = status.modified
      } else if path == RepositoryLayout.settings {
        settingsModified = status.modified
      }
    }
    damagedPacks = Set(try DamageRecords(damaged, storage).complete().packs.keys)
    indexes = Self.ids(.index, in: sizes.keys.map(\.name).sorted(), of: storage)
    (snapshots, snapshotStatuses, indexSizes) = (found.keys.sorted(), found, sizes)
  }

  /// Whether a writer may rely on the index entries of a pack.
  func isReliable(_ pack: Digest) -> Bool {
    packs.contains(pack) && !condemnedPacks.contains(pack) && !damagedPacks.contains(pack)
  }

  /// Lists the rest: the packs that have the size in the index, and the snapshots. Creates missing
  /// directories.
  ///
  /// - Parameters:
  ///   - indexed: the packs of all known index objects, with their sizes.
  ///   - listed: those of the listed objects. Only they show that a directory was not empty: a host
  ///     that cannot read has copies of other objects, whose packs a prune may have removed.
  /// - Throws: `missing` if a missing directory was not empty.
  mutating func finish(
    _ storage: RepositoryStorage, indexed: [Digest: UInt64], listed: Set<Digest>
  ) throws(StoreError) {
    guard storage.canRename else {
      packs = Set(listedPacks.filter { indexed[$0] == $1 }.keys)
      listedPacks = [:]
      return
    }
    let directories = Set(indexed.keys.map { storage.layout.pack($0).directory })
    let present = Set(try names(RepositoryLayout.packs, storage))
    let isListedAtOnce = storage.isOnAnotherHost
    if isListedAtOnce, !directories.isEmpty {
      try storage.forEachObject(belowAny: directories.sorted { $0.name < $1.name }) {
        path, status in
        if let id = storage.layout.packID(path), indexed[id] == status.size { packs.insert(id) }
      }
    }
    for name in RepositoryLayout.packDirectories {
      let directory = RepositoryLayout.packs.appending(name)
      if !present.contains(name) {
        missing.append(directory)
      } else if !isListedAtOnce, directories.contains(directory) {
        packs.formUnion(try Self.packs(below: directory, storage).filter { indexed[$0] == $1 }.keys)
      }
    }
    snapshots = Self.ids(
      .snapshot, in: try names(RepositoryLayout.snapshots, storage), of: storage)
    try makeMissing(
      storage,
      DirectoryNeeds(
        hasSnapshots: !snapshots.isEmpty, hasIndexes: !indexes.isEmpty,
        hasPacksAlone: try hasPacksAlone(storage),
        packDirectories: Set(listed.map { storage.layout.pack($0).directory })))
  }

  private func hasPacksAlone(_ storage: RepositoryStorage) throws(StoreError) -> Bool {
    guard missing.contains(RepositoryLayout.indexes), missing.contains(RepositoryLayout.snapshots)
    else { return false }
    return try !Self.packSizes(storage).isEmpty
  }

  private func makeMissing(
    _ storage: RepositoryStorage, _ needs: DirectoryNeeds
  ) throws(StoreError) {
    for directory in missing { try needs.requireEmpty(directory) }
    if missing.contains(where: { $0.directory == .root }) {
      try storage.makeMissing(RepositoryLayout.directories, in: .root)
    }
    if missing.contains(where: { $0.directory == RepositoryLayout.packs }) {
      try storage.makeMissing(RepositoryLayout.packDirectories, in: RepositoryLayout.packs)
    }
  }

  /// Returns the names in the directory of damage records, which is missing in most repositories.
  private func names(ofRecords storage: RepositoryStorage) throws(StoreError) -> [ByteString] {
    if let listing = together[RepositoryLayout.damaged] { return listing?.names ?? [] }
    return try storage.listIfPresent(RepositoryLayout.damaged) ?? []
  }

  private mutating func names(
    _ directory: ObjectPath, _ storage: RepositoryStorage
  ) throws(StoreError) -> [ByteString] {
    if let listing = together[directory] {
      if let names = listing?.names { return names }
    } else if let names = try storage.listIfPresent(directory) {
      return names
    }
    missing.append(directory)
    return []
  }

  /// Returns all packs with their stored sizes, in one listing. A missing directory of packs counts
  /// as empty.
  static func packSizes(_ storage: RepositoryStorage) throws(StoreError) -> [Digest: UInt64] {
    do throws(StoreError) {
      return try packs(below: RepositoryLayout.packs, storage)
    } catch {
      guard error.isAbsence else { throw error }
      return [:]
    }
  }

  /// Returns all packs.
  static func packs(_ storage: RepositoryStorage) throws(StoreError) -> Set<Digest> {
    Set(try packSizes(storage).keys)
  }

  /// Returns the packs below a directory that are in their own directory, with their stored sizes.
  private static func packs(
    below directory: ObjectPath, _ storage: RepositoryStorage
  ) throws(StoreError) -> [Digest: UInt64] {
    var sizes: [Digest: UInt64] = [:]
    try storage.forEachObject(below: directory) { path, status in
      if let id = storage.layout.packID(path) { sizes[id] = status.size }
    }
    return sizes
  }

  /// Returns all index objects. A missing directory counts as empty.
  static func indexes(_ storage: RepositoryStorage) throws(StoreError) -> [Digest] {
    ids(.index, in: try storage.listIfPresent(RepositoryLayout.indexes) ?? [], of: storage)
  }

  /// Returns all index objects and the sizes of those that are regular files, for a storage that
  /// lists both with one request.
  ///
  /// - Throws: `missing` if the directory is missing.
  static func indexesWithSizes(
    _ storage: RepositoryStorage
  ) throws(StoreError) -> (ids: [Digest], sizes: [ObjectPath: UInt64]) {
    var sizes: [ObjectPath: UInt64] = [:]
    try storage.forEachObject(below: RepositoryLayout.indexes) { path, status in
      if path.directory == RepositoryLayout.indexes { sizes[path] = status.size }
    }
    return (ids(.index, in: sizes.keys.map(\.name).sorted(), of: storage), sizes)
  }

  /// Returns all snapshots. A missing directory counts as empty.
  static func snapshots(_ storage: RepositoryStorage) throws(StoreError) -> [Digest] {
    ids(.snapshot, in: try storage.listIfPresent(RepositoryLayout.snapshots) ?? [], of: storage)
  }

  /// Returns the sizes and times of all snapshots that are regular files.
  static func snapshotStatuses(
    _ storage: RepositoryStorage
  ) throws(StoreError) -> [Digest: ObjectStatus] {
    var statuses: [Digest: ObjectStatus] = [:]
    do throws(StoreError) {
      try storage.forEachObject(below: RepositoryLayout.snapshots) { path, status in
        if let id = storage.layout.snapshotID(path) { statuses[id] = status }
      }
    } catch {
      guard error.isAbsence else { throw error }
    }
    return statuses
  }

  /// Returns the ids in the names of one kind of objects.
  static func ids(
    _ kind: ObjectKind, in names: [ByteString], of storage: RepositoryStorage
  ) -> [Digest] {
    let layout = storage.layout
    return names.compactMap { layout.id($0, kind: kind) }
  }
}

extension RepositoryListing {
  /// Evidence that a missing directory of the layout was not empty.
  ///
  /// Many copy tools omit empty directories (rclone, zip, git). A missing directory therefore
  /// counts as empty and is created again, unless other objects show that it had content. In that
  /// case it is lost, or on a volume that is not mounted, and continuing would store everything a
  /// second time.
  struct DirectoryNeeds {
    var hasSnapshots: Bool
    var hasIndexes: Bool
    /// Whether there are packs but no directory of index objects and none of snapshots.
    var hasPacksAlone: Bool
    /// The directories with a pack that an index object names.
    var packDirectories: Set<ObjectPath>

    /// Returns the reason a directory cannot have been empty, or nil if it can.
    func loss(of directory: ObjectPath) -> String? {
      switch directory {
      case RepositoryLayout.indexes where hasSnapshots:
        "the directory is missing, but snapshots need its content"
      case RepositoryLayout.snapshots where hasIndexes:
        "the directory is missing, but the index lists the blobs of backups"
      case RepositoryLayout.indexes where hasPacksAlone,
        RepositoryLayout.snapshots where hasPacksAlone:
        "the directory is missing, but there are packs"
      case RepositoryLayout.packs where hasSnapshots:
        "the directory is missing, but snapshots need its content"
      case _ where packDirectories.contains(directory):
        "the directory is missing, but the index names packs in it"
      default: nil
      }
    }

    /// Returns the remedy for a missing directory that was not empty.
    func hint(for directory: ObjectPath) -> String {
      switch directory {
      case RepositoryLayout.indexes: StoreError.indexHint
      case RepositoryLayout.snapshots:
        "copy it again from its source; without the snapshots, the data of earlier backups looks "
          + "unused, and a prune would remove it: make new backups in a new repository"
      default:
        "copy it again from its source; if there is no other copy, create an empty directory in its "
          + "place, and the next backup stores missing data again"
      }
    }

    /// Checks that a missing directory may have been empty.
    ///
    /// - Throws: `missing` if it was not empty.
    func requireEmpty(_ directory: ObjectPath) throws(StoreError) {
      guard let reason = loss(of: directory) else { return }
      throw StoreError(
        .missing, "use", subject: "\(directory)", reason: reason,
        hint: hint(for: directory))
    }
  }
}
