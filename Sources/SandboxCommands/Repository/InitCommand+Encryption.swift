internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import RemoteStorage
internal import SystemIO

extension InitCommand {
  /// Returns the encryption that the options, the environment or the user choose; nil for none,
  /// which only the user chooses.
  func decide(
    _ choice: RepositoryOptions.Choice, _ console: Console
  ) throws -> NewEncryption? {
    if plain { return nil }
    if encryption.hasPassphrase { try requireRecoveryKey() }
    if let chosen = try encryption.encryption(console) { return chosen }
    guard console.canAsk, !output.quiet else {
      throw UsageError(
        .optionRequired,
        "cannot create the repository '\(choice.location)': neither an encryption nor '--plain' is given",
        hint: "add '--passphrase-file FILE', '--passphrase-command COMMAND' or '--recipient age1…' "
          + "to encrypt, or '--plain' to store without encryption")
    }
    switch try console.answer("Encrypt the repository with a passphrase?", isYesUsual: true) {
    case true?: return NewEncryption(passphrase: try PassphraseInput.terminal.readNew(console))
    case false?: try confirmPlain(choice, console)
    case nil: throw Self.declined(choice, "nothing was chosen")
    }
    return nil
  }

  /// Refuses to create a key that would never be seen: the recovery key is a secret, so JSON output
  /// does not contain it, and `--quiet` prints nothing.
  private func requireRecoveryKey() throws {
    guard encryption.recoveryKey == nil, output.json || output.quiet else { return }
    throw UsageError(
      .optionRequired,
      "the recovery key is not printed with '\(output.json ? "--json" : "--quiet")'",
      hint: "add '--recovery-key FILE'")
  }

  private func confirmPlain(_ choice: RepositoryOptions.Choice, _ console: Console) throws {
    console.note(
      "without encryption, anyone who can read '\(choice.location)' will be able to read all data "
        + "in it")
    if try console.confirm("Create a repository without encryption?") { return }
    throw Self.declined(choice, "storing without encryption was declined")
  }

  private static func declined(
    _ choice: RepositoryOptions.Choice, _ reason: String
  ) -> OperationError {
    OperationError(
      .failed, code: .declined, "the repository '\(choice.location)' was not created: \(reason)",
      hint: "use '--passphrase', or '--plain' on a disk that is encrypted as a whole")
  }

  /// Creates the repository. The recovery key is saved or printed first, so that it is never lost.
  func create(
    in storage: any Storage, _ keys: NewEncryption?, as choice: RepositoryOptions.Choice,
    _ console: Console
  ) throws -> Repository {
    // From here on, a signal ends the creation cleanly.
    try StopSignals.watch()
    var saved: FileIdentity?
    var isPrinted = false
    if let keys {
      saved = try saveRecoveryKey(of: keys, storage, at: choice.location)
      isPrinted = try printRecoveryKey(of: keys, storage, console)
    }
    var isPreparing = false
    let made: Repository
    do throws(StoreError) {
      made = try Repository.create(in: storage, program: Version.text, keys: keys?.keys) {
        repository throws(StoreError) in
        isPreparing = true
        // This comes before the repository exists, so that there is never one without a key.
        if let passphrase = keys?.passphrase {
          try repository.addKey(Repository.hostKeyName, passphrase: passphrase)
        }
        if StopSignals.isStopping() {
          throw StoreError.interrupted(
            "create the repository", repository.location, hint: "run it again")
        }
        isPreparing = false
      }
    } catch {
      if isPreparing, error.code == .interrupted { Repository.removeUnfinished(in: storage) }
      if let saved { discardRecoveryKey(saved, in: storage, console) }
      if isPrinted {
        console.warning(
          "the recovery key above opens nothing, unless there is a repository.json in "
            + "'\(storage.location)'")
      }
      throw error
    }
    guard let keys else { return made }
    let known = KnownRecipients(of: made, at: choice.recordedLocation)
    // The repository exists, and so does its recovery key.
    do {
      try known.record(keys.recipients, areAuthenticated: true)
    } catch {
      console.warning("cannot record the recipients of the repository: \(error)")
    }
    return made
  }

  /// Writes the recovery key to the file that was requested, and returns the file's identity; nil
  /// if none was requested.
  private func saveRecoveryKey(
    of keys: NewEncryption, _ storage: any Storage, at location: RepositoryLocation
  ) throws -> FileIdentity? {
    guard let file = encryption.recoveryKey, let identity = keys.identity else { return nil }
    try Repository.requireEmpty(storage)
    try RecoveryKeyFile.requireOutside(location, file)
    do {
      return try RecoveryKeyFile.write([identity], to: file)
    } catch let error as SystemError where error.isExisting {
      throw OperationError(
        .failed, code: .targetExists, "create", subject: file, reason: "it already exists",
        hint: "name a new file with '--recovery-key': the old one may be the key of another "
          + "repository")
    }
  }

  /// Prints the recovery key, unless a file was requested for it. Returns false if there is nothing
  /// to print.
  private func printRecoveryKey(
    of keys: NewEncryption, _ storage: any Storage, _ console: Console
  ) throws -> Bool {
    guard encryption.recoveryKey == nil, let identity = keys.identity else { return false }
    try Repository.requireEmpty(storage)
    try console.printRecoveryKey(
      [identity], title: "the recovery key, which is printed only now and opens the repository:")
    return true
  }

  /// Removes the recovery key of a repository that was not created. The key stays if the repository
  /// may exist: `repository.json` may have its final name without being durable.
  private func discardRecoveryKey(
    _ saved: FileIdentity, in storage: any Storage, _ console: Console
  ) {
    guard let file = encryption.recoveryKey else { return }
    if let names = try? storage.list(.root), !names.contains("repository.json"),
      RecoveryKeyFile.remove(file, madeAs: saved)
    {
      return
    }
    console.warning(
      "the recovery key in '\(file)' was kept: remove it if there is no repository.json in "
        + "'\(storage.location)'")
  }

  /// Prints what opens the repository, and what must be kept safe.
  func show(_ keys: NewEncryption, _ console: Console) throws {
    if !encryption.words.isEmpty, encryption.passphraseWords.isEmpty, keys.passphrase != nil {
      let name = KeyOptions.environmentPassphrase?.variable ?? ""
      console.note(
        "the passphrase that $\(name) names is used as well, so this host can read the repository")
    }
    for recipient in keys.recipients where recipient != keys.identity?.recipient {
      try console.result("recipient \(recipient)")
    }
    if keys.identity == nil {
      console.note(
        "this host can write backups but cannot read them: to list or restore them, give the "
          + "identity of a recipient with '--identity FILE'; if all of these identities are lost, "
          + "so is all data")
      return
    }
    if let file = encryption.recoveryKey {
      console.note(
        "the recovery key is in '\(file)': move it to a safe place apart from this host and the "
          + "repository")
    } else {
      console.note(
        "keep the recovery key in a safe place apart from this host and the repository")
    }
    console.note(
      "anyone who has the passphrase or the recovery key can read all data; if both are lost, "
        + "nobody can")
  }

  /// The repository as `init --json` prints it.
  func json(
    of made: Repository, _ keys: NewEncryption?, path: ByteString, file: ByteString?
  ) -> JSON {
    var members = [JSON.Member("repository", .string(made.id.hex))] + JSON.path(path)
    members.append(JSON.Member("encryption", .string(keys == nil ? "none" : "age")))
    if let keys {
      members.append(
        JSON.Member("recipients", .array(keys.recipients.map { .string($0.description) })))
    }
    members.append(JSON.Member("configuration", file.map { .string("\($0)") } ?? .null))
    return .object(members)
  }
}
