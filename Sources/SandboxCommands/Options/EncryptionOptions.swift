internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// The encryption of a new repository.
struct EncryptionOptions: ParsableArguments {
  @Flag(help: "Encrypt with a passphrase, which is asked for twice.")
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
    help: ArgumentHelp("Encrypt for all recipients in this file, as 'age -R'.", valueName: "file"),
    completion: .file())
  var recipientsFile: ByteString?

  @Option(
    help: ArgumentHelp(
      "A new file for the recovery key (default: it is printed).", valueName: "file"),
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

  /// The place of the passphrase that the options choose, or nil if they choose none.
  private var input: PassphraseInput? {
    if passphrase { return .terminal }
    if let passphraseFile { return .file(passphraseFile) }
    return passphraseCommand.map { .command($0) }
  }

  /// Reads what the options choose; nil if they choose nothing.
  func encryption(_ console: Console) throws -> NewEncryption? {
    if words.isEmpty { return nil }
    return NewEncryption(passphrase: try input?.readNew(console), others: try allRecipients())
  }

  private func allRecipients() throws -> [AgeRecipient] {
    var all: [AgeRecipient] = []
    for (index, text) in recipients.enumerated() {
      // The text is not quoted: it may be an identity.
      do throws(AgeError) {
        all.append(try AgeRecipient(text))
      } catch {
        throw UsageError(
          .invalidValue, "'--recipient' number \(index + 1) cannot be used: \(error.reason)",
          hint: error.hint)
      }
    }
    guard let recipientsFile else { return all }
    let file = try Descriptor.open(path: recipientsFile)
    guard let text = try file.readAll(limit: AgeKeyList.maximumCount) else {
      throw OperationError(
        .failed, code: .limitExceeded, "read the recipients from", subject: recipientsFile,
        reason: "the file has more than 1 MiB", hint: "check that it is the right file")
    }
    do throws(AgeError) {
      return try all + AgeKeyList.recipients(text.span)
    } catch {
      throw OperationError(
        .failed, code: .invalidInput, "read the recipients from", subject: recipientsFile,
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
  /// Writes the key durably. An existing file is an error.
  static func write(_ identity: AgeIdentity, to path: ByteString) throws {
    guard let name = path.lastComponent else {
      throw UsageError(
        .invalidValue, "'\(path)' is not the name of a file", hint: "name a new file")
    }
    let directory = try Directory.open(path: path.dirname)
    let file = try directory.create(name, permissions: 0o600)
    do {
      try write(identity, to: file)
      try directory.sync()
    } catch {
      try? directory.remove(name)
      throw error
    }
  }

  private static func write(_ identity: AgeIdentity, to file: borrowing Descriptor) throws {
    let head = """
      # recovery key of a sandboxctl repository, created \(Host.now().rfc3339)
      # public key: \(identity.recipient)

      """
    let secret = identity.text()
    var text: [UInt8] = []
    defer { text.wipe() }
    text.reserveCapacity(head.utf8.count + secret.count + 1)
    text.append(contentsOf: head.utf8)
    secret.withBytes { text.append($0) }
    text.append(UInt8(ascii: "\n"))
    try file.write(text)
    try file.sync()
  }
}
