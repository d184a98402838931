internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl key`: manages the passphrases of an encrypted repository, and the trusted signers of
/// any repository.
struct KeyCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "key",
      abstract: "Manage the keys and the trusted signers of a repository",
      discussion: """
        A key is a file of the repository, keys/NAME.age, which one passphrase opens. All keys have \
        the same identity, so each of the passphrases opens the repository, and so does the \
        recovery key, which is that identity. Whoever had a passphrase may have kept the identity: \
        removing a key or changing a passphrase does not make data unreadable for them. 'key \
        rotate' replaces the identity for new data, and 'key rewrap' for stored data.

        Each host signs its snapshots. 'key trust' names the signers whose snapshots are accepted.

        \(Examples.text([
          "sandboxctl key list --repo repo",
          "sandboxctl key show-recipient --repo repo",
        ]))
        """,
      subcommands: [
        List.self, Add.self, Change.self, Remove.self, Rotate.self, Rewrap.self,
        ShowRecipient.self, Trust.self, Untrust.self,
      ])
  }
}

extension KeyCommand {
  /// `sandboxctl key list`: lists the keys. No passphrase is needed.
  struct List: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "list",
        abstract: "List the keys of a repository and its signers",
        usage: "sandboxctl key list [--repo <repo>] [<options>]",
        discussion: """
          Lists the keys with the times at which they were written. No passphrase is needed, and \
          none is checked: a listed key may be damaged. Also lists the signers that this host knows, \
          and its own, which it has after its first backup.

          \(Examples.text(["sandboxctl key list --repo repo"]))
          """)
    }

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let choice = try repository.choice(for: console)
      let opened = try choice.open().repository
      let entries = try opened.keyEntries()
      let trust = try opened.withHostSigners(console, at: choice.recordedLocation).trust
      let signers = ListedSigner.all(of: trust)
      if output.json {
        for entry in entries { try console.result(entry.json) }
        for signer in signers { try console.result(signer.json) }
        return .done
      }
      if entries.isEmpty {
        let isPlain = !opened.isEncrypted
        if !output.quiet {
          console.note(isPlain ? "the repository is not encrypted" : "the repository has no keys")
        }
      } else {
        var table = Table([("key", .left), ("written", .left), ("size", .right)])
        for entry in entries {
          table.add([entry.name, Times.text(entry.modified), Sizes.text(entry.size)])
        }
        try console.result(table)
        if !signers.isEmpty { try console.result("") }
      }
      try show(signers, console)
      return .done
    }

    private func show(_ signers: [ListedSigner], _ console: Console) throws {
      if signers.isEmpty { return }
      var table = Table([("signer", .left), ("trusted", .left), ("name", .left)])
      for listed in signers {
        let name = [listed.name.shown, listed.isOwn ? "(this host)" : ""].filter { !$0.isEmpty }
        table.add([listed.signer.description, listed.state, name.joined(separator: " ")])
      }
      try console.result(table)
    }
  }

  /// `sandboxctl key add NAME`: adds a passphrase.
  struct Add: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "add",
        abstract: "Add a passphrase to an encrypted repository",
        usage: "sandboxctl key add <name> [--new-passphrase-file <file>] [<options>]",
        discussion: """
          Adds a key that a new passphrase opens. One of the existing passphrases, or the recovery \
          key, is needed. If all keys are lost, the recovery key can add a new one.

          \(Examples.text([
            "sandboxctl key add nas --passphrase-file old --new-passphrase-file new"
          ]))
          """)
    }

    @Argument(help: ArgumentHelp("The name of the new key.", valueName: "name"))
    var name: String

    @OptionGroup var passphrase: NewPassphraseOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let input = try passphrase.input(console)
      let opened = try repository.open(console).repository
      try opened.requireIdentity("add the key", of: name)
      let passphrase = try input.readNew(console)
      try output.changingKeys {
        try opened.addKey(name, passphrase: passphrase) { () throws(StoreError) in
          try KeyCommand.checkNotStopped("add the key", name)
        }
      }
      try output.show("added", key: name, console)
      return .done
    }
  }

  /// `sandboxctl key change [NAME]`: replaces a passphrase.
  struct Change: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "change",
        abstract: "Change a passphrase of an encrypted repository",
        usage: "sandboxctl key change [<name>] [--new-passphrase-file <file>] [<options>]",
        discussion: """
          Replaces a key with one that a new passphrase opens. The old key is kept until the new \
          one is durable. Any of the existing passphrases, or the recovery key, is needed. If \
          others know the old passphrase, see REVEALED KEYS in sandboxctl-key(1).

          \(Examples.text([
            "sandboxctl key change --passphrase-file old --new-passphrase-file new"
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp(
        "The name of the key (default: the only key of the repository).", valueName: "name"))
    var name: String?

    @OptionGroup var passphrase: NewPassphraseOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let input = try passphrase.input(console)
      let name = try self.name ?? onlyKey()
      let opened = try repository.open(console).repository
      try opened.requireIdentity("change the key", of: name)
      let passphrase = try input.readNew(console)
      try output.changingKeys {
        try opened.replaceKey(name, passphrase: passphrase) { () throws(StoreError) in
          try KeyCommand.checkNotStopped("change the key", name)
        }
      }
      try output.show("changed", key: name, console)
      return .done
    }

    private func onlyKey() throws -> String {
      let opened = try repository.open().repository
      let names = try opened.keyEntries().map(\.name)
      if names.count == 1 { return names[0] }
      throw UsageError(
        .invalidArguments,
        "no key is named, and '\(opened.location)' has \(Sizes.count(names.count, "key"))",
        hint: names.isEmpty
          ? "add one with 'sandboxctl key add'" : "name one of \(names.joined(separator: ", "))")
    }
  }

  /// `sandboxctl key remove NAME`: removes a passphrase.
  struct Remove: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a passphrase from an encrypted repository",
        usage: "sandboxctl key remove <name> [<options>]",
        discussion: """
          Removes a key: its passphrase no longer opens the repository. The passphrase of another \
          key, or the recovery key, must be given. The last key is not removed. If others know the \
          passphrase, see REVEALED KEYS in sandboxctl-key(1).

          \(Examples.text([
            "sandboxctl key add nas --passphrase-file old --new-passphrase-file new",
            "sandboxctl key remove nas --repo repo --passphrase-file old",
          ]))
          """)
    }

    @Argument(help: ArgumentHelp("The name of the key.", valueName: "name"))
    var name: String

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try repository.open(console).repository
      try output.changingKeys {
        try opened.removeKey(name) { () throws(StoreError) in
          try KeyCommand.checkNotStopped("remove the key", name)
        }
      }
      try output.show("removed", key: name, console)
      return .done
    }
  }

  /// `sandboxctl key show-recipient`: prints the recipients.
  struct ShowRecipient: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "show-recipient",
        abstract: "Print the recipients of an encrypted repository",
        usage: "sandboxctl key show-recipient [--repo <repo>] [<options>]",
        discussion: """
          Prints the age recipients for which new data is encrypted, one per line, as 'age -R' and \
          'sandboxctl init --recipients-file' read them. With a passphrase they are those of the \
          key, which only a holder of the passphrase can change; without one those that the \
          repository names, which anyone who can write to it can change.

          \(Examples.text(["sandboxctl key show-recipient --repo repo"]))
          """)
    }

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      // No passphrase is requested: a user who sets up a write-only host has none.
      let hasKey = repository.keys.named != nil
      let opened = try hasKey ? repository.open(console).repository : repository.open().repository
      guard opened.isEncrypted else {
        throw OperationError(
          .failed, code: .invalidInput, "print the recipients of", subject: opened.location,
          reason: "the repository is not encrypted")
      }
      for recipient in opened.keys?.recipients ?? opened.settings.recipients {
        if output.json {
          try console.result(["recipient": .string(recipient.description)] as JSON)
        } else {
          try console.result(recipient.description)
        }
      }
      return .done
    }
  }
}

extension KeyCommand {
  /// Ends a change of keys that a signal has asked to stop before it has changed anything.
  static func checkNotStopped(_ action: String, _ subject: String) throws(StoreError) {
    guard StopSignals.isStopping() else { return }
    throw .interrupted(action, subject, hint: "nothing was changed: run it again")
  }
}

extension OutputOptions {
  /// Changes keys under a lease, which a signal must not leave behind: it stops the change before
  /// its first write, or not at all.
  func changingKeys<Result>(_ change: () throws -> Result) throws -> Result {
    let display = try ProgressDisplay(ProgressCounters(), .onRequest, isJSON: json)
    defer { display.end() }
    return try change()
  }
}

extension Repository {
  /// Refuses a change of keys that cannot be made, before a new passphrase is requested.
  fileprivate func requireIdentity(_ action: String, of name: String) throws {
    guard isEncrypted else {
      throw OperationError(
        .failed, code: .invalidInput, action, subject: name,
        reason: "the repository '\(location)' is not encrypted",
        hint: "'sandboxctl init' creates an encrypted one")
    }
    if let keys, !keys.identities.isEmpty { return }
    throw StoreError(
      .keyRequired, action, subject: name,
      reason: "it needs the identity of the repository",
      hint: "use '--passphrase-file FILE', '--passphrase-command COMMAND' or '--identity FILE'")
  }
}

extension Repository.KeyEntry {
  /// The key as a line of `key list --json`.
  fileprivate var json: JSON {
    [
      "key": .string(name), "modified": .string(modified.rfc3339),
      "bytes": .integer(Int64(clamping: size)),
    ]
  }
}

extension OutputOptions {
  /// Prints the change of a key.
  fileprivate func show(_ change: String, key name: String, _ console: Console) throws {
    if json {
      try console.result(["key": .string(name), "change": .string(change)] as JSON)
    } else if !quiet {
      try console.result("\(change) key '\(name)'")
    }
  }
}
