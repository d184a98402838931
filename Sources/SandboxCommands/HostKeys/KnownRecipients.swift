internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The recipients of an encrypted repository as this host knows them, in files of the user's data
/// directory.
///
/// `repository.json` is not authenticated: anyone who can write to the store could add a recipient
/// to it, or declare the repository as not encrypted, and read all later backups. The recipients
/// are therefore recorded when this host creates the repository or first uses it, as SSH does with
/// host keys, and the repository's id is recorded for its location
/// (docs/decisions/0026-encrypted-objects.md). A key file has the id and the recipients as well, so
/// a passphrase needs no record.
struct KnownRecipients {
  private let directory: ByteString?
  private let repository: Repository
  private let location: RecordedLocation
  private static let limit = 1 << 20

  /// The records of the repository in a directory.
  init(of repository: Repository, at location: RecordedLocation) {
    directory = Self.directory
    (self.repository, self.location) = (repository, location)
  }

  private var recipients: ByteString { ByteString(repository.id.hex + ".txt") }

  private static var directory: ByteString? {
    Host.dataDirectory.map { $0.appending("sandboxctl/recipients") }
  }

  /// Whether this host has used the repository with this id, and it is encrypted.
  static func exists(ofRepository id: Digest) -> Bool {
    (try? lines(of: ByteString(id.hex + ".txt"), in: directory)).flatMap(\.self) != nil
  }

  // MARK: - Checks

  /// Checks an encrypted repository before its recipients are used.
  ///
  /// - Throws: `wrongKey` if its recipients are not the recorded ones, or if another encrypted
  ///   repository is recorded for its location.
  func require() throws {
    let record = try location.recordNames.first { try Self.lines(of: $0, in: directory) != nil }
    if let record, let ids = try Self.lines(of: record, in: directory),
      !ids.contains(repository.id.hex)
    {
      throw changed(
        "this host knows a different encrypted repository at this location", record: record,
        hint: "if you replaced it, open it once with its passphrase, or remove")
    }
    guard let known = try Self.lines(of: recipients, in: directory) else { return }
    guard known == Set(repository.settings.recipients.map(\.description)) else {
      throw changed(
        "its recipients differ from those that this host knows: repository.json was changed",
        record: recipients,
        hint: "if its key was rotated, open it once with its passphrase, or remove")
    }
  }

  /// Checks that nothing is recorded for an unencrypted repository.
  ///
  /// - Throws: `wrongKey` if there is a record of it or of its location.
  func requireNone() throws {
    for record in [recipients] + location.recordNames
    where try Self.lines(of: record, in: directory) != nil {
      throw changed(
        "it is not encrypted, but this host knows it as encrypted", record: record,
        hint: "if that was intended, remove")
    }
  }

  /// Checks that no encrypted repository is known at the location of a new unencrypted one.
  ///
  /// - Parameter text: the location as the user specified it.
  static func requireNone(at location: RecordedLocation, named text: ByteString) throws {
    let isKnown = try location.recordNames.contains { try lines(of: $0, in: directory) != nil }
    guard isKnown else { return }
    throw StoreError(
      .wrongKey, "create a repository in", subject: text.description,
      reason: "this host knows an encrypted repository at this location, which is missing now",
      hint: "mount or copy it again, or use 'sandboxctl init' to make another one")
  }

  /// Returns the error for a write with a key file whose identity is neither the known one nor has
  /// replaced it: anyone who can write to the store can put back an older key file, whose identity
  /// was revealed. Without a record, `repository.json` determines the known one.
  ///
  /// - Returns: nil if there is nothing to refuse.
  func refusal(of opened: Repository) throws -> StoreError? {
    guard let keys = opened.keys else { return nil }
    if let known = try Self.lines(of: recipients, in: directory) {
      if keys.continues(known) { return nil }
      let path = directory?.appending(recipients) ?? recipients
      let own = keys.recipients.first?.description ?? ""
      // Versions before this one did not record what a key replaces.
      return outdated(
        "this host knows a different identity, which the one in the key file has not replaced: an "
          + "older key file was put back, unless an earlier version of the program rotated the key "
          + "or the key file was made with only the first line of the recovery key",
        hint: "if the public key of the newest recovery key is \(own), remove '\(path)'; "
          + "otherwise ")
    }
    if keys.continues(Set(opened.settings.recipients.map(\.description))) { return nil }
    return outdated(
      "repository.json names a different identity, which the one in the key file has not replaced: "
        + "an older key file was put back, or repository.json was changed")
  }

  private func outdated(_ reason: String, hint: String = "") -> StoreError {
    StoreError(
      .wrongKey, "write to", subject: repository.location, reason: reason,
      hint: hint + "restore the newest key file and repository.json, for example from a mirror: "
        + "someone may be trying to read your backups")
  }

  private func changed(_ reason: String, record: ByteString, hint: String) -> StoreError {
    let path = directory?.appending(record) ?? record
    return StoreError(
      .wrongKey, "open", subject: repository.location, reason: reason,
      hint: "\(hint) '\(path)'; otherwise someone may be trying to read your backups")
  }

  // MARK: - Records

  /// Records the recipients, unless there is a record.
  ///
  /// - Parameters:
  ///   - recipients: the recipients that are used.
  ///   - areAuthenticated: whether they are those of a key file, or of a new repository. They then
  ///     replace a record.
  /// - Throws: `SystemError` if a record cannot be written.
  func record(_ recipients: [AgeRecipient], areAuthenticated: Bool) throws {
    try record(
      Set(recipients.map(\.description)), in: self.recipients, isReplacing: areAuthenticated)
    // Ids in an earlier version's record may belong to another store, and remain in it.
    let name = location.recordName
    let ids = try Self.lines(of: name, in: directory) ?? []
    try record(ids.union([repository.id.hex]), in: name, isReplacing: areAuthenticated)
  }

  private func record(
    _ lines: Set<String>, in name: ByteString, isReplacing: Bool
  ) throws {
    guard let directory else { return }
    let known = try Self.lines(of: name, in: directory)
    guard known == nil || isReplacing, known != lines else { return }
    let file = try AtomicFile(
      in: Directory.make(path: directory, permissions: 0o700), permissions: 0o600)
    try file.write(Array(lines.sorted().map { $0 + "\n" }.joined().utf8))
    try file.commit(as: name, durably: true)
  }

  /// Returns the lines of a record, or nil if there is none.
  private static func lines(of name: ByteString, in directory: ByteString?) throws -> Set<String>? {
    guard let directory else { return nil }
    let bytes: [UInt8]
    do {
      bytes = try Directory.open(path: directory).file(name).readAll(limit: limit) ?? []
    } catch {
      guard error.isMissing else { throw error }
      return nil
    }
    return Set(String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init))
  }
}
