internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import RemoteStorage
internal import SystemIO

/// `sandboxctl init [REPO]`: creates a repository and makes it the default.
struct InitCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "init",
      abstract: "Create a repository for backups",
      discussion: """
        Creates a repository: a directory of archives, with a README.txt on recovery by hand. It \
        is encrypted with a passphrase, for age recipients, or both; --plain stores without \
        encryption. Without any of these options, init asks on a terminal and fails with status 2 \
        elsewhere. See sandboxctl-init(1) for the keys.

        The repository becomes the default in the configuration file, unless the file already \
        names one. Without REPO the user's own repository is created in \
        $XDG_DATA_HOME/sandboxctl/repository. It is on the same disk as the data, and each backup \
        says so unless --accept-same-disk was given.

        \(Examples.text([
          "sandboxctl init repo --passphrase-file passphrase",
          "sandboxctl init other --plain",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The directory to create, new or empty, or sftp:host/path, sftp://user@host:22/path, or "
        + "s3://bucket/prefix (default: the user's own repository).",
      valueName: "repo"),
    completion: .directory)
  var repository: ByteString?

  @Flag(help: "Store without encryption: anyone who can read the directory can read the data.")
  var plain = false

  @OptionGroup var encryption: EncryptionOptions

  @Flag(help: "Omit the note that the user's own repository is on the same disk as the data.")
  var acceptSameDisk = false

  @Flag(help: "Do not write to the configuration file.")
  var noDefault = false

  @OptionGroup var remote: RemoteOptions
  @OptionGroup var output: OutputOptions

  static var precedence: [OptionPrecedence] {
    OptionPrecedence.choosing(["plain"], replaces: ["recovery-key"])
      + [
        // Only a passphrase comes with an identity, whose text is the recovery key.
        OptionPrecedence(
          chosen: ["recipient", "recipients-file"], replaced: ["recovery-key"],
          without: [
            "passphrase", "passphrase-command", "passphrase-file",
            OptionPrecedence.passphraseVariable,
          ])
      ]
  }

  func validate() throws {
    let given = plain ? ["--plain"] + encryption.words : encryption.passphraseWords
    try ValidationError.requireAtMostOne(of: given)
    guard encryption.recoveryKey != nil else { return }
    let hasIdentity = !plain && (encryption.hasPassphrase || encryption.words.isEmpty)
    if !hasIdentity {
      throw ValidationError(
        "'--recovery-key' and '\(plain ? "--plain" : encryption.words[0])' cannot be used "
          + "together.")
    }
  }

  func run(_ console: Console) throws -> ExitStatus {
    let choice = try choice()
    if acceptSameDisk, repository == nil, (try? choice.open()) != nil {
      try accept(console)
      return .done
    }
    let keys = try decide(choice, console)
    let storage = try choice.makeStorage()
    let made = try create(in: storage, keys, as: choice, console)
    if !output.json, !output.quiet {
      try console.result(
        "created repository \(made.id.hex.prefix(8)) in \(made.location), "
          + (keys?.summary ?? "not encrypted"))
      if let keys { try show(keys, console) }
    }
    let file = try enter(choice, console)
    if acceptSameDisk { try accept(console) }
    if output.json {
      try console.result(json(of: made, keys, path: choice.location.text, file: file))
    }
    return .done
  }

  private func choice() throws -> RepositoryOptions.Choice {
    if let repository {
      let choice = try RepositoryOptions.Choice(repository, remote.settings)
      // A directory that exists was named on purpose.
      if choice.identity == nil { try choice.location.requireUsualDirectory() }
      return choice
    }
    guard let standard = RepositoryOptions.Choice.standard else {
      throw UsageError(
        .environmentMissing, "cannot find the user's data directory: HOME is not set",
        hint: "give a directory for the repository")
    }
    return standard
  }

  /// Writes the repository to the configuration. Returns the file if it names the repository.
  private func enter(_ choice: RepositoryOptions.Choice, _ console: Console) throws -> ByteString? {
    if noDefault || choice.isStandard { return nil }
    let name = try choice.location.localPath.map(Host.realPath) ?? choice.location.text
    guard let path = name.utf8 else {
      if output.quiet { return nil }
      console.note("the path is not UTF-8, so the configuration cannot name it: use '--repo'")
      return nil
    }
    let file = try set(Configuration.Edit.Line("repo", path: path), console) {
      "it is now the default repository: \($0)"
    }
    if file != nil, choice.location.localPath == nil { try enterConnection(console) }
    return file
  }

  /// Writes the options of the connection to the configuration, which the repository also needs.
  private func enterConnection(_ console: Console) throws {
    var lines = remote.values.map { Configuration.Edit.Line($0.name, path: $0.value) }
    if remote.s3PathStyle { lines.append(Configuration.Edit.Line(flag: "s3-path-style")) }
    for line in lines {
      _ = try set(line, console) { "'\(line.name)' is now set for all repositories: \($0)" }
    }
  }

  private func accept(_ console: Console) throws {
    _ = try set(Configuration.Edit.Line(flag: "accept-same-disk"), console) {
      "the note about the same disk is now disabled: \($0)"
    }
  }

  private func set(
    _ line: Configuration.Edit.Line, _ console: Console, saying done: (String) -> String
  ) throws -> ByteString? {
    guard let edit = Configuration.Edit(program: KnownCommand(console.root)) else { return nil }
    let byHand = "to change it, write '\(line.name): \(line.value)'"
    let outcome: Configuration.Edit.Outcome
    do {
      outcome = try edit.set(line)
    } catch let error as SystemError {
      console.warning("cannot change the configuration: \(error); \(byHand) there")
      return nil
    }
    switch outcome {
    case .written(let file):
      if !output.quiet, !output.json { try console.result(done(Paths.text(file))) }
      return file
    case .present(let file): return file
    case .otherwise(let location, let value):
      if output.quiet { return nil }
      console.note(
        "\(location) is set to '\(ByteString(value))' and was not changed: \(byHand) there")
    case .refused(let file, let reason):
      if output.quiet { return nil }
      console.note("\(file) was not changed, because \(reason): \(byHand) there")
    }
    return nil
  }
}
