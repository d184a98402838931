internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

extension KeyCommand {
  /// `sandboxctl key trust [SIGNER]`: trusts a signer of snapshots.
  struct Trust: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "trust",
        abstract: "Trust a signer of snapshots",
        usage: """
          sandboxctl key trust [<signer>] [--name <text>] [<options>]
          sandboxctl key trust --snapshot <snap> ... [<options>]
          """,
        discussion: """
          As soon as a signer is trusted, restores and dumps refuse snapshots that no trusted signer \
          signed, and 'check' lists them. Without SIGNER this host itself is trusted. With \
          --snapshot single snapshots are accepted whatever their signatures are, for example older \
          ones.

          The trust is recorded on this host and, if a passphrase is given, in its key file, from \
          where other hosts read it with the same passphrase.

          \(Examples.text([
            "sandboxctl key trust --repo repo",
            "sandboxctl key trust --snapshot all --repo repo --passphrase-file old",
            "sandboxctl key list --repo repo",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp(
        "The signer, as 'key list' prints it on its host (default: this host).",
        valueName: "signer"))
    var signer: String?

    @Option(help: ArgumentHelp("A name for the signer (default: none).", valueName: "text"))
    var name: String?

    @Option(
      name: .customLong("snapshot"),
      help: ArgumentHelp(
        "Accept this snapshot, or all that exist now (all); may be repeated.", valueName: "snap"))
    var snapshots: [String] = []

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    static var precedence: [OptionPrecedence] {
      OptionPrecedence.oneOf(["snapshot"], [OptionPrecedence.arguments, "name"])
    }

    func run(_ console: Console) throws -> ExitStatus {
      try requireValid()
      let named = try signer.map { try SignerText.signer($0) }
      let choice = try repository.choice(for: console)
      var opened = try choice.open(console).repository
      let known = KnownSigners(of: opened, at: choice.recordedLocation)
      if !snapshots.isEmpty { return try accept(in: opened, known, console) }
      let chosen = try named ?? HostSigningKey(of: opened, console).make().signer
      try opened.changeTrust(in: known, console) {
        $0.trust(chosen, name: name ?? $0.names[chosen] ?? "")
      }
      try output.show("trusted", signer: chosen, console)
      return .done
    }

    private func requireValid() throws {
      if !snapshots.isEmpty, signer != nil || name != nil {
        throw UsageError(
          .optionsConflict, "'--snapshot' cannot be used with a signer",
          hint: "run 'sandboxctl key trust' once for the signer and once for the snapshots")
      }
      guard let name, !TrustedSigners.isName(name) else { return }
      throw UsageError(
        .invalidValue, "'\(ByteString(name))' is not a name for a signer",
        hint: "give 1 to 64 printable characters, the first one no space")
    }

    /// Accepts snapshots by their ids, which are hashes of their bytes.
    private func accept(
      in repository: Repository, _ known: KnownSigners, _ console: Console
    ) throws -> ExitStatus {
      let ids: [SnapshotID]
      if snapshots == ["all"] {
        ids = try repository.hostHeads().heads.map(\.id)
      } else {
        let finder = SnapshotFinder(repository, console)
        ids = try snapshots.map { try finder.find(SnapshotName($0)).id }
      }
      _ = try known.update { $0.snapshots.formUnion(ids) }
      for id in ids {
        if output.json {
          try console.result(["snapshot": .string(id.hex), "change": "accepted"] as JSON)
        } else if !output.quiet {
          try console.result("accepted snapshot \(id.hex.prefix(8))")
        }
      }
      return .done
    }
  }

  /// `sandboxctl key untrust SIGNER`: revokes the trust in a signer.
  struct Untrust: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "untrust",
        abstract: "Revoke the trust in a signer of snapshots",
        usage: "sandboxctl key untrust <signer> [<options>]",
        discussion: """
          Snapshots of the signer are no longer accepted, including older ones. If no signer is \
          trusted any longer, every snapshot is accepted. Other hosts that trust the signer need \
          the same command.

          \(Examples.text(["sandboxctl key list --repo repo"]))
          """)
    }

    @Argument(
      help: ArgumentHelp("The signer (sbxsig1…), as 'key list' prints it.", valueName: "signer"))
    var signer: String

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let signer = try SignerText.signer(self.signer)
      let choice = try repository.choice(for: console)
      var opened = try choice.open(console).repository
      try requireKnown(signer, in: opened.trust)
      try opened.changeTrust(in: KnownSigners(of: opened, at: choice.recordedLocation), console) {
        $0.revoke(signer)
      }
      if opened.trust.isEmpty {
        console.warning("no signer is trusted any longer: every snapshot is accepted")
      }
      try output.show("untrusted", signer: signer, console)
      return .done
    }

    /// Refuses a signer that this host neither trusts nor has ever trusted: it is probably
    /// mistyped, and the intended signer would remain trusted.
    private func requireKnown(_ signer: Signer, in trust: TrustedSigners) throws(OperationError) {
      let known = ListedSigner.all(of: trust)
      if known.contains(where: { $0.signer == signer }) { return }
      let names = known.map { $0.name.isEmpty ? "\($0.signer)" : "\($0.signer) (\($0.name))" }
      throw OperationError(
        .notFound, code: .notFound, "untrust signer", subject: ByteString("\(signer)"),
        reason: names.isEmpty
          ? "this host knows no signer"
          : "this host does not know it; it knows \(names.joined(separator: ", "))",
        hint: "'sandboxctl key list' lists the signers that this host knows")
    }
  }
}

/// The signers given on the command line, as text.
private enum SignerText {
  static func signer(_ text: String) throws -> Signer {
    do throws(SigningError) {
      return try Signer(text)
    } catch {
      // The text is not quoted because it may be a key.
      throw UsageError(
        .invalidValue, "the signer cannot be used: \(error.reason)",
        hint: "a signer has 65 characters and begins with 'sbxsig1'; 'sandboxctl key list' prints "
          + "it on the host that signs, after the first backup of that host")
    }
  }
}

extension Repository {
  /// Changes the trusted signers on this host, and records them in the key file that was opened.
  fileprivate mutating func changeTrust(
    in known: KnownSigners, _ console: Console, _ change: (inout TrustedSigners) -> Void
  ) throws {
    // A signal must not leave the lease with which the key file is changed.
    try StopSignals.watch()
    trust = try known.update(change)
    if try !saveSigners(), isEncrypted {
      console.note("recorded on this host only: a passphrase is needed to change its key file")
    }
  }
}

extension OutputOptions {
  /// Prints the change of the trust in a signer.
  fileprivate func show(_ change: String, signer: Signer, _ console: Console) throws {
    if json {
      try console.result(
        ["signer": .string(signer.description), "change": .string(change)] as JSON)
    } else if !quiet {
      try console.result("\(change) signer \(signer)")
    }
  }
}

/// A signer of a repository's snapshots, as this host knows it.
struct ListedSigner {
  let signer: Signer
  let name: String
  let isTrusted: Bool
  let isOwn: Bool

  /// Returns the trusted signers, revoked ones and that of this host, ordered by their texts.
  static func all(of trust: TrustedSigners) -> [ListedSigner] {
    let signers = Set(trust.names.keys).union(trust.revoked).union(trust.own.map { [$0] } ?? [])
    return signers.sorted { $0.description < $1.description }.map { signer in
      ListedSigner(
        signer: signer, name: trust.names[signer] ?? "",
        isTrusted: !trust.isEmpty && trust.trusts(signer), isOwn: signer == trust.own)
    }
  }

  /// The trust as a word.
  var state: String { isTrusted ? "yes" : "no" }

  /// The signer as a line of `key list --json`.
  var json: JSON {
    [
      "signer": .string(signer.description), "name": .string(name), "trusted": .bool(isTrusted),
      "this_host": .bool(isOwn),
    ]
  }
}
