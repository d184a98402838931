package import Codecs
internal import RecoverScript
internal import SystemIO

/// An open repository: its settings and its storage, and the entry point for writing and reading.
///
/// A value that any thread may use. It holds no open file and no lock: a writer takes a lease, and
/// a reader handles objects that others remove in the meantime.
package struct Repository: Sendable {
  package let storage: any Storage
  package let settings: RepositorySettings

  /// The unique id of the repository.
  package var id: Digest { settings.id }

  /// The location of the repository, for messages.
  package var place: String { storage.place }

  /// Opens a repository for reading. Writing checks more.
  ///
  /// - Throws: `noRepository` if there is none, `damaged`, `unsupported` for another version or
  ///   method, `unknownFeature`.
  package static func open(_ storage: any Storage) throws(StoreError) -> Repository {
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
      .noRepository, "open the repository", subject: storage.place,
      reason: "there is no repository.json",
      hint: hasPacks
        ? "its packs exist: " + RepositorySettings.lossHint
        : "run 'sandboxctl init' to create one, or give another path", cause: cause)
  }

  /// Creates a new, unencrypted repository in an empty storage. `repository.json` is written last:
  /// without it there is no repository.
  ///
  /// - Throws: `notEmpty` if the storage is not empty.
  package static func create(
    in storage: any Storage, program: String
  ) throws(StoreError) -> Repository {
    guard try storage.list(.root).isEmpty else {
      throw StoreError(
        .notEmpty, "create a repository in", subject: storage.place,
        reason: "the directory is not empty",
        hint: "give a new or an empty directory")
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
