internal import SystemIO

/// What tells that a directory of the layout was not empty when it went.
///
/// Many copies leave empty directories out (rclone, zip, git), so one that is missing is taken for empty
/// and made again, but where something else says that it held what is needed: then it is lost, or on a
/// volume that is not mounted, and to go on without it would store everything a second time.
struct DirectoryNeeds {
  var hasSnapshots: Bool
  var hasIndexes: Bool
  /// Whether there are packs, and neither a directory of index objects nor one of snapshots.
  var hasPacksAlone: Bool
  /// Those in which a pack lies that an index object names.
  var packDirectories: Set<ObjectPath>

  /// Why a directory cannot have been empty; nothing where it can.
  func loss(of directory: ObjectPath) -> String? {
    switch directory {
    case RepositoryLayout.indexes where hasSnapshots:
      "the directory is missing, and the snapshots need what was in it"
    case RepositoryLayout.snapshots where hasIndexes:
      "the directory is missing, and the index tells of backups"
    case RepositoryLayout.indexes where hasPacksAlone,
      RepositoryLayout.snapshots where hasPacksAlone:
      "the directory is missing, and there are packs"
    case RepositoryLayout.packs where hasSnapshots:
      "the directory is missing, and the snapshots need what was in it"
    case _ where packDirectories.contains(directory):
      "the directory is missing, and the index names packs in it"
    default: nil
    }
  }

  /// Refuses to go on without a directory that was not empty.
  func requireEmpty(_ directory: ObjectPath) throws(StoreError) {
    guard let reason = loss(of: directory) else { return }
    throw StoreError(
      .missing, "use", "\(directory)", reason,
      hint: directory == RepositoryLayout.indexes
        ? StoreError.indexHint
        : "copy it again from where it still is; if that is nowhere, an empty directory in its place "
          + "lets a backup store anew what is not there")
  }
}

extension Storage {
  /// Gives the names in a directory of the layout; nothing where the directory is missing, and nothing else
  /// is in its place.
  func listIfPresent(_ directory: ObjectPath) throws(StoreError) -> [ByteString]? {
    do {
      return try list(directory)
    } catch {
      guard error.code == .missing, error.cause?.isAbsent != false else { throw error }
      return nil
    }
  }

  /// Makes the directories that are missing in a directory. Another program may be making them, too: what it
  /// was faster with is there.
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
