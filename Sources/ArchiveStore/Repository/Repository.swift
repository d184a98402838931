public import Codecs
internal import RecoverScript
package import SystemIO

/// An open repository: its settings and its storage, and the entry point for writing and reading.
///
/// A value that any thread may use. It holds no open file and no lock: a writer takes a lease, and
/// a reader handles objects that others remove in the meantime.
public struct Repository: Sendable {
  public let storage: RepositoryStorage
  public let settings: RepositorySettings
  /// The keys of an encrypted repository; nil if it is not encrypted or was opened without them.
  public let keys: RepositoryKeys?
  /// The signers whose snapshots this host accepts.
  public var trust = TrustedSigners()
  /// The error for everything that stores or removes data, or changes keys; nil if that is allowed.
  /// Data can be read in any case.
  public var writeRefusal: StoreError?
  /// Returns the key that signs the snapshots of this host, or nil if it has none. Called when a
  /// snapshot is saved.
  public var signingKey: (@Sendable () -> SigningKey?)?

  init(
    _ storage: any Storage, settings: RepositorySettings, keys: RepositoryKeys?,
    opened: Double = Host.bootSeconds()
  ) {
    let cipher = ObjectCipher(
      identities: keys?.identities ?? [], recipients: keys?.recipients ?? [],
      lacksOlder: keys?.firstMissing(of: settings.olderRecipients) != nil, opened: opened)
    self.storage = RepositoryStorage(storage, cipher: settings.isEncrypted ? cipher : nil)
    (self.settings, self.keys) = (settings, keys)
  }

  /// Whether packs, index objects and snapshots are encrypted.
  public var isEncrypted: Bool { settings.isEncrypted }

  /// The names of the directories in the root of a repository.
  package static var directories: [ByteString] { RepositoryLayout.directories }

  /// The directories that queries of snapshots list, which take no lease.
  package static let listedByQueries = [RepositoryLayout.snapshots, RepositoryLayout.indexes]

  /// The unique id of the repository.
  public var id: Digest { settings.id }

  /// The location of the repository, for messages.
  public var location: String { storage.location }

  /// Opens a repository for reading. Writing checks more.
  ///
  /// An encrypted repository that is opened without a key can be listed and mirrored, but its
  /// objects can be neither read nor written.
  ///
  /// - Parameter key: asked for the key if the repository is encrypted.
  /// - Throws: `noRepository` if there is none, `damaged`, `unsupported` for another version or
  ///   method, `unknownFeature`, `wrongKey`.
  public static func open(
    _ storage: any Storage, key: KeySource = .none
  ) throws(StoreError) -> Repository {
    let opened = Host.bootSeconds()
    let settings = try settings(of: storage)
    let repository = Repository(storage, settings: settings, keys: nil, opened: opened)
    return key.isNone ? repository : try repository.unlocked(with: key)
  }

  /// Opens the repository with a key, if it is encrypted. `repository.json` is not read again: it
  /// may have changed since its recipients were checked.
  ///
  /// - Throws: `wrongKey`, and errors of the source.
  public func unlocked(with key: KeySource) throws(StoreError) -> Repository {
    guard isEncrypted else { return self }
    let opened = storage.cipher?.opened ?? Host.bootSeconds()
    let keys = try RepositoryKeys.unlock(
      storage.base, repository: id, recipients: settings.recipients,
      older: settings.olderRecipients, source: key)
    return Repository(storage.base, settings: settings, keys: keys, opened: opened)
  }

  /// The number of threads for work that makes requests: one for each processor or, if there are
  /// more, one for each concurrent request to another host.
  public var workers: Int { max(Host.processors, storage.concurrency) }

  /// Opens a copy of this repository in another storage with the same keys.
  func open(copyIn storage: any Storage) throws(StoreError) -> Repository {
    let opened = Host.bootSeconds()
    let settings = try Self.settings(of: storage)
    guard settings.recipients == self.settings.recipients else {
      throw .damaged(
        "repository.json in \(storage.location)", "its recipients are not those of the original")
    }
    return Repository(storage, settings: settings, keys: keys, opened: opened)
  }

  /// Returns the copy of this repository in another storage as the next run of a mirror leaves it:
  /// with the same settings and keys, although it may still have those from before a rotation.
  func copy(in storage: any Storage) -> Repository {
    Repository(storage, settings: settings, keys: keys, opened: Host.bootSeconds())
  }

  static func settings(of storage: any Storage) throws(StoreError) -> RepositorySettings {
    let text: [UInt8]
    do {
      text = try storage.load(RepositoryLayout.settings, limit: FormatLimit.repositoryFile)
    } catch {
      guard error.code == .missing else { throw error }
      throw noRepository(storage, error.cause)
    }
    let settings = try RepositorySettings(text)
    try settings.requireKnownFeatures(for: .read, at: storage.location)
    return settings
  }

  private static func noRepository(_ storage: any Storage, _ cause: SystemError?) -> StoreError {
    let names = (try? storage.list(.root)) ?? []
    let isUnfinished = (try? isUnfinished(storage, names)) ?? false
    let hasPacks = names.contains(RepositoryLayout.packs.name)
    let isLocal = (try? storage.directoryIdentity()) != nil
    return StoreError(
      .noRepository, "open the repository", subject: storage.location,
      reason: "there is no repository.json",
      hint: isUnfinished
        ? "its creation was not completed, and it has no data: " + unfinishedHint
        : hasPacks
          ? "its packs exist: " + RepositorySettings.lossHint
          : StoreError.absentHint(isLocal: isLocal), cause: cause)
  }

  /// Creates a new repository in an empty storage. `repository.json` is written last: without it
  /// there is no repository.
  ///
  /// - Parameters:
  ///   - keys: the keys that encrypt its objects; nil for a repository without encryption.
  ///   - continuing: whether the remains of a run that failed or was killed are completed, if it is
  ///     a repository without encryption.
  ///   - prepare: called before `repository.json` is written, for example to write the file of a
  ///     key.
  /// - Throws: `notEmpty` if the storage is not empty.
  public static func create(
    in storage: any Storage, program: String, keys: RepositoryKeys? = nil,
    continuing: Bool = false,
    prepare: (Repository) throws(StoreError) -> Void = { _ in }
  ) throws(StoreError) -> Repository {
    let id = Blake2b.hash(Host.random(count: 64))
    let settings = RepositorySettings(
      id: id, program: program, features: .init(), recipients: keys?.recipients ?? [])
    let repository = Repository(storage, settings: settings, keys: keys)
    let present = try repository.presentNames(continuing: continuing && keys == nil)
    // The first encryption may fail because its library is missing: before anything is created.
    _ = try repository.storage.encode([])
    try storage.makeDirectories(
      RepositoryLayout.directories.filter { !present.contains($0) }, in: .root)
    let packs =
      present.contains(RepositoryLayout.packs.name)
      ? Set(try storage.list(RepositoryLayout.packs)) : []
    try storage.makeDirectories(
      RepositoryLayout.packDirectories.filter { !packs.contains($0) }, in: RepositoryLayout.packs)
    let lease = try Lease(repository.storage)
    defer { lease.release() }
    let files: [(path: ObjectPath, bytes: [UInt8])] = [
      (RepositoryLayout.readme, Array(readme(isEncrypted: keys != nil).utf8)),
      (RepositoryLayout.recoverScript, RecoverScript.bytes),
      (RepositoryLayout.reserve, [UInt8](repeating: 0, count: RepositoryLayout.reserveSize)),
    ]
    for file in files where !present.contains(file.path.name) {
      try storage.save(file.bytes, as: file.path, by: lease.path)
    }
    try prepare(repository)
    try repository.begin(by: lease)
    return repository
  }
}

extension Repository {
  /// Writes `repository.json`. If two programs create a repository in one location, the second
  /// fails where the store can detect that.
  private func begin(by lease: Lease) throws(StoreError) {
    let (bytes, path) = (settings.encode(), RepositoryLayout.settings)
    guard storage.canCreateExclusively else {
      return try storage.save(bytes, as: path, by: lease.path)
    }
    guard try storage.create(bytes, as: path) else {
      throw StoreError(
        .notEmpty, "create a repository in", subject: location,
        reason: "another program has just created one",
        hint: "use that one, or choose another location")
    }
  }
}

extension KeySource {
  fileprivate var isNone: Bool { if case .none = self { true } else { false } }
}
