internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SystemIO

/// A source from which a passphrase is read.
enum PassphraseInput: Hashable, Sendable {
  case file(ByteString)
  /// A command of the shell, which prints it.
  case command(ByteString)
  /// The terminal, which does not show it.
  case terminal

  /// The environment variable that names such a source; nil for the terminal.
  var variable: String? {
    switch self {
    case .file: "SANDBOXCTL_PASSPHRASE_FILE"
    case .command: "SANDBOXCTL_PASSPHRASE_COMMAND"
    case .terminal: nil
    }
  }

  /// The maximum size of a passphrase with its newline, in bytes.
  private static let limit = 64 << 10

  /// Reads the passphrase of a repository; nil if nothing is typed on the terminal.
  ///
  /// - Parameter location: the repository's location, which the question names.
  func read(of location: String, _ console: Console) throws -> AgePassphrase? {
    let passphrase = try read(console) {
      try Self.ask("Passphrase of '\(location)': ", for: .passphrase, console)
    }
    if passphrase == nil, self != .terminal { throw failure(.invalidInput, "it is empty") }
    return passphrase
  }

  /// Reads a new passphrase. On the terminal it is asked for twice.
  func readNew(_ console: Console) throws -> AgePassphrase {
    if let passphrase = try read(console, asking: { try Self.askTwice(for: .passphrase, console) })
    {
      return passphrase
    }
    throw failure(.invalidInput, "it is empty")
  }

  /// Reads the password of a backup of another program; nil if nothing is typed on the terminal.
  ///
  /// - Parameters:
  ///   - path: the path of the backup, which the question names.
  ///   - isNew: whether the backup is written: on the terminal the password is asked for twice, and
  ///     nothing is an error.
  func readPassword(
    of path: ByteString, isNew: Bool, _ console: Console
  ) throws -> BackupPassword? {
    var bytes = try readBytes(.password, console) {
      isNew
        ? try Self.askTwice(for: .password, console)
        : try Self.ask("Password of '\(path)': ", for: .password, console)
    }
    defer { bytes.wipe() }
    if !bytes.isEmpty { return BackupPassword(SecretBytes(copying: bytes.span)) }
    if isNew || self != .terminal { throw failure(.invalidInput, "it is empty", of: .password) }
    return nil
  }

  /// Returns nil for an empty passphrase.
  private func read(
    _ console: Console, asking ask: () throws -> [UInt8]
  ) throws -> AgePassphrase? {
    var bytes = try readBytes(.passphrase, console, asking: ask)
    defer { bytes.wipe() }
    if bytes.isEmpty { return nil }
    do throws(AgeError) {
      return try AgePassphrase(bytes.span)
    } catch {
      throw failure(.invalidInput, error.reason)
    }
  }

  /// Reads a secret, which the caller wipes.
  private func readBytes(
    _ secret: Secret, _ console: Console, asking ask: () throws -> [UInt8]
  ) throws -> [UInt8] {
    Host.disableCoreDumps()
    var bytes: [UInt8] = []
    do {
      switch self {
      case .file(let path):
        bytes = try readFile(path, of: secret, console)
      case .command(let command): try run(command, of: secret, writingTo: &bytes)
      case .terminal: bytes = try ask()
      }
    } catch {
      bytes.wipe()
      throw error
    }
    if self != .terminal { Self.removeNewline(&bytes) }
    return bytes
  }

  /// Reads a file. The advice for other pipes, to save their output, is none for a secret.
  private func readFile(
    _ path: ByteString, of secret: Secret, _ console: Console
  ) throws -> [UInt8] {
    do {
      return try SecretFile.read(path, holding: secret.rawValue, limit: Self.limit, console)
    } catch let error as SystemError where error.isNoFile {
      throw failure(
        error.code, error.reason, of: secret,
        hint: "give a regular file, or '--\(secret.rawValue)-command COMMAND', which prints it")
    }
  }

  /// A kind of secret that is read from such a source.
  private enum Secret: String {
    /// That of a repository's key.
    case passphrase
    /// That of a backup of another program.
    case password
  }

  /// Returns the error for a secret that cannot be read. The command is not quoted: it may contain
  /// the secret.
  private func failure(
    _ code: ErrorCode, _ reason: String, of secret: Secret = .passphrase, hint: String? = nil
  ) -> OperationError {
    let action = "read the \(secret.rawValue) from"
    return switch self {
    case .file(let path):
      OperationError(.failed, code: code, action, subject: path, reason: reason, hint: hint)
    case .command:
      OperationError(.failed, code: code, "\(action) the command", reason: reason, hint: hint)
    case .terminal:
      OperationError(.failed, code: code, "\(action) the terminal", reason: reason, hint: hint)
    }
  }

  /// Removes one newline at the end, `\n` or `\r\n`.
  private static func removeNewline(_ bytes: inout [UInt8]) {
    guard bytes.last == UInt8(ascii: "\n") else { return }
    bytes.removeLast()
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
  }

  /// Runs the command. One that prints too much is ended by the closed pipe.
  private func run(
    _ command: ByteString, of secret: Secret, writingTo bytes: inout [UInt8]
  ) throws {
    let code = try ChildProgram.run(shell: command, limit: Self.limit + 1, writingTo: &bytes)
    guard bytes.count <= Self.limit else {
      throw failure(
        .limitExceeded, "it prints more than 64 KiB", of: secret,
        hint: "check that it is the right command")
    }
    guard code == 0 else {
      throw failure(
        .programFailed, "it ended with status \(code)", of: secret,
        hint: "run it by itself: it must print the \(secret.rawValue) and end with status 0")
    }
  }

  // MARK: - The terminal

  private static func ask(
    _ question: String, for secret: Secret, _ console: Console
  ) throws -> [UInt8] {
    guard console.canAsk else {
      let word = secret.rawValue
      throw UsageError(
        .terminalRequired, "cannot ask for a \(word) without a terminal",
        hint: "use '--\(word)-file FILE' or '--\(word)-command COMMAND'")
    }
    try console.flush()
    return try Terminal.askSecret(question)
  }

  private static func askTwice(for secret: Secret, _ console: Console) throws -> [UInt8] {
    var first = try ask("New \(secret.rawValue): ", for: secret, console)
    if first.isEmpty { return first }
    var second: [UInt8]
    do {
      second = try ask("The same again: ", for: secret, console)
    } catch {
      first.wipe()
      throw error
    }
    defer { second.wipe() }
    if first == second { return first }
    first.wipe()
    throw PassphraseInput.terminal.failure(
      .invalidInput, "the two \(secret.rawValue)s differ", of: secret,
      hint: "run the command again")
  }
}

/// A file with a secret.
enum SecretFile {
  /// Returns the content of a regular file, which the caller wipes. A FIFO or a device is refused,
  /// because it could block. A file that other users can read is reported.
  ///
  /// - Parameters:
  ///   - secret: a noun for the content.
  ///   - limit: the maximum size in bytes.
  static func read(
    _ path: ByteString, holding secret: String, limit: Int, _ console: Console
  ) throws -> [UInt8] {
    let file = try Descriptor.open(path: path)
    if try file.status().permissions & 0o077 != 0 {
      console.warning(
        "other users may read the \(secret) in '\(path)': run 'chmod 600 \(ShellWord.text(path))'")
    }
    // A single buffer, so that no other one contains a part of the secret that is not wiped.
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    do {
      let count = try file.read(into: &bytes, from: 0, to: bytes.count, at: 0)
      guard count <= limit else {
        throw OperationError(
          .failed, code: .limitExceeded, "read the \(secret) from", subject: path,
          reason: "the file has more than \(ByteCount.text(UInt64(limit)))",
          hint: "check that it is the right file")
      }
      bytes.removeLast(bytes.count - count)
      return bytes
    } catch {
      bytes.wipe()
      throw error
    }
  }
}

/// The passphrase of a new key.
struct NewPassphraseOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A file with the new passphrase (default: prompt twice).", valueName: "file"),
    completion: .file())
  var newPassphraseFile: ByteString?

  @Option(help: ArgumentHelp("A command that prints the new passphrase.", valueName: "command"))
  var newPassphraseCommand: ByteString?

  func validate() throws {
    if newPassphraseFile != nil, newPassphraseCommand != nil {
      throw ValidationError(
        "'--new-passphrase-file' and '--new-passphrase-command' cannot be used together.")
    }
  }

  /// Returns the source from which the new passphrase is read.
  func input(_ console: Console) throws -> PassphraseInput {
    if let newPassphraseFile { return .file(newPassphraseFile) }
    if let newPassphraseCommand { return .command(newPassphraseCommand) }
    guard console.canAsk else {
      throw UsageError(
        .optionRequired, "there is no new passphrase",
        hint: "add '--new-passphrase-file FILE' or '--new-passphrase-command COMMAND'")
    }
    return .terminal
  }
}
