internal import SystemIO

/// The next step for each kind of damage.
enum DamageRemedy {
  /// For a damaged or lost pack.
  static let pack =
    "back up again to store what the source still has of its content; then 'sandboxctl repair "
    + "packs' saves its intact data"

  /// For a snapshot of which nothing can be used.
  static let snapshot =
    "restore the object from a copy of the repository, for example a mirror, or remove the "
    + "snapshot with 'sandboxctl forget --force ID'"

  /// For a snapshot with the id of another repository. If `repository.json` was replaced, this
  /// applies to all snapshots, and none of them must be removed.
  static let foreignSnapshot =
    "if all snapshots are reported, restore repository.json from a copy of the repository; "
    + "otherwise move the object to its own repository, or remove the snapshot with 'sandboxctl "
    + "forget --force ID'"

  /// If all snapshots are missing.
  static let lostSnapshots =
    "if another host or user removed them on purpose, 'sandboxctl cache clear' or the next backup "
    + "ends this report; otherwise copy the files in snapshots/ again from a copy of the repository, "
    + "for example a mirror, and run no prune before, which would remove their data"

  /// For a pinned snapshot that does not exist.
  static let pinnedSnapshot =
    "copy the snapshot again from another repository with 'sandboxctl copy', or accept its loss "
    + "with 'sandboxctl snapshots unpin' and its full id"

  /// For a pack about which index objects contradict each other.
  static let contradictedPack = "'sandboxctl check --read-data' finds out if its data is intact"

  /// For a file in place of a directory.
  static let obstructedDirectory =
    "move it away, and copy the directory again from a copy of the repository; if it was empty, "
    + "create it empty"

  /// For a damage record.
  static let damageRecord = "this check replaces the record if it can write to the repository"

  /// Returns the remedy for an object that cannot be used: that of the error if it has one.
  static func remedy(for object: ObjectPath, _ error: StoreError) -> String? {
    guard error.kind == .damaged, error.hint == StoreError.checkHint else { return error.hint }
    switch object.directory {
    case RepositoryLayout.snapshots: return snapshot
    case RepositoryLayout.indexes: return StoreError.indexHint
    case RepositoryLayout.damaged: return damageRecord
    default: return object.directory.directory == RepositoryLayout.packs ? pack : error.hint
    }
  }
}
