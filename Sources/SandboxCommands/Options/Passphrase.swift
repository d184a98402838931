internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// A place from which a passphrase is read.
enum PassphraseInput: Hashable, Sendable {
  case file(ByteString)
  /// A command of the shell, which prints it.
  case command(ByteString)
  /// The terminal, which does not show it.
  case terminal

  /// The environment variable that names such a place; nil for the terminal.
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
    let passphrase = try read(console) { try Self.ask("Passphrase of '\(location)': ", console) }
    if passphrase == nil, self != .terminal { throw failure(.invalidInput, "it is empty") }
    return passphrase
  }

  /// Reads a new passphrase. On the terminal it is asked for twice.
  func readNew(_ console: Console) throws -> AgePassphrase {
    if let passphrase = try read(console, asking: { try Self.askTwice(console) }) {
      return passphrase
    }
    throw failure(.invalidInput, "it is empty")
  }

  /// Returns nil for an empty passphrase.
  private func read(
    _ console: Console, asking ask: () throws -> [UInt8]
  ) throws -> AgePassphrase? {
    Host.disableCoreDumps()
    var bytes: [UInt8] = []
    defer { bytes.wipe() }
    switch self {
    case .file(let path):
      bytes = try SecretFile.read(path, holding: "passphrase", limit: Self.limit, console)
    case .command(let command): try run(command, writingTo: &bytes)
    case .terminal: bytes = try ask()
    }
    if self != .terminal { Self.removeNewline(&bytes) }
    if bytes.isEmpty { return nil }
    do throws(AgeError) {
      return try AgePassphrase(bytes.span)
    } catch {
      throw failure(.invalidInput, error.reason)
    }
  }

  /// Returns the error for a passphrase that cannot be read. The command is not quoted: it may
  /// contain the passphrase.
  private func failure(_ code: ErrorCode, _ reason: String, hint: String? = nil) -> OperationError {
    let action = "read the passphrase from"
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
  private func run(_ command: ByteString, writingTo bytes: inout [UInt8]) throws {
    let code = try ChildProgram.run(shell: command, limit: Self.limit + 1, writingTo: &bytes)
    guard bytes.count <= Self.limit else {
      throw failure(
        .limitExceeded, "it prints more than 64 KiB", hint: "check that it is the right command")
    }
    guard code == 0 else {
      throw failure(
        .programFailed, "it ended with status \(code)",
        hint: "run it by itself: it must print the passphrase and end with status 0")
    }
  }

  // MARK: - The terminal

  private static func ask(_ question: String, _ console: Console) throws -> [UInt8] {
    guard console.canAsk else {
      throw UsageError(
        .terminalRequired, "cannot ask for a passphrase without a terminal",
        hint: "use '--passphrase-file FILE' or '--passphrase-command COMMAND'")
    }
    try console.flush()
    return try Terminal.askSecret(question)
  }

  private static func askTwice(_ console: Console) throws -> [UInt8] {
    var first = try ask("New passphrase: ", console)
    if first.isEmpty { return first }
    var second: [UInt8]
    do {
      second = try ask("The same again: ", console)
    } catch {
      first.wipe()
      throw error
    }
    defer { second.wipe() }
    if first == second { return first }
    first.wipe()
    throw PassphraseInput.terminal.failure(
      .invalidInput, "the two passphrases differ", hint: "run the command again")
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
    // One buffer for all, so that no part of the secret is in another one that is not wiped.
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
      "A file with the new passphrase (default: it is asked for twice).", valueName: "file"),
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

  /// Returns the place from which the new passphrase is read.
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
