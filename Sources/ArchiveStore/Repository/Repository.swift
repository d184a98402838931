public import Codecs
internal import RecoverScript
internal import SystemIO

/// A repository that is open: what it is, where it lies, and the way to writing and reading.
///
/// A value, for any thread. It holds nothing open and no lock: a writer takes a lease, a reader
/// copes with what others remove meanwhile.
public struct Repository: Sendable {
  public let storage: any Storage
  public let settings: RepositorySettings

  /// What tells this repository from every other.
  public var id: Digest { settings.id }

  /// The place, for messages.
  public var place: String { storage.place }

  /// Opens a repository for reading; writing checks more.
  ///
  /// Errors: `noRepository` where there is none, `damaged`, `unsupported` for another version or
  /// method, `unknownFeature`.
  public static func open(_ storage: any Storage) throws(StoreError) -> Repository {
    let text: [UInt8]
    do {
      text = try storage.load(RepositoryLayout.settings, limit: FormatLimit.repositoryFile)
    } catch {
      guard error.code == .missing else { throw error }
      throw noRepository(storage, error.cause)
    }
    let settings = try RepositorySettings(text)
    try settings.requireKnown(settings.features.read, for: "read", place: storage.place)
    return Repository(storage: storage, settings: settings)
  }

  private static func noRepository(_ storage: any Storage, _ cause: SystemError?) -> StoreError {
    let names = (try? storage.list(.root)) ?? []
    let hasPacks = names.contains(RepositoryLayout.packs.name)
    return StoreError(
      .noRepository, "open the repository", storage.place, "there is no repository.json",
      hint: hasPacks
        ? "its packs are there: " + RepositorySettings.lossHint
        : "'sandboxctl init' makes one; or name another place", cause: cause)
  }

  /// Makes a new repository, not encrypted, in an empty storage.
  ///
  /// `repository.json` comes last: before it there is no repository. Errors: `notEmpty` where the
  /// storage holds anything.
  public static func create(
    in storage: any Storage, program: String
  ) throws(StoreError) -> Repository {
    guard try storage.list(.root).isEmpty else {
      throw StoreError(
        .notEmpty, "make a repository in", storage.place, "the directory is not empty",
        hint: "name a new or an empty directory")
    }
    let id = Blake2b.hash(Host.random(count: 64))
    let settings = RepositorySettings(id: id, program: program, features: .init())
    try storage.makeDirectories(RepositoryLayout.directories, in: .root)
    try storage.makeDirectories(RepositoryLayout.packDirectories, in: RepositoryLayout.packs)
    let lease = try Lease(storage)
    defer { lease.release() }
    try storage.save(Array(readme.utf8), as: RepositoryLayout.readme, by: lease.path)
    try storage.save(RecoverScript.bytes, as: RepositoryLayout.recoverScript, by: lease.path)
    let reserve = [UInt8](repeating: 0, count: RepositoryLayout.reserveSize)
    try storage.save(reserve, as: RepositoryLayout.reserve, by: lease.path)
    try storage.save(settings.encode(), as: RepositoryLayout.settings, by: lease.path)
    return Repository(storage: storage, settings: settings)
  }
}
