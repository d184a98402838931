internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Synchronization
internal import SystemIO

/// The key of an encrypted repository.
struct KeyOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A file with the passphrase of an encrypted repository (default: "
        + "$SANDBOXCTL_PASSPHRASE_FILE, or a prompt on a terminal).",
      valueName: "file"),
    completion: .file())
  var passphraseFile: ByteString?

  @Option(
    help: ArgumentHelp(
      "A shell command that prints the passphrase (default: $SANDBOXCTL_PASSPHRASE_COMMAND).",
      valueName: "command"))
  var passphraseCommand: ByteString?

  @Option(
    help: ArgumentHelp(
      "A file with the recovery key, or other age identities, to use instead of a passphrase "
        + "(default: $SANDBOXCTL_IDENTITY_FILE).",
      valueName: "file"),
    completion: .file())
  var identity: ByteString?

  func validate() throws {
    let given = [
      passphraseFile.map { _ in "--passphrase-file" },
      passphraseCommand.map { _ in "--passphrase-command" }, identity.map { _ in "--identity" },
    ].compactMap(\.self)
    try ValidationError.requireAtMostOne(of: given)
  }
}

extension KeyOptions {
  /// A key as named by options or the environment.
  enum Named {
    case identity(ByteString)
    case passphrase(PassphraseInput)
  }

  /// Whether an option names a key.
  var isGiven: Bool { identity != nil || passphraseFile != nil || passphraseCommand != nil }

  /// The files that the options name, as words for a suggested command. Passphrase commands are
  /// omitted: they may contain the passphrase.
  var words: [String] {
    if let identity { return ["--identity", identity.argument] }
    return passphraseFile.map { ["--passphrase-file", $0.argument] } ?? []
  }

  /// The key that the options name, or that of the environment; nil if there is none.
  var named: Named? {
    if let identity { return .identity(identity) }
    if let passphraseFile { return .passphrase(.file(passphraseFile)) }
    if let passphraseCommand { return .passphrase(.command(passphraseCommand)) }
    return Self.environment
  }

  /// The error for a key of a repository that is not encrypted: it may not be the one that the user
  /// expects, and would store everything unencrypted.
  static func notEncrypted(_ repository: Repository) -> StoreError {
    StoreError(
      .wrongKey, "open", subject: repository.location,
      reason: "a key was given, but the repository is not encrypted",
      hint:
        "check that it is the right repository; if it is, remove the key from the command and the "
        + "configuration")
  }

  /// The key that the environment names: an identity before a passphrase.
  static var environment: Named? {
    variables.identity.map { .identity($0) } ?? environmentPassphrase.map { .passphrase($0) }
  }

  /// The passphrase that the environment names.
  static var environmentPassphrase: PassphraseInput? {
    variables.file.map { .file($0) } ?? variables.command.map { .command($0) }
  }

  /// The values of the variables. Programs that are run later do not inherit them.
  private static let variables = (
    identity: Host.takeEnvironment("SANDBOXCTL_IDENTITY_FILE"),
    file: Host.takeEnvironment("SANDBOXCTL_PASSPHRASE_FILE"),
    command: Host.takeEnvironment("SANDBOXCTL_PASSPHRASE_COMMAND")
  )

  /// Returns the key for an encrypted repository. A file or a command is read at most once in a
  /// run. If no key is named, the passphrase is asked for on a terminal, once for each repository;
  /// an empty answer, or no terminal, means no key.
  func source(for repository: Repository, _ console: Console) throws -> KeySource {
    let location = repository.location
    switch named {
    case .identity(let path): return .identities(try IdentityFile(path: path).read(console))
    case .passphrase(let input): return try Self.source(of: location, from: input, console)
    case nil:
      // Without a key file no passphrase opens the repository: this host may only write.
      guard console.canAsk, try !repository.keyEntries().isEmpty else { return .none }
      return try Self.source(of: location, from: .terminal, console)
    }
  }

  /// The passphrases that this run has read.
  private static let known = Mutex<[Answer: AgePassphrase]>([:])

  /// The question that a passphrase answers.
  private struct Answer: Hashable {
    let input: PassphraseInput
    /// The repository or the file that the question named; nil for a file or a command, whose
    /// passphrase applies to everything for which it is named.
    let location: String?
  }

  private static func source(
    of location: String, from input: PassphraseInput, _ console: Console
  ) throws -> KeySource {
    let passphrase = try passphrase(of: location, from: input, console)
    return passphrase.map { passphrase in .passphrase({ passphrase }) } ?? KeySource.none
  }

  /// Returns the passphrase of a repository, or of a file with identities, which is read once in a
  /// run; nil if nothing is typed on the terminal.
  static func passphrase(
    of location: String, from input: PassphraseInput, _ console: Console
  ) throws -> AgePassphrase? {
    let answer = Answer(input: input, location: input == .terminal ? location : nil)
    if let passphrase = known.withLock({ $0[answer] }) { return passphrase }
    guard let passphrase = try input.read(of: location, console) else { return nil }
    known.withLock { $0[answer] = passphrase }
    return passphrase
  }
}
