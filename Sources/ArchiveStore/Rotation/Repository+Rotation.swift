public import Codecs
internal import SystemIO

/// The rotation of an encrypted repository's identity and recipients (docs/repository-format.md,
/// "Rotating keys").
extension Repository {
  /// The result of a rotation.
  public struct Rotation: Sendable {
    /// The repository, opened with its new keys.
    public let repository: Repository
    /// Whether nothing was rotated, but an interrupted earlier rotation is now complete.
    public let isCompletion: Bool
    /// The recipients that the repository did not have before. Their identities do not open older
    /// objects.
    public let added: [AgeRecipient]

    /// The identities that open the repository: the new one first, and the earlier ones that older
    /// objects need.
    public var identities: [AgeIdentity] { repository.keys?.identities ?? [] }
  }

  /// Replaces the repository's identity by a new one. New objects are for its recipient and the
  /// given others, and no longer for the old identity; older objects stay as they are.
  ///
  /// The key file that opened the repository is replaced first, and then `repository.json`. In
  /// between the passphrase opens both older and new objects, and the old identity opens what it
  /// opened before. A rotation that ended there is completed by the next one.
  ///
  /// - Parameters:
  ///   - others: the recipients besides that of the new identity; nil for the previous ones.
  ///   - workFactor: the base-two logarithm of scrypt's work factor.
  ///   - prepare: called with the identities before anything is written, for example to save them
  ///     as the recovery key.
  /// - Throws: `StoreError`: `keyRequired` if no key file opened the repository; `invalid` if there
  ///   are other key files, if it is a mirror, or if an interrupted rotation had other recipients;
  ///   `busy` if another program is removing objects or changed the keys; `leaseLost`; and any
  ///   error of `prepare`.
  public func rotateKey(
    to others: [AgeRecipient]? = nil, workFactor: Int? = nil,
    prepare: ([AgeIdentity]) throws -> Void = { _ in }
  ) throws -> Rotation {
    let keys = try requireRotatable()
    let lease = try Lease(storage)
    defer { lease.release() }
    let right = try PruneLease(lease, for: "rotate the key of")
    defer { right.release() }
    try requireCurrent("rotate the key of")
    try requireSingleKey(keys)
    let text = try storage.load(RepositoryLayout.settings, limit: FormatLimit.repositoryFile)
    guard Set(keys.recipients) == Set(settings.recipients) else {
      return try complete(keys, others, in: text, prepare: prepare) { bytes throws(StoreError) in
        try right.requireHeld()
        try lease.save(bytes, as: RepositoryLayout.settings)
      }
    }
    let new = keys.rotated(to: others)
    // Everything that may fail without changing the repository comes before the first write.
    let change = KeyChange(action: "rotate the key", name: new.keyName ?? "")
    guard let opened = new.opened else { throw Self.passphraseRequired(location) }
    let file = try encode(
      new, for: opened.passphrase, workFactor: workFactor ?? KeyFile.workFactor, change)
    let settings = try RepositorySettings.replace(
      new.recipients, older: new.older.map(\.recipient), in: text)
    try prepare(new.identities)
    try right.requireHeld()
    try lease.save(file, as: KeyFile.path(opened.name))
    try right.requireHeld()
    try lease.save(settings, as: RepositoryLayout.settings)
    return Rotation(
      repository: replacing(new, try RepositorySettings(settings)), isCompletion: false,
      added: new.added(to: keys.recipients))
  }

  /// Completes a rotation that ended between its two writes.
  private func complete(
    _ keys: RepositoryKeys, _ others: [AgeRecipient]?, in text: [UInt8],
    prepare: ([AgeIdentity]) throws -> Void, save: ([UInt8]) throws(StoreError) -> Void
  ) throws -> Rotation {
    if let others, Set(others).union(keys.recipients.prefix(1)) != Set(keys.recipients) {
      throw StoreError(
        .invalid, "rotate the key of", subject: location,
        reason: "repository.json names other recipients than the key file, as after a rotation "
          + "that was interrupted",
        hint: "run 'sandboxctl key rotate' without recipients to complete it, and then again")
    }
    let bytes = try RepositorySettings.replace(
      keys.recipients, older: keys.older.map(\.recipient), in: text)
    try prepare(keys.identities)
    try save(bytes)
    return Rotation(
      repository: replacing(keys, try RepositorySettings(bytes)), isCompletion: true,
      added: keys.added(to: settings.recipients))
  }

  /// Returns the keys if a key file opened the repository, and it may be changed.
  private func requireRotatable() throws(StoreError) -> RepositoryKeys {
    try requireKnownFeatures(for: .write)
    guard isEncrypted else {
      throw StoreError(
        .invalid, "rotate the key of", subject: location, reason: "it is not encrypted")
    }
    guard let keys, keys.opened != nil, keys.own != nil else {
      throw Self.passphraseRequired(location)
    }
    try requireNoMirror("rotate the key of")
    return keys
  }

  private static func passphraseRequired(_ location: String) -> StoreError {
    StoreError(
      .keyRequired, "rotate the key of", subject: location,
      reason: "the new identity is saved in a key file, whose passphrase is needed",
      hint: "use '--passphrase-file FILE' or '--passphrase-command COMMAND'; a repository without "
        + "key files is copied into a new one instead, with 'sandboxctl copy'")
  }

  /// Checks that the repository is not a mirror, because the original has the keys.
  func requireNoMirror(_ action: String) throws(StoreError) {
    guard try isMirror() else { return }
    throw StoreError(
      .invalid, action, subject: location, reason: "it is a mirror",
      hint: "run the command for its original, and then 'sandboxctl mirror'")
  }

  /// Checks that there are no other key files: their passphrases are unknown, so they would open
  /// nothing that is written after the rotation, and have recipients from before it.
  private func requireSingleKey(_ keys: RepositoryKeys) throws(StoreError) {
    let others = try keyEntries().map(\.name).filter { $0 != keys.keyName }
    guard !others.isEmpty else { return }
    throw StoreError(
      .invalid, "rotate the key of", subject: location,
      reason: "other keys would not open what is written from then on: "
        + others.map { "'\($0)'" }.joined(separator: ", "),
      hint: "remove them with 'sandboxctl key remove', and add them afterwards with 'sandboxctl "
        + "key add'")
  }

  /// Returns the repository with other keys and settings.
  func replacing(_ keys: RepositoryKeys, _ settings: RepositorySettings) -> Repository {
    var repository = Repository(storage.base, settings: settings, keys: keys)
    (repository.trust, repository.signingKey) = (trust, signingKey)
    return repository
  }
}

extension RepositoryKeys {
  /// Returns the recipients, besides that of the repository's own identity, that are not among
  /// earlier ones.
  fileprivate func added(to earlier: [AgeRecipient]) -> [AgeRecipient] {
    recipients.dropFirst().filter { !earlier.contains($0) }
  }

  /// Returns keys with a new identity of the repository. The earlier ones open older objects.
  fileprivate func rotated(to others: [AgeRecipient]?) -> RepositoryKeys {
    let identity = AgeIdentity()
    let former = (own.map { [$0] } ?? []) + older
    let gone = Set(former.map(\.recipient))
    var recipients = [identity.recipient]
    for other in others ?? self.recipients
    where !gone.contains(other) && !recipients.contains(other) {
      recipients.append(other)
    }
    var keys = RepositoryKeys(identities: [identity] + former, recipients: recipients)
    (keys.older, keys.signers, keys.opened) = (former, signers, opened)
    keys.retired = former.map(\.recipient)
    keys.retired += retired.filter { !gone.contains($0) }
    return keys
  }
}
