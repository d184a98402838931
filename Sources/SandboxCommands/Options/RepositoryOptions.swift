internal import ArchiveStore
internal import ArgumentParser
internal import Lifecycle
internal import SystemIO

/// Which repository a command works on.
struct RepositoryOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The repository; else $SANDBOXCTL_REPOSITORY, the configuration's, the user's own.",
      valueName: "repo"),
    completion: .directory)
  var repo: ByteString?

  /// The configuration's, which the environment overrides.
  @Option(help: .hidden)
  var configuredRepo: ByteString?

  /// Finds out which repository is meant.
  func place() throws -> RepositoryLocation {
    if let repo { return RepositoryLocation(path: repo, isStandard: false) }
    if let named = Host.environment("SANDBOXCTL_REPOSITORY") {
      return RepositoryLocation(path: named, isStandard: false)
    }
    if let configuredRepo { return RepositoryLocation(path: configuredRepo, isStandard: false) }
    guard let standard = RepositoryLocation.standard else {
      throw UsageError("there is no repository to work on", hint: "name one with '--repo DIR'")
    }
    return standard
  }

  /// Opens it.
  func open() throws -> (repository: Repository, storage: LocalStorage) { try place().open() }

  /// What a command that is suggested needs, so that it works on the same repository.
  var suffix: String { repo.map { " --repo \(ShellWord.text($0))" } ?? "" }
}

/// Where a repository is looked for.
struct RepositoryLocation {
  let path: ByteString
  /// Whether nobody chose it: it is the user's own, which the first backup makes.
  let isStandard: Bool

  /// The user's own repository, in the directory of the user's data; nil where the environment names
  /// none.
  static var standard: RepositoryLocation? {
    Host.dataDirectory.map {
      RepositoryLocation(path: $0.appending("sandboxctl/repository"), isStandard: true)
    }
  }

  /// Which directory it is; nil where none is there.
  var identity: FileIdentity? { try? LocalStorage(path: path).identity() }

  /// Opens the repository.
  func open() throws -> (repository: Repository, storage: LocalStorage) {
    let storage = try LocalStorage(path: path)
    return (try Repository.open(storage), storage)
  }

  /// Opens the repository; where it is the user's own and not there yet, it is made: plain, and for
  /// nobody else to read (mode 0700), which `isNew` says.
  func openOrMake() throws -> (repository: Repository, storage: LocalStorage, isNew: Bool) {
    do {
      let (repository, storage) = try open()
      return (repository, storage, false)
    } catch let error as StoreError {
      guard error.code == .noRepository, isStandard else { throw error }
      let storage = try LocalStorage.create(path: path)
      // What is there and no repository is named as such, and not made to one.
      guard try storage.list(.root).isEmpty else { throw error }
      return (try Repository.create(in: storage, program: Version.text), storage, true)
    }
  }
}

extension Repository {
  /// This host's copies of the index, where it has a place for them.
  var hostIndexCache: IndexCache? { Host.cacheDirectory.map { indexCache(in: $0) } }

  /// The heads of all snapshots, by way of this host's file of them.
  func hostHeads() throws(StoreError) -> SnapshotHeads { try heads(cache: hostHeadCache) }

  /// This host's file of the heads of snapshots, where it has a place for it.
  var hostHeadCache: SnapshotHeadCache? { Host.cacheDirectory.map { headCache(in: $0) } }

  /// Begins reading by way of this host's copies of the index.
  func beginCachedReading(_ watch: ReadingWatch) throws -> RepositoryReader {
    try beginReading(cache: hostIndexCache, watch: watch)
  }

  /// Begins reading for a restore: each copy is held against its id once more.
  func beginCarefulReading() throws -> RepositoryReader {
    let cache = hostIndexCache
    cache?.prefetchVerification()
    return try beginReading(cache: cache)
  }
}
