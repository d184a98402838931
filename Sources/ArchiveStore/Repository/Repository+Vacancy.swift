internal import SystemIO

extension Repository {
  /// Checks that a storage is empty, so that a repository can be created in it.
  ///
  /// - Throws: `notEmpty`.
  package static func requireEmpty(_ storage: any Storage) throws(StoreError) {
    let names = try storage.list(.root)
    if names.isEmpty { return }
    let isUnfinished = (try? isUnfinished(storage, names)) ?? false
    throw StoreError(
      .notEmpty, "create a repository in", subject: storage.location,
      reason: isUnfinished
        ? "it has the remains of a repository that was not completed, without any data"
        : "the directory is not empty",
      hint: isUnfinished
        ? "delete the directory, unless another program is just creating it, and try again"
        : "give a new or an empty directory")
  }

  /// Whether a storage has nothing but what `create` makes before the repository exists.
  private static func isUnfinished(
    _ storage: any Storage, _ names: [ByteString]
  ) throws(StoreError) -> Bool {
    let files = [
      RepositoryLayout.readme, RepositoryLayout.recoverScript, RepositoryLayout.reserve,
    ].map(\.name)
    // It makes all directories first. A directory of the user may have some of these names.
    guard Set(names).isSubset(of: RepositoryLayout.directories + files),
      Set(names).isSuperset(of: RepositoryLayout.directories)
    else { return false }
    var places = [RepositoryLayout.indexes, RepositoryLayout.snapshots]
    places += try storage.list(RepositoryLayout.packs).map { RepositoryLayout.packs.appending($0) }
    for place in places where try !storage.list(place).isEmpty { return false }
    return true
  }
}
