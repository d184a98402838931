public import Codecs
public import SystemIO

/// The key files of an encrypted repository (docs/repository-format.md, "Keys"). Each is opened by a
/// passphrase of its own, and all have the same identity.
extension Repository {
  /// A key file as it is listed.
  public struct KeyEntry: Hashable, Sendable {
    public let name: String
    /// The time at which the file was written, by the storage's clock.
    public let modified: Timestamp
    /// The size in bytes.
    public let size: UInt64
  }

  /// The name that a key of this host has by default.
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
  /// - Throws: `invalid` for an invalid name, or if there is a key of that name; `keyRequired` without
  ///   an identity; `leaseLost`.
  public func addKey(_ name: String, passphrase: AgePassphrase) throws(StoreError) {
    try saveKey(name, passphrase: passphrase, isReplacing: false)
  }

  /// Replaces a key file by one for another passphrase. The old one exists until then.
  ///
  /// - Throws: `invalid` if there is no key of that name; `keyRequired` without an identity;
  ///   `leaseLost`.
  public func replaceKey(_ name: String, passphrase: AgePassphrase) throws(StoreError) {
    try saveKey(name, passphrase: passphrase, isReplacing: true)
  }

  /// Writes the trusted signers to the key file that a passphrase opened, so that other hosts can
  /// read them with the same passphrase.
  ///
  /// - Returns: whether there is such a file.
  /// - Throws: `invalid` if it was removed meanwhile; `leaseLost`.
  public func saveSigners() throws(StoreError) -> Bool {
    guard let opened = keys?.opened else { return false }
    try saveKey(opened.name, passphrase: opened.passphrase, isReplacing: true)
    return true
  }

  /// Writes a key file.
  ///
  /// - Parameter workFactor: the base-two logarithm of scrypt's work factor.
  func saveKey(
    _ name: String, passphrase: AgePassphrase, isReplacing: Bool,
    workFactor: Int = KeyFile.workFactor
  ) throws(StoreError) {
    let change = KeyChange(action: isReplacing ? "change the key" : "add the key", name: name)
    try requireKeyFiles(change)
    // The repository's own identity is that of its first recipient. An identity of another recipient is
    // a person's, which is not copied into the store.
    guard let keys,
      let identity = keys.identities.first(where: { $0.recipient == keys.recipients.first })
    else {
      throw change.error(
        .keyRequired, "the repository was opened without its own identity",
        hint: "use '--passphrase-file FILE', '--passphrase-command COMMAND' or '--identity FILE'")
    }
    let lease = try Lease(storage)
    defer { lease.release() }
    try storage.makeMissing([KeyFile.directory.name], in: .root)
    let path = KeyFile.path(name)
    guard try (storage.status(path) != nil) == isReplacing else {
      throw isReplacing
        ? change.missing
        : change.error(
          .invalid, "there is a key of this name",
          hint: "use another name, or 'sandboxctl key change'")
    }
    let file = KeyFile(
      of: id, identity: identity, recipients: keys.recipients, signers: trust.names)
    let bytes: [UInt8]
    do throws(AgeError) {
      bytes = try file.encrypted(with: passphrase, workFactor: workFactor)
    } catch {
      throw change.error(.system, error.reason, hint: error.hint)
    }
    guard bytes.count <= KeyFile.maximumSize else {
      throw change.error(
        .invalid, "it would exceed 64 KiB: there are too many recipients or signers")
    }
    try lease.save(bytes, as: path)
  }

  /// Removes a key file, unless no other would be left. The repository was opened with another one, or
  /// with the identity, which proves that something else opens it. Only one program at a time removes
  /// keys, so that two do not remove the last two.
  ///
  /// - Throws: `invalid` if there is no key of that name, no other intact one, or if it is the one that
  ///   opened the repository; `keyRequired` if the repository was not opened; `busy` if another
  ///   program is removing objects; `leaseLost`.
  public func removeKey(_ name: String) throws(StoreError) {
    let change = KeyChange(action: "remove the key", name: name)
    try requireKeyFiles(change)
    guard let keys, !keys.identities.isEmpty else {
      throw change.error(
        .keyRequired, "it is not known that another key opens the repository",
        hint: "give the passphrase of a key that stays, or the recovery key")
    }
    guard keys.keyName != name else {
      throw change.error(
        .invalid, "it is the key whose passphrase was given",
        hint: "give the passphrase of a key that stays, or the recovery key")
    }
    let lease = try Lease(storage)
    defer { lease.release() }
    guard let right = try PruneLease(lease) else {
      throw PruneLease.locked("remove a key from", location)
    }
    defer { right.release() }
    guard try storage.status(KeyFile.path(name)) != nil else { throw change.missing }
    for other in try keyEntries() where other.name != name {
      guard try isUsable(other) else { continue }
      guard try right.isHeld() else { throw PruneLease.lost(location) }
      return try lease.remove(KeyFile.path(name))
    }
    throw change.error(
      .invalid, "it is the last key that a passphrase opens",
      hint: "add another one with 'sandboxctl key add', or change its passphrase with "
        + "'sandboxctl key change'")
  }

  /// Whether a key file may be opened by a passphrase, as far as that is known without one.
  private func isUsable(_ entry: KeyEntry) throws(StoreError) -> Bool {
    do throws(StoreError) {
      let bytes = try storage.load(KeyFile.path(entry.name), limit: KeyFile.maximumSize)
      return KeyFile.fault(of: bytes) == nil
    } catch {
      guard error.code == .missing || error.costsTheObjectAlone else { throw error }
      return false
    }
  }

  private func requireKeyFiles(_ change: KeyChange) throws(StoreError) {
    try settings.requireKnown(settings.features.write, for: "write", location: location)
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
private struct KeyChange {
  let action: String
  let name: String

  func error(_ code: StoreError.Code, _ reason: String, hint: String? = nil) -> StoreError {
    StoreError(code, action, subject: name, reason: reason, hint: hint)
  }

  var missing: StoreError {
    error(.invalid, "there is no key of this name", hint: "'sandboxctl key list' lists the keys")
  }
}
