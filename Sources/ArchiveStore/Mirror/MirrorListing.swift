internal import Codecs
internal import SystemIO

/// The objects of a repository as a mirror copies them.
///
/// Snapshots are listed first, then the index, then the packs. A snapshot is committed after its
/// index, and an index after its packs; and a prune makes an index durable before it removes a
/// pack. So every blob that a listed snapshot needs is in a listed pack, unless it is lost.
struct MirrorListing {
  private(set) var snapshots: Set<Digest> = []
  private(set) var indexes: Set<Digest> = []
  /// The packs with their stored sizes.
  private(set) var packs: [Digest: UInt64] = [:]
  /// The damage records.
  private(set) var records: Set<Digest> = []
  private(set) var pins: Set<Digest> = []
  /// The packs that a check of this repository recorded as damaged, and the other one did not.
  private(set) var damagedPacks: Set<Digest> = []
  /// The directories of the layout that do not exist.
  private(set) var missing: Set<ObjectPath> = []

  /// An empty listing.
  init() {}

  /// Lists all objects.
  /// - Throws: any failure, because a listing must be complete.
  init(_ storage: RepositoryStorage) throws(StoreError) {
    pins = Self.ids(try names(RepositoryLayout.pins, storage), suffix: "")
    snapshots = Set(
      RepositoryListing.ids(
        .snapshot, in: try names(RepositoryLayout.snapshots, storage), of: storage))
    indexes = Set(
      RepositoryListing.ids(
        .index, in: try names(RepositoryLayout.indexes, storage), of: storage))
    records = Self.ids(try names(RepositoryLayout.damaged, storage), suffix: ".json")
    let present = Set(try names(RepositoryLayout.packs, storage))
    for name in RepositoryLayout.packDirectories where !present.contains(name) {
      missing.insert(RepositoryLayout.packs.appending(name))
    }
    packs = try RepositoryListing.packSizes(storage)
  }

  /// Lists all objects of a mirror, and finds the packs that only it records as damaged.
  init(ofMirror storage: RepositoryStorage, of original: RepositoryStorage) throws(StoreError) {
    try self.init(storage)
    guard !records.isEmpty else { return }
    damagedPacks = Set(try DamageRecords(storage).complete().packs.keys)
      .subtracting(try DamageRecords(original).packs.keys)
  }

  /// Lists the index objects and packs again.
  mutating func update(_ storage: RepositoryStorage) throws(StoreError) {
    indexes = Set(
      RepositoryListing.ids(
        .index, in: try names(RepositoryLayout.indexes, storage), of: storage))
    packs = try RepositoryListing.packSizes(storage)
  }

  /// Whether it lacks a snapshot, an index object or a pack that another listing has.
  func lacksAnObject(of other: MirrorListing) -> Bool {
    !other.snapshots.isSubset(of: snapshots) || !other.indexes.isSubset(of: indexes)
      || other.packs.contains { packs[$0.key] == nil }
  }

  /// Returns the snapshots of a mirror that were removed from this original. One that is pinned
  /// here cannot have been removed: it is lost.
  func snapshotsRemoved(from mirror: MirrorListing) -> Set<SnapshotID> {
    mirror.snapshots.subtracting(snapshots).subtracting(pins)
  }

  /// Returns the errors for snapshots of a mirror that this original has lost.
  func losses(comparedTo mirror: MirrorListing, in target: RepositoryStorage) -> [StoreError] {
    let lost = mirror.snapshots.subtracting(snapshots).intersection(pins)
    return lost.sorted().map { id in
      StoreError(
        .missing, "find", subject: "\(target.layout.snapshot(id))",
        reason: "the snapshot is pinned, and the original lacks it; the mirror keeps it",
        hint: "copy it from the mirror to the original with 'sandboxctl copy', or accept its loss "
          + "there with 'sandboxctl snapshots unpin' and its full id")
    }
  }

  /// Uses the size of the mirror's copy for a pack that is damaged in the original.
  mutating func replaceSize(of pack: Digest, by size: UInt64) { packs[pack] = size }

  /// Checks that the missing directories may have been empty.
  ///
  /// - Throws: `missing` if one was not.
  func requireComplete() throws(StoreError) {
    let hasPacksAlone =
      !packs.isEmpty && missing.contains(RepositoryLayout.indexes)
      && missing.contains(RepositoryLayout.snapshots)
    let needs = RepositoryListing.DirectoryNeeds(
      hasSnapshots: !snapshots.isEmpty, hasIndexes: !indexes.isEmpty,
      hasPacksAlone: hasPacksAlone, packDirectories: [])
    for directory in missing { try needs.requireEmpty(directory) }
  }

  private mutating func names(
    _ directory: ObjectPath, _ storage: RepositoryStorage
  ) throws(StoreError) -> [ByteString] {
    if let names = try storage.listIfPresent(directory) { return names }
    missing.insert(directory)
    return []
  }

  private static func ids(_ names: [ByteString], suffix: String) -> Set<Digest> {
    Set(names.compactMap { RepositoryLayout.id($0, suffix: suffix) })
  }
}
