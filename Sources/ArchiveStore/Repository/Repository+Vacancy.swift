internal import SystemIO

extension Repository {
  /// The remedy for the remains of a repository whose creation was not completed.
  static let unfinishedHint =
    "delete the directory, unless another program is just creating it, and try again"

  /// Checks that a storage is empty, so that a repository can be created in it.
  ///
  /// - Throws: `notEmpty`.
  package static func requireEmpty(_ storage: any Storage) throws(StoreError) {
    let names = try storage.list(.root)
    if names.isEmpty { return }
    if names.contains(RepositoryLayout.settings.name) {
      throw StoreError(
        .notEmpty, "create a repository in", subject: storage.location,
        reason: "a repository exists there", hint: "use it, or choose a new or empty directory")
    }
    let isUnfinished = (try? isUnfinished(storage, names)) ?? false
    throw StoreError(
      .notEmpty, "create a repository in", subject: storage.location,
      reason: isUnfinished
        ? "it has the remains of a repository that was not completed, without any data"
        : "the directory is not empty",
      hint: isUnfinished
        ? unfinishedHint
        : "choose a new or empty directory")
  }

  /// Removes what `create` has made, as far as that is possible and no other program creates a
  /// repository there. For use only if `prepare` has failed: before it was called, the content of
  /// the storage may be the user's, and afterwards the repository may exist.
  package static func removeUnfinished(in storage: any Storage) {
    // Those of another program come after its lease, which is looked for after them.
    let keys = (try? storage.list(RepositoryLayout.keys)) ?? []
    guard let leases = try? storage.listIfPresent(RepositoryLayout.leases) ?? [], leases.isEmpty,
      let names = try? storage.list(.root), !names.contains(RepositoryLayout.settings.name)
    else { return }
    var paths = keys.map { RepositoryLayout.keys.appending($0) }
    paths += [RepositoryLayout.readme, RepositoryLayout.recoverScript, RepositoryLayout.reserve]
    if storage.canRename {
      paths += RepositoryLayout.packDirectories.map { RepositoryLayout.packs.appending($0) }
      paths += RepositoryLayout.directories.map { ObjectPath.root.appending($0) }
    }
    for path in paths { try? storage.remove(path) }
  }

  /// Whether a storage contains only what `create` makes before the repository exists, or part of
  /// it, without any data.
  static func isUnfinished(
    _ storage: any Storage, _ names: [ByteString]
  ) throws(StoreError) -> Bool {
    let files = [
      RepositoryLayout.readme, RepositoryLayout.recoverScript, RepositoryLayout.reserve,
    ].map(\.name)
    let (present, directories) = (Set(names), Set(RepositoryLayout.directories))
    // It makes all directories first. A directory of the user may have some of these names.
    let isWhole = present.isSuperset(of: directories)
    guard !names.isEmpty, present.isSubset(of: isWhole ? directories.union(files) : directories)
    else { return false }
    // Condemned objects and pins show that a repository existed.
    let data = [
      RepositoryLayout.condemned, RepositoryLayout.pins, RepositoryLayout.indexes,
      RepositoryLayout.snapshots, RepositoryLayout.packs,
    ]
    for name in isWhole ? data.map(\.name) : names {
      let place = ObjectPath.root.appending(name)
      let found = try storage.list(place)
      if place != RepositoryLayout.packs, !found.isEmpty { return false }
      if place != RepositoryLayout.packs { continue }
      guard Set(found).isSubset(of: RepositoryLayout.packDirectories) else { return false }
      for directory in found where try !storage.list(place.appending(directory)).isEmpty {
        return false
      }
    }
    return true
  }

  /// Returns the names in the storage of a new repository: none, or the remains of a run that
  /// failed or was killed.
  ///
  /// - Parameter continuing: whether such remains are used. They are not used if they include a key
  ///   or are of an encrypted repository, or if the program that made them may still run.
  /// - Throws: `notEmpty`.
  func presentNames(continuing: Bool) throws(StoreError) -> [ByteString] {
    let names = try storage.list(.root)
    if continuing, try canBeContinued(names) { return names }
    try Self.requireEmpty(storage.base)
    return []
  }

  private func canBeContinued(_ names: [ByteString]) throws(StoreError) -> Bool {
    guard (try? Self.isUnfinished(storage.base, names)) ?? false else { return false }
    if names.contains(RepositoryLayout.keys.name),
      try !storage.list(RepositoryLayout.keys).isEmpty
    {
      return false
    }
    // That of an encrypted repository differs, and may be what the user wanted.
    let (readme, plain) = (RepositoryLayout.readme, Array(Self.readme(isEncrypted: false).utf8))
    if names.contains(readme.name),
      try storage.base.load(readme, limit: FormatLimit.repositoryFile) != plain
    {
      return false
    }
    if !names.contains(RepositoryLayout.leases.name) { return true }
    return try leases().allSatisfy { $0.presence == .ended }
  }
}
