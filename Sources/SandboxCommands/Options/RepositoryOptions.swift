internal import ArchiveStore
internal import ArgumentParser
internal import PolicyEngine
internal import RemoteStorage
internal import SystemIO

/// The repository that a command works on.
struct RepositoryOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The repository: a directory, sftp:host/path, sftp://user@host:22/path or "
        + "s3://bucket/prefix (default: $SANDBOXCTL_REPOSITORY, the configured repository, or "
        + "the user's own).",
      valueName: "repo"),
    completion: .directory)
  var repo: ByteString?

  /// The configured repository, which the environment overrides.
  @Option(help: .hidden)
  var configuredRepo: ByteString?

  @OptionGroup var keys: KeyOptions
  @OptionGroup var remote: RemoteOptions

  /// Returns the location of the repository and its key.
  func choice() throws -> Choice {
    if let named = repo ?? Host.environment("SANDBOXCTL_REPOSITORY") ?? configuredRepo {
      return try Choice(named, remote.settings, keys: keys)
    }
    guard var standard = Choice.standard else {
      throw UsageError(
        .repositoryRequired, "no repository given", hint: "name one with '--repo DIR'")
    }
    standard.keys = keys
    standard.connection = remote.settings
    return standard
  }

  /// Returns the location and the key of the repository to open. Commands that the console suggests
  /// from then on use that repository.
  func choice(for console: Console) throws -> Choice {
    console.suggested = suggested
    return try choice()
  }

  /// The destination of backups to the repository as far as it is known without a connection to
  /// another host, for a preview.
  var knownDestination: Destination {
    (try? choice())?.destination ?? Destination(isUnencrypted: true)
  }

  /// Opens the repository without a key: the objects of an encrypted one cannot be read.
  func open() throws -> OpenRepository { try choice().open() }

  /// Opens the repository. The key of an encrypted one may be asked for.
  ///
  /// - Parameter firstListings: the directories that the command lists first, if it takes no lease.
  func open(
    _ console: Console, firstListings: [ObjectPath] = []
  ) throws -> OpenRepository {
    var choice = try choice(for: console)
    choice.firstListings = firstListings
    return try choice.open(console)
  }

  /// Opens the repository for a restore, which begins with `Repository.beginEarlyReading()`.
  func openForRestore(_ console: Console) throws -> OpenRepository {
    var choice = try choice(for: console)
    (choice.firstListings, choice.connectsAhead) = (Repository.listedByQueries, true)
    return try choice.open(console)
  }

  /// The commands that messages suggest for the repository.
  var suggested: SuggestedCommands {
    SuggestedCommands(suffix: suffix, suffixWithoutKey: suffix(withKey: false))
  }

  /// The options that suggested commands need to use the same repository.
  var suffix: String { suffix(withKey: true) }

  /// Returns the same without the key if it is not meant for this repository: an unencrypted one is
  /// not opened with a key.
  func suffix(withKey: Bool) -> String {
    guard let repo else { return "" }
    return Self.suffix(for: repo, remote, keys: withKey ? keys : nil)
  }

  /// Returns the options that suggested commands need to use a repository: its location, and those
  /// needed to reach and open it.
  ///
  /// - Parameter keys: the key if the repository is encrypted.
  static func suffix(
    for repo: ByteString, _ remote: RemoteOptions, keys: KeyOptions?
  ) -> String {
    let words = keys?.words ?? []
    let options = remote.words(for: try? RepositoryLocation(parsing: repo)) + words
    return " --repo \(ShellWord.text(repo))" + text(of: options)
  }

  /// Returns words of a command line as text to paste after others.
  static func text(of words: [String]) -> String {
    words.map { " " + ShellWord.text(ByteString(argument: $0)) }.joined()
  }
}
