public import Codecs
internal import SystemIO

/// The keys of an encrypted repository, once it was opened with a passphrase or an identity.
public struct RepositoryKeys: Sendable {
  /// The identities that decrypt; none on a host that only writes.
  public let identities: [AgeIdentity]
  /// The recipients of new objects.
  public let recipients: [AgeRecipient]
  /// The repository's own identities from before rotations, the newest first.
  public internal(set) var older: [AgeIdentity] = []
  /// The recipients of the repository's own identities from before rotations, including those that
  /// are no longer needed.
  var retired: [AgeRecipient] = []
  /// The recipients of the identities that follow the repository's own in the recovery key, without
  /// those in `retired`. A key file that is written has them as retired.
  var former: [AgeRecipient] = []
  /// The signers that the key file trusts, with their names; none without a passphrase.
  public internal(set) var signers: [Signer: String] = [:]
  /// The key file that a passphrase opened; nil if none was needed.
  var opened: OpenedKey?

  /// A key file and its passphrase, which can be written again.
  struct OpenedKey: Sendable {
    let name: String
    let passphrase: AgePassphrase
  }

  /// The name of the key file that was opened; nil if another source was used.
  var keyName: String? { opened?.name }

  /// The repository's own identity, which is that of its first recipient; nil if unknown. An
  /// identity of any other recipient is a person's, and is never copied into the store.
  var own: AgeIdentity? { identities.first { $0.recipient == recipients.first } }

  /// Whether the repository's identity is one of those with the given recipients, or has replaced
  /// one of them. If not, an older key file may have been put back.
  ///
  /// - Parameter known: the recipients that are known, as texts.
  public func continues(_ known: Set<String>) -> Bool {
    (recipients.prefix(1) + retired).contains { known.contains($0.description) }
  }

  /// Returns the first of the recipients of older identities whose identity was not given, or nil
  /// if there is none. A key file has all of them.
  func firstMissing(of older: [AgeRecipient]) -> AgeRecipient? {
    if opened != nil { return nil }
    let known = Set(self.older.map(\.recipient))
    return older.first { !known.contains($0) }
  }

  /// Creates keys; without identities those of a host that only writes.
  public init(identities: [AgeIdentity] = [], recipients: [AgeRecipient]) {
    (self.identities, self.recipients) = (identities, recipients)
  }
}

/// The source of the key of an encrypted repository. It is used only if the repository is
/// encrypted.
public enum KeySource: Sendable {
  /// No key: the repository is opened locked.
  case none
  /// The identities in a file, for example the recovery key.
  case identities([AgeIdentity])
  /// The recipients, to write without being able to read.
  case recipients([AgeRecipient])
  /// Returns the passphrase of one of the repository's key files.
  case passphrase(@Sendable () throws(StoreError) -> AgePassphrase)
}

extension RepositoryKeys {
  /// Opens the keys of a repository. No memory of the process is in core dumps from then on.
  ///
  /// - Parameters:
  ///   - recipients: the recipients in `repository.json`, which are not authenticated. A key file
  ///     has its own.
  ///   - older: the recipients of older identities in `repository.json`.
  /// - Throws: `keyRequired` without a source; `wrongKey` if no identity has one of the recipients,
  ///   or if no key file opens; any error of the source.
  static func unlock(
    _ storage: any Storage, repository: Digest, recipients: [AgeRecipient],
    older: [AgeRecipient] = [], source: KeySource
  ) throws(StoreError) -> RepositoryKeys {
    switch source {
    case .none:
      throw StoreError(
        .keyRequired, "open", subject: storage.location, reason: "it is encrypted",
        hint: "use '--passphrase-file FILE', '--passphrase-command COMMAND' or '--identity FILE'")
    case .recipients(let known):
      guard Set(known) == Set(recipients) else {
        throw changedRecipients(recipients, location: storage.location)
      }
      return RepositoryKeys(recipients: recipients)
    case .identities(let identities):
      return try matching(identities, recipients, older: older, location: storage.location)
    case .passphrase(let passphrase):
      var search = KeySearch(storage, repository: repository)
      return try search.open(with: passphrase)
    }
  }

  private static func changedRecipients(
    _ recipients: [AgeRecipient], location: String
  ) -> StoreError {
    StoreError(
      .wrongKey, "open", subject: location,
      reason: "the given recipients are not those of the repository",
      hint: "its recipients are \(recipients.map(\.description).joined(separator: ", "))")
  }

  /// Returns the keys if an identity has one of the recipients. Such identities come first.
  private static func matching(
    _ identities: [AgeIdentity], _ recipients: [AgeRecipient], older: [AgeRecipient],
    location: String
  ) throws(StoreError) -> RepositoryKeys {
    let own = identities.filter { recipients.contains($0.recipient) }
    guard !own.isEmpty else {
      let list = recipients.map(\.description).joined(separator: ", ")
      if identities.contains(where: { older.contains($0.recipient) }) {
        throw StoreError(
          .wrongKey, "open", subject: location,
          reason: "the key was rotated: the identity is an older one, which opens older data only",
          hint: "use the recovery key of 'sandboxctl key rotate'; the recipients are now \(list)")
      }
      throw StoreError(
        .wrongKey, "open", subject: location,
        reason: "the identity does not belong to a recipient of the repository",
        hint: "its recipients are \(list)")
    }
    Host.disableCoreDumps()
    let others = identities.filter { !recipients.contains($0.recipient) }
    var keys = RepositoryKeys(identities: own + others, recipients: recipients)
    keys.older = others.filter { older.contains($0.recipient) }
    keys.retired = keys.older.map(\.recipient)
    // `repository.json` no longer names older identities that no object needs. Those before the own
    // one may be newer: an old `repository.json` may have been put back.
    let listed = identities.map(\.recipient)
    if let own = listed.firstIndex(where: { $0 == recipients.first }) {
      keys.former = listed[(own + 1)...].filter {
        !recipients.contains($0) && !keys.retired.contains($0)
      }
    }
    return keys
  }
}

/// The search for the key file of a repository that a passphrase opens.
private struct KeySearch {
  private let storage: any Storage
  private let repository: Digest
  /// The name of the key of this host.
  private let own = KeyFile.name(ofHost: Host.name)
  /// The files that a passphrase may open.
  private var files: [(name: String, bytes: [UInt8])] = []
  /// The other files, each with the reason.
  private var unusable: [String] = []
  /// The number of files that were not tried.
  private var untried = 0

  /// The number of damaged files after which reading stops: a store may contain any number.
  private static let maximumUnusable = 64

  private static let identityHint =
    "use the recovery key, or the identity of another recipient, with '--identity FILE'"

  init(_ storage: any Storage, repository: Digest) {
    (self.storage, self.repository) = (storage, repository)
  }

  private var location: String { storage.location }

  /// Reads the files other than that of this host, by name. Damaged ones are skipped, and do not
  /// count towards the number of files to try.
  private mutating func readOthers() throws(StoreError) {
    let names = try storage.listIfPresent(KeyFile.directory) ?? []
    for name in names.compactMap({ KeyFile.name(of: $0) }) where name != own {
      if files.count == KeyFile.maximumCount || unusable.count == Self.maximumUnusable {
        untried += 1
      } else {
        try read(name)
      }
    }
  }

  private mutating func read(_ name: String) throws(StoreError) {
    let path = KeyFile.path(name)
    do throws(StoreError) {
      let bytes = try storage.load(path, limit: KeyFile.maximumSize)
      if let fault = KeyFile.fault(of: bytes) {
        skip(path, fault)
      } else {
        files.append((name, bytes))
      }
    } catch {
      // This host has no key, or the file was removed meanwhile.
      if error.code == .missing { return }
      guard error.costsTheObjectAlone else { throw error }
      skip(path, error.reason)
    }
  }

  private mutating func skip(_ path: ObjectPath, _ reason: String) {
    unusable.append("'\(path)' cannot be used: \(reason)")
  }

  /// Opens the first file that the passphrase opens: that of this host, which is read without a
  /// listing, then the others by name. The passphrase is requested only if there is a file to open.
  mutating func open(
    with source: () throws(StoreError) -> AgePassphrase
  ) throws(StoreError) -> RepositoryKeys {
    try read(own)
    let ownCount = files.count
    if ownCount == 0 { try readOthers() }
    guard !files.isEmpty else { throw noKey }
    let passphrase = try source()
    Host.disableCoreDumps()
    if let keys = find(in: files[...], with: passphrase) { return keys }
    if ownCount > 0 {
      try readOthers()
      if let keys = find(in: files[ownCount...], with: passphrase) { return keys }
    }
    throw wrongKey
  }

  private mutating func find(
    in files: ArraySlice<(name: String, bytes: [UInt8])>, with passphrase: AgePassphrase
  ) -> RepositoryKeys? {
    for (name, bytes) in files {
      let path = KeyFile.path(name)
      do throws(KeyFile.Refusal) {
        let key = try KeyFile(bytes, openedWith: passphrase)
        if key.repository == repository {
          var keys = RepositoryKeys(
            identities: [key.identity] + key.older, recipients: key.recipients)
          (keys.older, keys.signers) = (key.older, key.signers)
          keys.retired = key.older.map(\.recipient)
          keys.retired += key.retired.filter { !keys.retired.contains($0) }
          keys.opened = RepositoryKeys.OpenedKey(name: name, passphrase: passphrase)
          return keys
        }
        skip(path, "it belongs to another repository")
      } catch {
        if case .unusable(let reason) = error { skip(path, reason) }
      }
    }
    return nil
  }

  /// The error if there is no file to open.
  private var noKey: StoreError {
    StoreError(
      .wrongKey, "open", subject: location,
      reason: unusable.isEmpty
        ? "all key files are gone"
        : "it has no intact key file; " + unusable.joined(separator: "; "),
      hint: Self.identityHint)
  }

  /// The error if no file opens.
  private var wrongKey: StoreError {
    let count = files.count == 1 ? "its key file" : "any of its \(files.count) key files"
    let tried = untried == 0 ? count : "the \(files.count) key files that were tried"
    let rest = untried == 0 ? [] : ["\(untried) more were not tried"]
    return StoreError(
      .wrongKey, "open", subject: location,
      reason: (["the passphrase does not open \(tried)"] + rest + unusable).joined(separator: "; "),
      hint: "check the passphrase; or " + Self.identityHint)
  }
}
