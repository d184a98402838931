public import Codecs
public import SystemIO

/// The key files of an encrypted repository (docs/repository-format.md, "Keys"). Each is opened by
/// a passphrase of its own, and all have the same identity.
extension Repository {
  /// A key file as it is listed.
  public struct KeyEntry: Hashable, Sendable {
    public let name: String
    /// The time at which the file was written, by the storage's clock.
    public let modified: Timestamp
    /// The size in bytes.
    public let size: UInt64
  }

  /// The default name of this host's key.
  public static var hostKeyName: String { KeyFile.name(ofHost: Host.name) }

  /// Returns the key files, ordered by name. Nothing is decrypted, so some may be damaged.
  public func keyEntries() throws(StoreError) -> [KeyEntry] {
    var entries: [KeyEntry] = []
    for file in try storage.listIfPresent(KeyFile.directory) ?? [] {
      guard let name = KeyFile.name(of: file), let status = try storage.status(KeyFile.path(name)),
        !status.isDirectory
      else { continue }
      entries.append(KeyEntry(name: name, modified: status.modified, size: status.size))
    }
    return entries
  }

  /// Adds a key file for a passphrase.
  ///
  /// - Parameter checkCancellation: called before anything is written besides the lease.
  /// - Throws: `invalid` for an invalid name, if a key of that name exists or if there are 16
  ///   keys; `keyRequired` without an identity, or without an older one that objects need; `busy`
  ///   if another program is changing keys or removing objects; `leaseLost`; errors of
  ///   `checkCancellation`.
  public func addKey(
    _ name: String, passphrase: AgePassphrase,
    checkCancellation: () throws(StoreError) -> Void = {}
  ) throws(StoreError) {
    try saveKey(
      name, passphrase: passphrase, isReplacing: false, checkCancellation: checkCancellation)
  }

  /// Replaces a key file by one for another passphrase. The old one exists until then.
  ///
  /// - Parameter checkCancellation: called before anything is written besides the lease.
  /// - Throws: `invalid` if there is no key of that name, else as
  ///   `addKey(_:passphrase:checkCancellation:)`.
  public func replaceKey(
    _ name: String, passphrase: AgePassphrase,
    checkCancellation: () throws(StoreError) -> Void = {}
  ) throws(StoreError) {
    try saveKey(
      name, passphrase: passphrase, isReplacing: true, checkCancellation: checkCancellation)
  }

  /// Writes the trusted signers to the key file that a passphrase opened, so that other hosts can
  /// read them with the same passphrase.
  ///
  /// - Returns: whether there is such a file.
  /// - Throws: `invalid` if it was removed, or its passphrase was changed, meanwhile; `busy` if
  ///   another program is changing keys or removing objects; `leaseLost`.
  public func saveSigners() throws(StoreError) -> Bool {
    guard let opened = keys?.opened else { return false }
    try saveKey(
      opened.name, passphrase: opened.passphrase, isReplacing: true, keepsPassphrase: true)
    return true
  }

  /// Writes a key file. Only one program at a time changes keys, so that two do not add one of the
  /// same name, none rewrites a key that another one removes, and none has the keys from before a
  /// rotation that another has made meanwhile.
  ///
  /// - Parameters:
  ///   - keepsPassphrase: whether the passphrase must open the file that is replaced.
  ///   - workFactor: the base-two logarithm of scrypt's work factor.
  func saveKey(
    _ name: String, passphrase: AgePassphrase, isReplacing: Bool, keepsPassphrase: Bool = false,
    workFactor: Int = KeyFile.workFactor,
    checkCancellation: () throws(StoreError) -> Void = {}
  ) throws(StoreError) {
    let change = KeyChange(action: isReplacing ? "change the key" : "add the key", name: name)
    try requireKeyFiles(change)
    guard let keys, keys.own != nil else {
      throw change.error(
        .keyRequired, "the repository was opened without its own identity",
        hint: "use '--passphrase-file FILE', '--passphrase-command COMMAND' or '--identity FILE'")
    }
    try requireOlder(keys, change)
    let lease = try Lease(storage)
    defer { lease.release() }
    let right = try PruneLease(lease, for: "\(isReplacing ? "change" : "add") a key of")
    defer { right.release() }
    try requireCurrent("change a key of")
    try storage.makeMissing([KeyFile.directory.name], in: .root)
    let path = KeyFile.path(name)
    guard try (storage.status(path) != nil) == isReplacing else {
      throw isReplacing
        ? change.missing
        : change.error(
          .invalid, "a key with this name already exists",
          hint: "use another name, or 'sandboxctl key change'")
    }
    // A passphrase is tried with no more files than this.
    if !isReplacing, try keyEntries().count >= KeyFile.maximumCount {
      throw change.error(
        .invalid, "the repository has \(KeyFile.maximumCount) keys, which is the maximum",
        hint: "remove one that is not used with 'sandboxctl key remove'")
    }
    if keepsPassphrase, try !opens(path, with: passphrase) {
      throw change.error(
        .invalid, "another program has changed its passphrase", hint: "run the command again")
    }
    let bytes = try encode(keys, for: passphrase, workFactor: workFactor, change)
    try checkCancellation()
    try right.requireHeld()
    try lease.save(bytes, as: path)
  }

  /// Returns the key file of keys for a passphrase.
  func encode(
    _ keys: RepositoryKeys, for passphrase: AgePassphrase, workFactor: Int, _ change: KeyChange
  ) throws(StoreError) -> [UInt8] {
    guard let identity = keys.own else { throw .keyRequired("write a key of", location) }
    let file = KeyFile(
      of: id, identity: identity, older: keys.older, retired: keys.retired + keys.former,
      recipients: keys.recipients, signers: trust.names)
    let bytes: [UInt8]
    do throws(AgeError) {
      bytes = try file.encrypted(with: passphrase, workFactor: workFactor)
    } catch {
      throw change.error(.system, error.reason, hint: error.hint)
    }
    guard bytes.count <= KeyFile.maximumSize else {
      throw change.error(
        .invalid, "it would exceed 64 KiB: there are too many recipients, signers or older keys")
    }
    return bytes
  }

  /// Refuses to write a key file without the older identities that objects need: a recovery key
  /// from after a rotation has them in separate lines.
  private func requireOlder(_ keys: RepositoryKeys, _ change: KeyChange) throws(StoreError) {
    guard let missing = missingOlder(keys) else { return }
    throw change.error(
      .keyRequired, "the key was rotated, and the older identity of \(missing) is missing",
      hint: "name a file with all lines of the recovery key, or use a passphrase")
  }

  /// Returns the recipient of an older identity that objects may need and that was not given, or
  /// nil if there is none. A key file has all of them.
  func missingOlder(_ keys: RepositoryKeys) -> AgeRecipient? {
    keys.firstMissing(of: settings.olderRecipients)
  }

  /// Whether the identities lack one that existing objects may need: snapshots that share data with
  /// these cannot be restored completely. False on a host that only writes.
  public var lacksOlderKey: Bool {
    guard let keys, !keys.identities.isEmpty else { return false }
    return missingOlder(keys) != nil
  }

  /// Checks that data may be stored and keys may be changed: if an older key file was put back, the
  /// repository can only be read.
  ///
  /// - Throws: `writeRefusal`.
  public func requireWritable() throws(StoreError) { if let writeRefusal { throw writeRefusal } }

  /// Checks that the recipients in `repository.json` are still those with which the repository was
  /// opened, so that nothing is written for recipients from before a rotation. A holder of a lease
  /// calls it once: a program that makes older identities unnecessary sees the lease.
  ///
  /// - Throws: `busy` if they are not; `writeRefusal`.
  func requireCurrent(_ action: String) throws(StoreError) {
    try requireWritable()
    guard isEncrypted else { return }
    let current: RepositorySettings
    do throws(StoreError) {
      current = try Self.settings(of: storage.base)
    } catch {
      // The repository is being created.
      if error.code == .noRepository { return }
      throw error
    }
    guard current.recipients == settings.recipients,
      current.olderRecipients == settings.olderRecipients
    else {
      throw StoreError(
        .busy, action, subject: location,
        reason: "its recipients changed after it was opened: its key was rotated",
        hint: "run the command again")
    }
  }

  /// Whether a listing under a lease shows that `repository.json` has not changed since the
  /// repository was opened, so that it need not be read again: it was last written well before.
  /// Both times are by the store's clock; those of its servers may differ a little.
  ///
  /// - Parameter leased: the time at which the lease was there, by `Host.bootSeconds`.
  func isCurrent(by listing: RepositoryListing, leased: Double) -> Bool {
    guard writeRefusal == nil, let began = listing.began, let modified = listing.settingsModified,
      let opened = storage.cipher?.opened
    else { return false }
    return began.since(modified) > leased - opened + Self.clockTolerance
  }

  /// The seconds by which the clocks of a store's servers may differ.
  static let clockTolerance = 900.0

  /// Whether a passphrase opens a key file.
  private func opens(
    _ path: ObjectPath, with passphrase: AgePassphrase
  ) throws(StoreError) -> Bool {
    let bytes = try storage.load(path, limit: KeyFile.maximumSize)
    return (try? KeyFile(bytes, openedWith: passphrase)) != nil
  }

  /// Removes a key file, unless it is the last intact one. The repository must have been opened
  /// with another one, or with an identity: something else then opens it. Only one program at a
  /// time removes keys, so that two do not remove the last two.
  ///
  /// - Parameter checkCancellation: called before it is removed.
  /// - Throws: `invalid` if there is no key of that name, no other intact one, or if it is the one
  ///   that opened the repository; `keyRequired` if the repository was not opened; `busy` if
  ///   another program is removing objects or rotated the key; `leaseLost`; `writeRefusal`.
  public func removeKey(
    _ name: String, checkCancellation: () throws(StoreError) -> Void = {}
  ) throws(StoreError) {
    let change = KeyChange(action: "remove the key", name: name)
    try requireKeyFiles(change)
    guard let keys, !keys.identities.isEmpty else {
      throw change.error(
        .keyRequired, "it is not certain that another key opens the repository",
        hint: "give the passphrase of another key, or the recovery key")
    }
    guard keys.keyName != name else {
      throw change.error(
        .invalid, "it is the key whose passphrase was given",
        hint: "give the passphrase of another key, or the recovery key")
    }
    // A key that was revealed must be removable on a full volume, too.
    let reserve = SpaceReserve(storage)
    let lease = try reserve.whenFull { () throws(StoreError) in try Lease(storage) }
    defer { lease.release() }
    defer { reserve.restore(by: lease) }
    let right = try reserve.whenFull { () throws(StoreError) in
      try PruneLease(lease, for: "remove a key from")
    }
    defer { right.release() }
    try requireCurrent("remove a key from")
    guard try storage.status(KeyFile.path(name)) != nil else { throw change.missing }
    for other in try keyEntries() where other.name != name {
      guard try isIntact(other) else { continue }
      try checkCancellation()
      try right.requireHeld()
      return try reserve.whenFull { () throws(StoreError) in
        try lease.remove(KeyFile.path(name))
      }
    }
    throw change.error(
      .invalid, "it is the last key that a passphrase opens",
      hint: "add another one with 'sandboxctl key add', or change its passphrase with "
        + "'sandboxctl key change'")
  }

  /// Whether a key file is intact, as far as can be seen without its passphrase.
  private func isIntact(_ entry: KeyEntry) throws(StoreError) -> Bool {
    do throws(StoreError) {
      let bytes = try storage.load(KeyFile.path(entry.name), limit: KeyFile.maximumSize)
      return KeyFile.fault(of: bytes) == nil
    } catch {
      guard error.code == .missing || error.costsTheObjectAlone else { throw error }
      return false
    }
  }

  private func requireKeyFiles(_ change: KeyChange) throws(StoreError) {
    try requireKnownFeatures(for: .write)
    guard isEncrypted else {
      throw change.error(.invalid, "the repository '\(location)' is not encrypted")
    }
    guard KeyFile.isName(change.name) else {
      throw change.error(
        .invalid, "it is not a valid name",
        hint: "a name has 1 to 64 letters, digits, '.', '_' and '-', and begins with a letter or "
          + "a digit")
    }
  }
}

/// A change of a key file, for messages.
struct KeyChange {
  let action: String
  let name: String

  func error(_ code: StoreError.Code, _ reason: String, hint: String? = nil) -> StoreError {
    StoreError(code, action, subject: name, reason: reason, hint: hint)
  }

  var missing: StoreError {
    error(.invalid, "there is no key with this name", hint: "'sandboxctl key list' lists the keys")
  }
}
