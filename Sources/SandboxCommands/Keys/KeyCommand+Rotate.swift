internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import RemoteStorage
internal import SystemIO

extension KeyCommand {
  /// `sandboxctl key rotate`: replaces the identity and the recipients of new data.
  struct Rotate: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "rotate",
        abstract: "Replace the identity of an encrypted repository for new data",
        usage: "sandboxctl key rotate [--recipient <recipient>] ... [<options>]",
        discussion: """
          Creates a new identity, and with it a new recovery key. New data is encrypted for it \
          and for the other recipients, which stay unless some are given. Older data stays \
          readable for the older identity, which the key keeps, until 'sandboxctl key rewrap' has \
          replaced it. Until then, recipients that are added here cannot read it.

          A passphrase is needed, and there must be no other keys: remove them first, and add them \
          again afterwards. Hosts that use the recovery key or write without a key have to accept \
          the new recipients once. A rotation that was interrupted is completed when it is run \
          again. See REVEALED KEYS in sandboxctl-key(1).

          \(Examples.text([
            "sandboxctl key rotate --passphrase-file old --recovery-key recovery.key"
          ]))
          """)
    }

    @Option(
      name: .customLong("recipient"),
      help: ArgumentHelp(
        "Encrypt new data for the holder of this age recipient's identity as well; may be repeated "
          + "(default: the current recipients other than the identity's own).",
        valueName: "recipient"))
    var recipients: [String] = []

    @Option(
      help: ArgumentHelp(
        "Encrypt new data for all recipients in this file as well, one per line, "
          + "as 'age -R' reads it.",
        valueName: "file"),
      completion: .file())
    var recipientsFile: ByteString?

    @Option(
      help: ArgumentHelp(
        "A new file for the new recovery key (default: print it).", valueName: "file"),
      completion: .file())
    var recoveryKey: ByteString?

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      if recoveryKey == nil, output.json || output.quiet {
        throw UsageError(
          .optionRequired,
          "the recovery key is not printed with '\(output.json ? "--json" : "--quiet")'",
          hint: "add '--recovery-key FILE'")
      }
      let others =
        recipients.isEmpty && recipientsFile == nil
        ? nil : try RecipientList.read(recipients, file: recipientsFile)
      let choice = try repository.choice(for: console)
      let opened = try choice.open(console).repository
      let rotation = try rotate(opened, to: others, at: choice.location, console)
      let known = KnownRecipients(of: rotation.repository, at: choice.recordedLocation)
      do {
        try known.record(rotation.recipients, areAuthenticated: true)
      } catch {
        console.warning("cannot record the recipients of the repository: \(error)")
      }
      if output.json {
        try console.result(rotation.json)
      } else if !output.quiet {
        try show(rotation, console)
      }
      warn(of: rotation, console)
      return .done
    }

    /// Rotates the key. The recovery key is saved or printed before anything is changed.
    private func rotate(
      _ opened: Repository, to others: [AgeRecipient]?, at location: RepositoryLocation,
      _ console: Console
    ) throws -> Repository.Rotation {
      var isPrinted = false
      do {
        return try output.changingKeys {
          try opened.rotateKey(to: others) { identities in
            try KeyCommand.checkNotStopped("rotate the key of", "\(location)")
            if let recoveryKey {
              try RecoveryKeyFile.requireOutside(location, recoveryKey)
              try RecoveryKeyFile.writeOrKeep(identities, at: recoveryKey, console)
            } else {
              try console.printRecoveryKey(
                identities,
                title: "the recovery key, which is printed only now, with all of these lines:")
              isPrinted = true
            }
          }
        }
      } catch {
        if isPrinted {
          console.warning(
            "the rotation was not completed: keep the older recovery key as well as that above, "
              + "until a rotation is complete")
        }
        throw error
      }
    }

    /// Warns that an added recipient is not one of what is stored already, which new snapshots use.
    private func warn(of rotation: Repository.Rotation, _ console: Console) {
      guard let first = rotation.added.first else { return }
      let others = rotation.added.count - 1
      console.warning(
        "'\(first)'\(others > 0 ? " and \(Sizes.count(others, "other recipient"))" : "") cannot "
          + "read what is stored already, or later snapshots that share data with it, before "
          + "'sandboxctl key rewrap' is complete")
    }

    private func show(_ rotation: Repository.Rotation, _ console: Console) throws {
      try console.result(
        rotation.isCompletion
          ? "completed the rotation that was interrupted" : "rotated the key of the repository")
      for recipient in rotation.recipients { try console.result("recipient \(recipient)") }
      if let recoveryKey {
        console.note(
          "the recovery key is in '\(recoveryKey)': move it to a safe place apart from this host "
            + "and the repository")
      } else {
        console.note(
          "keep the recovery key in a safe place apart from this host and the repository")
      }
      guard rotation.identities.count > 1 else { return }
      console.note(
        "stored data still opens with the older identity: 'sandboxctl key rewrap' replaces it, and "
          + "after that only the first line of the recovery key is needed")
    }
  }
}

extension Repository.Rotation {
  /// The recipients of new data.
  fileprivate var recipients: [AgeRecipient] { repository.keys?.recipients ?? [] }

  /// The rotation as `key rotate --json` prints it.
  fileprivate var json: JSON {
    [
      "change": .string(isCompletion ? "completed" : "rotated"),
      "recipients": .array(recipients.map { .string($0.description) }),
      "added_recipients": .array(added.map { .string($0.description) }),
      "older_identities": .integer(Int64(max(0, identities.count - 1))),
    ]
  }
}
