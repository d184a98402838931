internal import SystemIO

/// Evidence that a missing directory of the layout was not empty.
///
/// Many copy tools omit empty directories (rclone, zip, git). A missing directory therefore counts
/// as empty and is created again, unless other objects show that it had content. In that case it is
/// lost, or on a volume that is not mounted, and continuing would store everything a second time.
struct DirectoryNeeds {
  var hasSnapshots: Bool
  var hasIndexes: Bool
  /// Whether there are packs, but neither a directory of index objects nor one of snapshots.
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

  /// Checks that a missing directory can have been empty.
  ///
  /// - Throws: `missing` if it was not empty.
  func requireEmpty(_ directory: ObjectPath) throws(StoreError) {
    guard let reason = loss(of: directory) else { return }
    throw StoreError(
      .missing, "use", subject: "\(directory)", reason: reason,
      hint: directory == RepositoryLayout.indexes
        ? StoreError.indexHint
        : "copy it again from its source; if there is no other copy, create an empty directory in its place, "
          + "and the next backup stores missing data again")
  }
}

extension Storage {
  /// Returns the names in a directory of the layout, or nil if the directory is missing. Throws if
  /// the name belongs to something else.
  func listIfPresent(_ directory: ObjectPath) throws(StoreError) -> [ByteString]? {
    do {
      return try list(directory)
    } catch {
      guard error.code == .missing, error.cause?.isAbsent != false else { throw error }
      return nil
    }
  }

  /// Creates the missing directories among `names`. Another program may create some at the same
  /// time; these are kept.
  func makeMissing(_ names: [ByteString], in directory: ObjectPath) throws(StoreError) {
    for _ in 0...names.count {
      let there = Set(try list(directory))
      let missing = names.filter { !there.contains($0) }
      if missing.isEmpty { return }
      do {
        return try makeDirectories(missing, in: directory)
      } catch {
        guard error.code == .notEmpty else { throw error }
      }
    }
  }
}
