internal import ArchiveStore
internal import PolicyEngine
internal import RemoteStorage
internal import SystemIO

extension RepositoryOptions {
  /// The location of a repository.
  struct Choice {
    let location: RepositoryLocation
    /// Whether it is the user's own repository, which the first backup creates.
    let isStandard: Bool
    /// The settings of the connection to it.
    var connection = ConnectionSettings()
    /// The key if it is encrypted; nil for none.
    var keys: KeyOptions?
    /// Whether the key is meant for another repository, and is used for this one only if it is
    /// encrypted.
    var isKeyOfAnother = false
    /// The directories that a command without a lease lists first. For a repository on another host
    /// they are listed ahead.
    var firstListings: [ObjectPath] = []
    /// Whether the command needs several connections to a store of objects at once.
    var connectsAhead = false

    private init(standard path: ByteString) { (location, isStandard) = (.local(path), true) }

    /// The repository that a text names.
    ///
    /// - Throws: `OperationError` with the text to write instead, if it is not valid.
    init(_ text: ByteString, _ connection: ConnectionSettings, keys: KeyOptions? = nil) throws {
      location = connection.completing(try RepositoryLocation(parsing: text))
      (isStandard, self.connection, self.keys) = (false, connection, keys)
    }

    /// The user's own repository, in the user's data directory; nil if the environment names none.
    static var standard: Choice? {
      Host.dataDirectory.map { Choice(standard: $0.appending("sandboxctl/repository")) }
    }

    /// The identity of the directory; nil if it does not exist or is on another host.
    var identity: FileIdentity? {
      location.localPath.flatMap { try? LocalStorage(path: $0).identity() }
    }

    /// The location in the form in which this host records what it knows about its repository.
    var recordedLocation: RecordedLocation {
      switch location {
      case .local(let path): return RecordedLocation(Host.resolved(path))
      case .sftp(let directory): return RecordedLocation(directory.text)
      case .s3(let bucket):
        func text(at server: String?) -> ByteString {
          server.map { bucket.text.concatenating(ByteString(" at \($0)")) } ?? bucket.text
        }
        let earlier = text(at: bucket.endpoint)
        return RecordedLocation(
          bucket.server.map { text(at: $0) } ?? earlier, earlier: earlier)
      }
    }

    /// The destination of backups to the repository (`Repository.destination`), as far as it is
    /// known without a connection to another host.
    var destination: Destination {
      if case .s3 = location {
        return Destination(isCloud: true, isUnencrypted: !isKnownAsEncrypted)
      }
      return Destination(isUnencrypted: !isKnownAsEncrypted)
    }

    /// Whether the repository is encrypted, as far as that is known without a connection to another
    /// host.
    var isKnownAsEncrypted: Bool {
      if location.localPath != nil, let opened = try? open() {
        return opened.repository.isEncrypted
      }
      do {
        try KnownRecipients.requireNone(at: recordedLocation, named: location.text)
        return false
      } catch { return true }
    }

    /// Whether the repository is a directory of this host.
    func isDirectory(_ directory: ByteString) throws -> Bool {
      guard let path = location.localPath else { return false }
      return try Host.realPath(path) == Host.resolved(directory)
    }

    /// Checks that neither the repository nor the directory in which its data is kept a second time
    /// contains the other: losing one of them would mean losing both.
    func requireApart(
      from second: ByteString, hint: String = "name another directory with '--to'"
    ) throws {
      guard let path = location.localPath else { return }
      let (from, to) = (try Host.realPath(path), Host.resolved(second))
      guard from != to, to.isWithin(from) || from.isWithin(to) else { return }
      throw UsageError(
        .invalidValue, "one of '\(second)' and the repository '\(path)' is inside the other",
        hint: hint)
    }

    /// Checks the same for another repository. Both may be on other hosts.
    func requireApart(from second: Choice) throws {
      guard let path = second.location.localPath else { return }
      try requireApart(from: path)
    }

    /// Checks the same for the texts of repositories on other hosts, before one is opened. The same
    /// location may have another text, such as another host name, or be reached by another path.
    func requireAnotherLocation(than second: Choice) throws {
      let (from, to) = (location.text, second.location.text)
      guard location.localPath == nil, second.location.localPath == nil,
        to.isWithin(from) || from.isWithin(to), mayShareServer(with: second)
      else { return }
      throw UsageError(
        .invalidValue,
        from == to
          ? "'\(to)' is the repository itself"
          : "one of '\(to)' and the repository '\(from)' is inside the other",
        hint: "name another one with '--to'")
    }

    /// Whether two texts of the same host or bucket may mean the same server. Buckets of the same
    /// name may be in two stores, and two commands may connect to two hosts of the same name.
    private func mayShareServer(with second: Choice) -> Bool {
      switch (location, second.location) {
      case (.s3(let from), .s3(let to)):
        guard let one = from.server, let other = to.server else { return true }
        return one == other
      case (.sftp, .sftp): return connection.sshCommand == second.connection.sshCommand
      default: return true
      }
    }

    /// Returns the path of another repository below this one if both are on the same server; empty
    /// if it is not below it.
    func innerPath(of second: Choice) -> ByteString {
      let (from, to) = (placeOnServer.components, second.placeOnServer.components)
      guard to.count > from.count, to.starts(with: from) else { return "" }
      return ByteString(joining: to.dropFirst(from.count))
    }

    /// The location without the name of a server and the path to it.
    private var placeOnServer: ByteString {
      switch location {
      case .local(let path): Host.resolved(path)
      case .sftp(let directory): directory.path
      case .s3(let bucket): ByteString(bucket.bucket).appending(bucket.prefix)
      }
    }

    /// Opens the repository without a key: the objects of an encrypted one cannot be read.
    func open() throws -> OpenRepository {
      OpenRepository(repository: try Repository.open(storage()))
    }

    /// Opens the storage, and begins to list what the command lists first.
    func storage() throws -> any Storage {
      let storage = try location.open(connection)
      (storage as? ReadAheadStorage)?.listAhead(firstListings, connects: connectsAhead)
      return storage
    }

    /// Opens the storage, which is created if it does not exist.
    func makeStorage() throws -> any Storage { try location.create(connection) }
  }
}

// MARK: - Opening

extension RepositoryOptions.Choice {
  /// Opens the repository. The key of an encrypted one is read, or asked for on a terminal; without
  /// one it can be written to, but not read.
  ///
  /// With the passphrase of an older key file it can only be read (`Repository.writeRefusal`).
  ///
  /// - Throws: `wrongKey` also if its recipients are not those that this host knows, or if a key is
  ///   named and it is not encrypted.
  func open(_ console: Console) throws -> OpenRepository {
    let opened = try open()
    for warning in opened.warnings { console.warning(warning) }
    let locked = opened.repository
    // Programs that are run later never inherit the variables, whether they are used or not.
    let ofEnvironment = KeyOptions.environment
    guard let keys else { return opened }
    let named = keys.named ?? ofEnvironment
    let recorded = recordedLocation
    let known = KnownRecipients(of: locked, at: recorded)
    guard locked.isEncrypted else {
      try known.requireNone()
      if named != nil, !isKeyOfAnother { throw KeyOptions.notEncrypted(locked) }
      return OpenRepository(repository: try locked.withHostSigners(console, at: recorded))
    }
    var source = try keys.source(for: locked, console)
    var isAuthenticated = false
    if case .passphrase = source { isAuthenticated = true } else { try known.require() }
    if case .none = source { source = .recipients(locked.settings.recipients) }
    var unlocked = try locked.unlocked(with: source)
    if isAuthenticated { unlocked.writeRefusal = try known.refusal(of: unlocked) }
    if let refusal = unlocked.writeRefusal {
      // The record stays, so that the next command does not mistake the older key file for the
      // right one. Data that it opens can be read, as in a mirror that was not updated since.
      console.warning("'\(unlocked.location)' can only be read: \(refusal.reason)")
      if let hint = refusal.hint { console.hint(hint) }
    } else {
      if isAuthenticated { Self.warnOfOtherRecipients(unlocked, console) }
      Self.record(unlocked, in: known, isAuthenticated: isAuthenticated, console)
    }
    return OpenRepository(repository: try unlocked.withHostSigners(console, at: recorded))
  }

  private static func record(
    _ opened: Repository, in known: KnownRecipients, isAuthenticated: Bool, _ console: Console
  ) {
    do {
      try known.record(opened.keys?.recipients ?? [], areAuthenticated: isAuthenticated)
    } catch {
      console.warning("cannot record the recipients of the repository: \(error)")
    }
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
  /// - Throws: `noRepository` also for the user's own if a key is named: the user then does not
  ///   expect an unencrypted repository.
  func openOrMake(_ console: Console) throws -> OpenRepository {
    do {
      return try open(console)
    } catch let error as StoreError {
      guard error.code == .noRepository, isStandard, keys?.named == nil else { throw error }
      try KnownRecipients.requireNone(at: recordedLocation, named: location.text)
      let storage = try makeStorage()
      let repository: Repository
      do throws(StoreError) {
        repository = try Repository.create(in: storage, program: Version.text, continuing: true)
      } catch let failure {
        guard failure.code == .notEmpty else { throw failure }
        // Another program has just created it; otherwise a directory with other content stays.
        return try open(console)
      }
      return OpenRepository(
        repository: try repository.withHostSigners(console, at: recordedLocation), isNew: true)
    }
  }
}
