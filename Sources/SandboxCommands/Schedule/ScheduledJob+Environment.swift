internal import RemoteStorage
internal import SystemIO

/// The environment variables that become part of a job, which a scheduler runs without them.
extension ScheduledJob {
  /// Variables with paths: of the program's own files and those of the AWS tools.
  private static let paths = [
    "SANDBOXCTL_IDENTITY_FILE", "SANDBOXCTL_PASSPHRASE_FILE", "SANDBOXCTL_REPOSITORY",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
  ]
  private static let bucketPaths = [
    "AWS_CA_BUNDLE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
  ]
  /// Variables that choose the store of a bucket, without secrets.
  private static let bucketTexts = [
    "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_REGION",
  ]
  /// Variables with proxies, whose URLs may contain a password.
  private static let proxies =
    ["ALL_PROXY", "HTTPS_PROXY", "NO_PROXY"].flatMap {
      [$0, $0.lowercased()]
    } + ["http_proxy"]
  /// Variables with the keys of a store.
  private static let secrets = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]

  /// The variable with the command that prints the passphrase.
  static let passphraseCommand = "SANDBOXCTL_PASSPHRASE_COMMAND"

  /// The variables of a job, and those that it needs but that are omitted because they are, or may
  /// contain, secrets.
  struct Environment {
    private(set) var variables: [(name: String, value: String)] = []
    private(set) var secrets: [String] = []

    /// Reads the environment of this process.
    ///
    /// - Parameter location: the repository of the job; nil if it uses none.
    init(for location: RepositoryLocation?) throws(UsageError) {
      for name in paths { try add(name, isPath: true) }
      try add(passphraseCommand, isPath: false)
      guard case .s3(let bucket) = location else { return }
      for name in bucketPaths { try add(name, isPath: true) }
      for name in bucketTexts { try add(name, isPath: false) }
      for name in proxies where Host.environment(name) != nil {
        if Host.environment(name)?.bytes.contains(UInt8(ascii: "@")) == true {
          secrets.append(name)
        } else {
          try add(name, isPath: false)
        }
      }
      // A profile that is given for the repository overrides them.
      guard bucket.profile == nil else { return }
      secrets += ScheduledJob.secrets.filter { Host.environment($0) != nil }
    }

    /// Adds a variable, if it is set. A schedule runs in another directory, so a path that exists
    /// becomes absolute.
    private mutating func add(_ name: String, isPath: Bool) throws(UsageError) {
      guard let named = Host.environment(name) else { return }
      let value = isPath && !named.isAbsolute ? (try? Host.realPath(named)) ?? named : named
      guard let text = value.utf8 else {
        throw UsageError(
          .invalidInput, "'\(name)' is not UTF-8",
          hint: "a schedule can contain only UTF-8 text: change the value"
        )
      }
      variables.append((name, text))
    }

    /// Whether a variable of the job names the key of the repository.
    var namesKey: Bool {
      let names = [
        "SANDBOXCTL_IDENTITY_FILE", "SANDBOXCTL_PASSPHRASE_FILE", ScheduledJob.passphraseCommand,
      ]
      return variables.contains { names.contains($0.name) }
    }

    /// The warning about the variables that are omitted; nil if there are none.
    var warning: String? {
      if secrets.isEmpty { return nil }
      return
        "the schedule does not contain \(secrets.joined(separator: ", ")), which may be secret: "
        + "store the keys in ~/.aws/credentials, and a proxy's password where the job finds it"
    }
  }
}
