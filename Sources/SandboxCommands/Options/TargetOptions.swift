internal import ArgumentParser
internal import RemoteStorage
internal import SystemIO

/// The key of the repository that a command copies into, if it differs from the source's.
struct TargetKeyOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A file with the passphrase of the other repository (default: the key of the source).",
      valueName: "file"),
    completion: .file())
  var toPassphraseFile: ByteString?

  @Option(
    help: ArgumentHelp(
      "A shell command that prints the passphrase of the other repository.", valueName: "command"))
  var toPassphraseCommand: ByteString?

  @Option(
    help: ArgumentHelp(
      "A file with an age identity of the other repository.", valueName: "file"),
    completion: .file())
  var toIdentity: ByteString?

  func validate() throws {
    let given = [
      toPassphraseFile.map { _ in "--to-passphrase-file" },
      toPassphraseCommand.map { _ in "--to-passphrase-command" },
      toIdentity.map { _ in "--to-identity" },
    ].compactMap(\.self)
    try ValidationError.requireAtMostOne(of: given)
  }

  /// The options for the other repository; nil if they name no key.
  var options: KeyOptions? {
    guard toPassphraseFile != nil || toPassphraseCommand != nil || toIdentity != nil else {
      return nil
    }
    var options = KeyOptions()
    options.passphraseFile = toPassphraseFile
    options.passphraseCommand = toPassphraseCommand
    options.identity = toIdentity
    return options
  }
}

/// The connection to the repository after `--to`, as far as it differs from that of the source.
struct TargetRemoteOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The command that connects to the SFTP server of the other repository (default: that of "
        + "--ssh-command).",
      valueName: "command"))
  var toSshCommand: ByteString?

  @Option(
    help: ArgumentHelp(
      "The server of the other repository's S3 bucket. Without an option for that bucket, those of "
        + "the source apply to it.",
      valueName: "url"))
  var toS3Endpoint: String?

  @Option(help: ArgumentHelp("The region of the other bucket.", valueName: "region"))
  var toS3Region: String?

  @Option(
    help: ArgumentHelp(
      "The profile with the keys of the other bucket in ~/.aws/credentials.", valueName: "name"))
  var toS3Profile: String?

  @Flag(help: "Put the other bucket's name in the URL path instead of the host name.")
  var toS3PathStyle = false

  func validate() throws {
    try RemoteOptions.check(sshCommand: toSshCommand, of: "--to-ssh-command")
    try RemoteOptions.check(s3Endpoint: toS3Endpoint, of: "--to-s3-endpoint")
  }

  /// Returns the options of the connection to the other repository.
  ///
  /// The options of a bucket belong together: a region or a profile of the source's store means
  /// nothing in another one. So if the other repository has one of its own, none of the source's is
  /// used for it. The limits apply to both.
  func options(besides source: RemoteOptions) -> RemoteOptions {
    var options = own
    options.connections = source.connections
    (options.limitUpload, options.limitDownload) = (source.limitUpload, source.limitDownload)
    options.sshCommand = toSshCommand ?? source.sshCommand
    if toS3Endpoint != nil || toS3Region != nil || toS3Profile != nil || toS3PathStyle {
      return options
    }
    (options.s3Endpoint, options.s3Region) = (source.s3Endpoint, source.s3Region)
    (options.s3Profile, options.s3PathStyle) = (source.s3Profile, source.s3PathStyle)
    return options
  }

  /// The options that are given, without those of the source.
  private var own: RemoteOptions {
    var options = RemoteOptions()
    options.connections = nil
    (options.limitUpload, options.limitDownload) = (nil, nil)
    options.sshCommand = toSshCommand
    (options.s3Endpoint, options.s3Region) = (toS3Endpoint, toS3Region)
    (options.s3Profile, options.s3PathStyle) = (toS3Profile, toS3PathStyle)
    return options
  }

  /// Returns the options needed to reach the other repository, as words for a suggested command
  /// with `--to` that has the source's options, as far as its location needs them.
  func words(
    for location: RepositoryLocation, besides source: RemoteOptions,
    of sourceLocation: RepositoryLocation
  ) -> [String] {
    let words = own.words(for: location, prefix: "--to-")
    // Those of the source apply to both if they are repeated.
    let areRepeated = source.words(for: location) == source.words(for: sourceLocation)
    if !words.isEmpty || areRepeated { return words }
    return options(besides: source).words(for: location, prefix: "--to-")
  }
}
