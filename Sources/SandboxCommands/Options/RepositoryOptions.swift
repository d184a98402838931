internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import SystemIO

/// The repository that a command works on.
struct RepositoryOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The repository (default: $SANDBOXCTL_REPOSITORY, the configured repository, or the "
        + "user's own).",
      valueName: "repo"),
    completion: .directory)
  var repo: ByteString?

  /// The configured repository, which the environment overrides.
  @Option(help: .hidden)
  var configuredRepo: ByteString?

  @OptionGroup var keys: KeyOptions

  /// Returns the location of the repository and its key.
  func choice() throws -> Choice {
    if let repo { return Choice(path: repo, isStandard: false, keys: keys) }
    if let named = Host.environment("SANDBOXCTL_REPOSITORY") {
      return Choice(path: named, isStandard: false, keys: keys)
    }
    if let configuredRepo { return Choice(path: configuredRepo, isStandard: false, keys: keys) }
    guard var standard = Choice.standard else {
      throw UsageError(
        .repositoryRequired, "no repository given", hint: "name one with '--repo DIR'")
    }
    standard.keys = keys
    return standard
  }

  /// Opens the repository without a key: the objects of an encrypted one cannot be read.
  func open() throws -> (repository: Repository, storage: LocalStorage) { try choice().open() }

  /// Opens the repository. The key of an encrypted one may be asked for.
  func open(_ console: Console) throws -> (repository: Repository, storage: LocalStorage) {
    try choice().open(console)
  }

  /// The option that suggested commands need to use the same repository.
  var suffix: String { repo.map { " --repo \(ShellWord.text($0))" } ?? "" }
}

extension RepositoryOptions {
  /// The location of a repository.
  struct Choice {
    let path: ByteString
    /// Whether it is the user's own repository, which the first backup creates.
    let isStandard: Bool
    /// The key if it is encrypted; nil for none.
    var keys: KeyOptions?
    /// Whether the key is meant for another repository, and is used for this one only if it is
    /// encrypted.
    var isKeyOfAnother = false

    /// The user's own repository, in the user's data directory; nil if the environment names none.
    static var standard: Choice? {
      Host.dataDirectory.map {
        Choice(path: $0.appending("sandboxctl/repository"), isStandard: true)
      }
    }

    /// The identity of the directory; nil if it does not exist.
    var identity: FileIdentity? { try? LocalStorage(path: path).identity() }

    /// Checks that neither the repository nor the directory in which data of it is kept a second time
    /// contains the other: whoever loses one of them would lose both.
    func requireApart(
      from second: ByteString, hint: String = "name another directory with '--to'"
    ) throws {
      let (from, to) = (try Host.realPath(path), Host.resolved(second))
      guard from != to, to.isWithin(from) || from.isWithin(to) else { return }
      throw UsageError(
        .invalidValue, "'\(second)' and the repository '\(path)' are within each other",
        hint: hint)
    }

    /// Opens the repository without a key: the objects of an encrypted one cannot be read.
    func open() throws -> (repository: Repository, storage: LocalStorage) {
      let storage = try LocalStorage(path: path)
      return (try Repository.open(storage), storage)
    }

    /// Opens the repository. The key of an encrypted one is read, or asked for on a terminal; without
    /// one it can be written to, but not read.
    ///
    /// - Throws: `wrongKey` also if its recipients are not those that this host knows, or if a key is
    ///   named and it is not encrypted.
    func open(_ console: Console) throws -> (repository: Repository, storage: LocalStorage) {
      let (locked, storage) = try open()
      // Programs that are run later never inherit the variables, whether they are used or not.
      let ofEnvironment = KeyOptions.environment
      guard let keys else { return (locked, storage) }
      let named = keys.named ?? ofEnvironment
      let known = KnownRecipients(of: locked, at: try Host.realPath(path))
      guard locked.isEncrypted else {
        try known.requireNone()
        if named != nil, !isKeyOfAnother { throw KeyOptions.notEncrypted(locked) }
        return (try locked.withHostSigners(console, at: path), storage)
      }
      var source = try keys.source(for: locked, console)
      var isAuthenticated = false
      if case .passphrase = source { isAuthenticated = true } else { try known.require() }
      if case .none = source { source = .recipients(locked.settings.recipients) }
      let opened = try locked.unlocked(with: source)
      if isAuthenticated { Self.warnOfOtherRecipients(opened, console) }
      do {
        try known.record(opened.keys?.recipients ?? [], areAuthenticated: isAuthenticated)
      } catch {
        console.warning("cannot record the recipients of the repository: \(error)")
      }
      return (try opened.withHostSigners(console, at: path), storage)
    }

    /// Warns if `repository.json` does not name the recipients of the key file, which are used.
    private static func warnOfOtherRecipients(_ opened: Repository, _ console: Console) {
      guard let keys = opened.keys, Set(keys.recipients) != Set(opened.settings.recipients) else {
        return
      }
      console.warning(
        "repository.json of '\(opened.location)' names other recipients than the key file, which are "
          + "not used: a rotation of the key was interrupted, or someone changed repository.json")
      console.hint("'sandboxctl key rotate' without recipients writes those of the key file to it")
    }

    /// Opens the repository. The user's own is created if it does not exist: unencrypted, with mode
    /// 0700. `isNew` is true in that case.
    ///
    /// - Throws: `noRepository` also for the user's own if a key is named: a repository without
    ///   encryption is then not what the user expects.
    func openOrMake(
      _ console: Console
    ) throws -> (repository: Repository, storage: LocalStorage, isNew: Bool) {
      do {
        let (repository, storage) = try open(console)
        return (repository, storage, false)
      } catch let error as StoreError {
        guard error.code == .noRepository, isStandard, keys?.named == nil else { throw error }
        try KnownRecipients.requireNone(at: path)
        let storage = try LocalStorage.create(path: path)
        // A directory with other content is not turned into a repository.
        guard try storage.list(.root).isEmpty else { throw error }
        let repository = try Repository.create(in: storage, program: Version.text)
        return (try repository.withHostSigners(console, at: path), storage, true)
      }
    }
  }
}

extension Repository {
  /// This host's copies of the index; nil if there is no cache directory.
  var hostIndexCache: IndexCache? { Host.cacheDirectory.map { indexCache(in: $0) } }

  /// Returns the heads of all snapshots, through this host's cache of them.
  func hostHeads() throws(StoreError) -> SnapshotHeads { try heads(cache: hostHeadCache) }

  /// This host's cache of snapshot heads; nil if there is no cache directory.
  var hostHeadCache: SnapshotHeadCache? { Host.cacheDirectory.map { headCache(in: $0) } }

  /// The directory of this host's files of the repository; nil if there is no cache directory.
  var hostDirectory: ByteString? { Host.cacheDirectory.map { hostDirectory(in: $0) } }

  /// This host's record of the packs that partial checks have read; nil if there is no cache
  /// directory.
  var hostCheckRounds: CheckRoundFile? { Host.cacheDirectory.map { checkRounds(in: $0) } }

  /// This host's record of the last successful run of a command with these options; nil if there is
  /// no cache directory.
  func hostRunStamp(of command: String, words: [String]) -> RunStamp? {
    Host.cacheDirectory.map { runStamp(of: command, words: words, in: $0) }
  }

  /// Begins reading for a restore, with each copy of the index verified against its id again. In a
  /// repository that can be written to, a lease keeps the packs that the restore may need.
  func beginCarefulReading() throws -> RepositoryReader {
    let cache = hostIndexCache
    cache?.prefetchVerification()
    return try beginReading(cache: cache, lease: try? ReaderLease(self))
  }
}
