internal import ArgumentParser
internal import Interchange
internal import SystemIO

/// The password of an encrypted backup of another program. It is never an argument, which other
/// users can read in the list of processes.
struct BackupPasswordOptions: ParsableArguments {
  @Flag(help: "Ask for the backup's password on the terminal.")
  var password = false

  @Option(
    help: ArgumentHelp("A file with the backup's password.", valueName: "file"),
    completion: .file())
  var passwordFile: ByteString?

  @Option(
    help: ArgumentHelp("A shell command that prints the backup's password.", valueName: "command"))
  var passwordCommand: ByteString?

  func validate() throws {
    let given = [
      password ? "--password" : nil, passwordFile.map { _ in "--password-file" },
      passwordCommand.map { _ in "--password-command" },
    ].compactMap(\.self)
    try ValidationError.requireAtMostOne(of: given)
  }
}

extension BackupPasswordOptions {
  /// The source of the password; nil if no option names one.
  private var input: PassphraseInput? {
    if password { return .terminal }
    if let passwordFile { return .file(passwordFile) }
    return passwordCommand.map { .command($0) }
  }

  /// Reads the password that the options name; nil for none.
  ///
  /// - Parameters:
  ///   - path: the path of the backup.
  ///   - isNew: whether the backup is written.
  func read(
    of path: ByteString, isNew: Bool = false, _ console: Console
  ) throws -> BackupPassword? {
    try input?.readPassword(of: path, isNew: isNew, console)
  }

  /// Runs the reading of a backup. The error for an encrypted one names the options.
  static func namingOptions<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as InterchangeError where error.kind == .keyRequired {
      throw InterchangeError(
        .keyRequired, error.action, subject: error.subject, reason: error.reason,
        hint: "add '--password-file FILE', '--password-command COMMAND' or '--password'")
    }
  }
}

extension Console {
  /// Warns that a password was given for a backup that is not encrypted.
  func warnOfUnused(_ password: BackupPassword?, isEncrypted: Bool, of path: ByteString) {
    guard password != nil, !isEncrypted else { return }
    warning("'\(path)' is not encrypted: its password was not used")
  }
}
