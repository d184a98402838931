import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// An encrypted repository `repo` with one key, its recovery key in `recovery.key`, and files with
/// passphrases: `old`, which opens it, and `new`.
///
/// All outcomes are recorded: none may contain a secret.
final class KeyFixture {
  let cli: CommandLine
  private(set) var shown = ""

  static let old = "correct horse battery"
  static let new = "staple of another stable"

  init(hasRepository: Bool = true) throws {
    cli = try CommandLine()
    try write(Self.old + "\n", to: "old")
    try write(Self.new + "\n", to: "new")
    try cli.directory.write("kept", at: "tree/kept")
    guard hasRepository else { return }
    let template = try Self.template.get()
    for name in ["repo", "recovery.key"] {
      try cli.directory.copy(name, of: template, to: name)
    }
  }

  /// A host with the repository, which all tests of the process copy: the program takes half a
  /// second of processor time to create the key for a passphrase, and the tests take the same to
  /// open it.
  private static let template = Result {
    let cli = try CommandLine(in: try TemporaryDirectory.shared("keys"))
    try cli.directory.write(old + "\n", at: "old")
    try cli.directory.directory.setPermissions(0o600, of: "old")
    _ = try cli.succeed(
      "init repo --passphrase-file old --recovery-key recovery.key --no-default")
    try makeKeysCheap(cli)
    return cli.directory
  }

  /// Encrypts the key files again with little work for scrypt: a command with a passphrase then
  /// takes milliseconds instead of half a second of a processor and 128 MiB.
  private static func makeKeysCheap(_ cli: CommandLine) throws {
    let passphrase = try AgePassphrase(Array(old.utf8).span)
    for name in try cli.names(in: "repo/keys") {
      let path = ByteString("repo/keys").appending(name)
      let stored = try cli.directory.read(path)
      let plain = try AgeFile(opening: stored.span, with: passphrase).decrypt(stored.span)
      let cheap = try AgeFile(for: passphrase, workFactor: 2).encrypt(plain.span)
      try cli.directory.write(cheap, at: path)
    }
  }

  /// Writes a file that only this user can read.
  func write(_ text: String, to name: ByteString) throws {
    try cli.directory.write(text, at: name)
    try cli.directory.directory.setPermissions(0o600, of: name)
  }

  /// Runs a command, and records its output.
  @discardableResult func run(
    _ words: [String], environment: [String: String] = [:]
  ) throws -> Program.Outcome {
    let outcome = try cli.run(words, environment: environment)
    shown += outcome.output + outcome.errors
    return outcome
  }

  @discardableResult func run(_ line: String) throws -> Program.Outcome {
    try run(line.split(separator: " ").map(String.init))
  }

  @discardableResult func succeed(_ line: String) throws -> String {
    let outcome = try run(line)
    guard outcome.code == 0 else {
      throw Program.Failure(description: "'\(line)' ended with \(outcome.code): \(outcome.errors)")
    }
    return outcome.output
  }

  /// Runs a command on a terminal, types each answer after its question, and records what the
  /// terminal shows.
  func type(_ answers: [[String]], into line: String) throws -> Program.Outcome {
    let outcome = try cli.run(
      line.split(separator: " ").map(String.init), under: ["python3", "-B", Self.typist],
      input: Array(try JSONEncoder().encode(answers)))
    shown += outcome.output + outcome.errors
    return outcome
  }

  private static let typist = Shared.packageRoot.appendingPathComponent(
    "Tests/CommandTests/Programs/type.py"
  ).path

  /// The text of the recovery key.
  func recoveryKey(in file: ByteString = "recovery.key") throws -> String {
    let text = String(decoding: try cli.directory.read(file), as: UTF8.self)
    let line = text.split(separator: "\n").last { $0.hasPrefix("AGE-SECRET-KEY-1") }
    return String(try #require(line))
  }

  /// The recipient of the recovery key in a file.
  func recipient(_ file: ByteString) throws -> String {
    let text = String(decoding: try cli.directory.read(file), as: UTF8.self)
    return String(try #require(text.firstMatch(of: /age1[a-z0-9]{58}/)).output)
  }

  /// Checks that no output contains a passphrase or the recovery key.
  func expectNoSecrets(_ location: SourceLocation = #_sourceLocation) throws {
    var secrets = [Self.old, Self.new]
    if try cli.isThere("recovery.key") { secrets.append(try recoveryKey()) }
    for secret in secrets { #expect(!shown.contains(secret), sourceLocation: location) }
  }
}
