internal import SystemIO

/// What tells that a folder of the layout was not empty when it went.
///
/// Many copies leave empty folders out (rclone, zip, git), so one that is missing is taken for empty
/// and made again, but where something else says that it held what is needed: then it is lost, or on a
/// volume that is not mounted, and to go on without it would store everything a second time.
struct FolderNeeds {
  var hasSnapshots: Bool
  var hasIndexes: Bool
  /// Whether there are packs, and neither a folder of index objects nor one of snapshots.
  var hasPacksAlone: Bool
  /// Those in which a pack lies that an index object names.
  var packFolders: Set<ObjectPath>

  /// Why a folder cannot have been empty; nothing where it can.
  func loss(of folder: ObjectPath) -> String? {
    switch folder {
    case RepositoryLayout.indexes where hasSnapshots:
      "the folder is missing, and the snapshots need what was in it"
    case RepositoryLayout.snapshots where hasIndexes:
      "the folder is missing, and the index tells of backups"
    case RepositoryLayout.indexes where hasPacksAlone,
      RepositoryLayout.snapshots where hasPacksAlone:
      "the folder is missing, and there are packs"
    case RepositoryLayout.packs where hasSnapshots:
      "the folder is missing, and the snapshots need what was in it"
    case _ where packFolders.contains(folder):
      "the folder is missing, and the index names packs in it"
    default: nil
    }
  }

  /// Refuses to go on without a folder that was not empty.
  func requireEmpty(_ folder: ObjectPath) throws(StoreError) {
    guard let reason = loss(of: folder) else { return }
    throw StoreError(
      .missing, "use", "\(folder)", reason,
      hint: folder == RepositoryLayout.indexes
        ? StoreError.indexHint
        : "copy it again from where it still is; if that is nowhere, an empty folder in its place "
          + "lets a backup store anew what is not there")
  }
}

extension Storage {
  /// Gives the names in a folder of the layout; nothing where the folder is missing, and nothing else
  /// is in its place.
  func listIfPresent(_ folder: ObjectPath) throws(StoreError) -> [ByteString]? {
    do {
      return try list(folder)
    } catch {
      guard error.code == .missing, error.cause?.isAbsent != false else { throw error }
      return nil
    }
  }

  /// Makes the folders that are missing in a folder. Another program may be making them, too: what it
  /// was faster with is there.
  func makeMissing(_ names: [ByteString], in folder: ObjectPath) throws(StoreError) {
    for _ in 0...names.count {
      let there = Set(try list(folder))
      let missing = names.filter { !there.contains($0) }
      if missing.isEmpty { return }
      do {
        return try makeFolders(missing, in: folder)
      } catch {
        guard error.code == .notEmpty else { throw error }
      }
    }
  }
}
