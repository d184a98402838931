internal import ArgumentParser
internal import RemoteStorage
internal import SystemIO

/// The connection to a repository on another host or in a bucket.
struct RemoteOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The number of concurrent transfers, 1 to 64 (default: 5).",
      valueName: "number"))
  var connections: Int?

  @Option(
    help: ArgumentHelp("The upload limit in bytes per second, such as 500K.", valueName: "rate"))
  var limitUpload: ByteSize?

  @Option(
    help: ArgumentHelp("The download limit in bytes per second.", valueName: "rate"))
  var limitDownload: ByteSize?

  @Option(
    help: ArgumentHelp(
      "The command that connects to an SFTP server, with its arguments (default: ssh).",
      valueName: "command"))
  var sshCommand: ByteString?

  @Option(
    help: ArgumentHelp(
      "The server of an S3 bucket, such as https://host:9000 (default: AWS).", valueName: "url"))
  var s3Endpoint: String?

  @Option(help: ArgumentHelp("The region of an S3 bucket.", valueName: "region"))
  var s3Region: String?

  @Option(
    help: ArgumentHelp("The profile with the keys in ~/.aws/credentials.", valueName: "name"))
  var s3Profile: String?

  @Flag(help: "Put the bucket name in the URL path instead of the host name.")
  var s3PathStyle = false

  func validate() throws {
    if let connections, !(1...64).contains(connections) {
      throw ValidationError("'\(connections)' is not a number of connections: give 1 to 64.")
    }
    for (name, rate) in [("--limit-upload", limitUpload), ("--limit-download", limitDownload)]
    where rate?.bytes == 0 {
      throw ValidationError("'\(name) 0' would transfer nothing: omit it for no limit.")
    }
    try Self.check(sshCommand: sshCommand, of: "--ssh-command")
    try Self.check(s3Endpoint: s3Endpoint, of: "--s3-endpoint")
  }

  /// Refuses the value of an option that is not a command.
  static func check(sshCommand: ByteString?, of option: String) throws {
    if let sshCommand, CommandWords.split(sshCommand) == nil {
      throw ValidationError(
        "The value of '\(option)' is not a command: it is empty, or a quote is not closed.")
    }
  }

  /// Refuses the value of an option that is not a server.
  static func check(s3Endpoint: String?, of option: String) throws {
    if let s3Endpoint, let fault = S3Location.endpointFault(s3Endpoint) {
      // The text may contain a key, so it is not shown.
      throw ValidationError(
        "The value of '\(option)' is not a server: \(fault). Write 'https://host:port'.")
    }
  }
}

extension RemoteOptions {
  /// The settings of the connection.
  var settings: ConnectionSettings {
    var settings = ConnectionSettings()
    if let connections { settings.connections = connections }
    settings.uploadRate = limitUpload.map { UInt64($0.bytes) }
    settings.downloadRate = limitDownload.map { UInt64($0.bytes) }
    if let sshCommand { settings.sshCommand = CommandWords.split(sshCommand) ?? [] }
    (settings.s3Endpoint, settings.s3Region, settings.s3Profile) = (s3Endpoint, s3Region, s3Profile)
    if s3PathStyle { settings.s3PathStyle = true }
    return settings
  }

  /// The options as words, for a scheduled job.
  var words: [String] { words(prefix: "--") { _ in true } }

  /// The options needed to reach a repository, as words for a suggested command. Limits and the
  /// number of connections apply only to the command that they were given to.
  func words(for location: RepositoryLocation?, prefix: String = "--") -> [String] {
    switch location {
    case .s3: words(prefix: prefix) { $0.hasPrefix("s3-") }
    case .sftp: words(prefix: prefix) { $0 == "ssh-command" }
    case .local, nil: []
    }
  }

  private func words(
    prefix: String, where isSelected: (_ name: String) -> Bool
  ) -> [String] {
    let words = values.filter { isSelected($0.name) }.flatMap { [prefix + $0.name, $0.value] }
    return s3PathStyle && isSelected("s3-path-style") ? words + [prefix + "s3-path-style"] : words
  }

  /// The names and values of the given options, except flags.
  var values: [(name: String, value: String)] {
    let values = [
      ("connections", connections.map { "\($0)" }),
      ("limit-upload", limitUpload.map { "\($0.bytes)" }),
      ("limit-download", limitDownload.map { "\($0.bytes)" }),
      ("ssh-command", sshCommand?.argument),
      ("s3-endpoint", s3Endpoint), ("s3-region", s3Region), ("s3-profile", s3Profile),
    ]
    return values.compactMap { name, value in value.map { (name, $0) } }
  }
}
