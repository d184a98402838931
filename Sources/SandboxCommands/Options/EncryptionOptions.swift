internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import RemoteStorage
internal import SystemIO

/// The encryption of a new repository.
struct EncryptionOptions: ParsableArguments {
  @Flag(help: "Encrypt with a passphrase, which is entered twice at a prompt.")
  var passphrase = false

  @Option(
    help: ArgumentHelp(
      "Encrypt with the passphrase in this file (default: $SANDBOXCTL_PASSPHRASE_FILE).",
      valueName: "file"),
    completion: .file())
  var passphraseFile: ByteString?

  @Option(
    help: ArgumentHelp(
      "Encrypt with the passphrase that this shell command prints (default: "
        + "$SANDBOXCTL_PASSPHRASE_COMMAND).",
      valueName: "command"))
  var passphraseCommand: ByteString?

  @Option(
    name: .customLong("recipient"),
    help: ArgumentHelp(
      "Encrypt for the holder of this age recipient's identity; without a passphrase this host "
        + "writes backups that it cannot read; may be repeated.",
      valueName: "recipient"))
  var recipients: [String] = []

  @Option(
    help: ArgumentHelp(
      "Encrypt for all recipients in this file, one per line, as 'age -R' reads it.",
      valueName: "file"),
    completion: .file())
  var recipientsFile: ByteString?

  @Option(
    help: ArgumentHelp(
      "A new file for the recovery key (default: print it).", valueName: "file"),
    completion: .file())
  var recoveryKey: ByteString?
}

extension EncryptionOptions {
  /// The given options that choose a passphrase.
  var passphraseWords: [String] {
    [
      passphrase ? "--passphrase" : nil, passphraseFile.map { _ in "--passphrase-file" },
      passphraseCommand.map { _ in "--passphrase-command" },
    ].compactMap(\.self)
  }

  /// The given options that choose an encryption.
  var words: [String] {
    passphraseWords + (recipients.isEmpty ? [] : ["--recipient"])
      + (recipientsFile.map { _ in ["--recipients-file"] } ?? [])
  }

  /// The source of the passphrase that the options or the environment choose, or nil for none.
  private var input: PassphraseInput? {
    if passphrase { return .terminal }
    if let passphraseFile { return .file(passphraseFile) }
    if let passphraseCommand { return .command(passphraseCommand) }
    return KeyOptions.environmentPassphrase
  }

  /// Whether there is a passphrase, and with it a new identity: the recovery key.
  var hasPassphrase: Bool { input != nil }

  /// Reads what the options and the environment choose; nil if they choose nothing.
  func encryption(_ console: Console) throws -> NewEncryption? {
    guard hasPassphrase || !words.isEmpty else { return nil }
    return NewEncryption(
      passphrase: try input?.readNew(console),
      others: try RecipientList.read(recipients, file: recipientsFile))
  }
}

/// Recipients that options name.
enum RecipientList {
  /// Returns the recipients of the texts after `--recipient`, and then those in a file.
  static func read(_ texts: [String], file path: ByteString?) throws -> [AgeRecipient] {
    var all: [AgeRecipient] = []
    for (index, text) in texts.enumerated() {
      // The text is not quoted: it may be an identity.
      do throws(AgeError) {
        all.append(try AgeRecipient(text))
      } catch {
        throw UsageError(
          .invalidValue, "'--recipient' number \(index + 1) cannot be used: \(error.reason)",
          hint: error.hint)
      }
    }
    guard let path else { return all }
    let file = try Descriptor.open(path: path)
    guard let text = try file.readAll(limit: AgeKeyList.maximumCount) else {
      throw OperationError(
        .failed, code: .limitExceeded, "read the recipients from", subject: path,
        reason: "the file has more than 1 MiB", hint: "check that it is the right file")
    }
    do throws(AgeError) {
      return try all + AgeKeyList.recipients(text.span)
    } catch {
      throw OperationError(
        .failed, code: .invalidInput, "read the recipients from", subject: path,
        reason: error.reason, hint: error.hint)
    }
  }
}

/// The keys of a new repository.
struct NewEncryption {
  /// The passphrase of the first key file; nil for a host that only writes.
  let passphrase: AgePassphrase?
  /// The identity, whose text is the recovery key; nil for a host that only writes.
  let identity: AgeIdentity?
  /// All recipients, without duplicates, that of the identity first.
  let recipients: [AgeRecipient]

  /// Creates the keys, with a new identity if there is a passphrase.
  init(passphrase: AgePassphrase?, others: [AgeRecipient] = []) {
    self.passphrase = passphrase
    let identity = passphrase.map { _ in AgeIdentity() }
    var recipients = identity.map { [$0.recipient] } ?? []
    for other in others where !recipients.contains(other) { recipients.append(other) }
    (self.identity, self.recipients) = (identity, recipients)
  }

  /// The keys for `Repository.create`.
  var keys: RepositoryKeys {
    RepositoryKeys(identities: identity.map { [$0] } ?? [], recipients: recipients)
  }

  /// The encryption in words.
  var summary: String {
    let others = recipients.count - (identity == nil ? 0 : 1)
    let parts = [
      identity.map { _ in "with a passphrase" },
      others > 0 ? "for \(Sizes.count(others, "recipient"))" : nil,
    ]
    return "encrypted " + parts.compactMap(\.self).joined(separator: " and ")
  }
}

/// The file of a recovery key, which 'age -i' reads as well.
enum RecoveryKeyFile {
  /// Checks that the file is outside a repository, with which it would be lost.
  static func requireOutside(_ repository: RepositoryLocation, _ path: ByteString) throws {
    guard let directory = repository.localPath else { return }
    guard try !Host.resolved(path).isWithin(Host.realPath(directory)) else {
      throw UsageError(
        .invalidValue, "the recovery key '\(path)' would be in the repository",
        hint: "save it elsewhere, apart from the repository")
    }
  }

  /// Writes the key durably, one identity a line, and returns the identity of the file. An existing
  /// file is an error.
  @discardableResult
  static func write(_ identities: [AgeIdentity], to path: ByteString) throws -> FileIdentity {
    guard let name = path.lastComponent else {
      throw UsageError(
        .invalidValue, "'\(path)' is not the name of a file", hint: "name a new file")
    }
    let directory = try Directory.open(path: path.dirname)
    let file = try directory.create(name, permissions: 0o600)
    do {
      try write(identities, to: file)
      try directory.sync()
      return try file.status().identity
    } catch {
      try? directory.remove(name)
      throw error
    }
  }

  /// Writes the key of a rotation, unless the file has exactly these identities: then it completes
  /// a rotation that was interrupted after it wrote the file.
  static func writeOrKeep(
    _ identities: [AgeIdentity], at path: ByteString, _ console: Console
  ) throws {
    if holds(identities, at: path, console) { return }
    do {
      try write(identities, to: path)
    } catch let error as SystemError where error.isExisting {
      throw OperationError(
        .failed, code: error.code, "create", subject: path,
        reason: "it already exists and does not contain this recovery key",
        hint: "name another file; if this one is from a rotation that was interrupted before it "
          + "replaced the key, it opens no more than the older recovery key, and can be removed "
          + "afterwards"
      )
    }
  }

  private static func holds(
    _ identities: [AgeIdentity], at path: ByteString, _ console: Console
  ) -> Bool {
    guard
      var text = try? SecretFile.read(
        path, holding: "identity", limit: AgeKeyList.maximumCount, console)
    else { return false }
    defer { text.wipe() }
    guard let found = try? AgeKeyList.identities(text.span) else { return false }
    return found.map(\.recipient) == identities.map(\.recipient)
  }

  /// Removes the file that `write` made, but not another one that has taken its name. Returns false
  /// if it may still exist.
  static func remove(_ path: ByteString, madeAs identity: FileIdentity) -> Bool {
    guard let name = path.lastComponent, let directory = try? Directory.open(path: path.dirname),
      let status = try? directory.status(name), status.identity == identity
    else { return false }
    return (try? directory.remove(name)) != nil
  }

  private static func write(
    _ identities: [AgeIdentity], to file: borrowing Descriptor
  ) throws {
    let title = "# recovery key of a sandboxctl repository, created \(Host.now().rfc3339)\n"
    var text: [UInt8] = []
    defer { text.wipe() }
    // The memory of a secret must not move.
    text.reserveCapacity(title.utf8.count + identities.count * roomOfIdentity)
    text.append(contentsOf: title.utf8)
    for (number, identity) in identities.enumerated() {
      let words = number == 0 ? "public key" : "from before a rotation, public key"
      text.append(contentsOf: "# \(words): \(identity.recipient)\n".utf8)
      identity.text().withBytes { text.append($0) }
      text.append(UInt8(ascii: "\n"))
    }
    try file.write(text)
    try file.sync()
  }

  /// The maximum size in bytes of an identity, its public key and the comment.
  private static let roomOfIdentity = 256
}

extension Console {
  /// Prints a recovery key, one identity per line, and returns once the key is known to be written.
  /// It precedes everything else on standard output, so that `head -1` shows it.
  ///
  /// - Parameter title: a note that introduces the key.
  /// - Throws: `OperationError` if it cannot be written, even if because its reader has ended.
  func printRecoveryKey(_ identities: [AgeIdentity], title: String) throws(OperationError) {
    note(title)
    do {
      for identity in identities {
        try identity.text().withBytes { try result(bytes: $0) }
        try result("")
      }
      try flush()
    } catch {
      let failure = error as? SystemError
      throw OperationError(
        .failed, code: failure?.code ?? .systemError, "print the recovery key",
        reason: failure?.reason ?? "\(error)",
        hint: "nothing was changed: add '--recovery-key FILE', or make standard output writable"
      )
    }
  }
}
