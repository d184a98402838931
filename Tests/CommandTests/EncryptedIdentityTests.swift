import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// Recovery keys that are encrypted with a passphrase, as by `age -p`. The passphrase is `new`, not
/// that of the repository.
struct EncryptedIdentityTests {
  private let keys: KeyFixture

  private static let command = "snapshots --repo repo --identity"

  /// Encrypts the recovery key: `key.age`, and `key.asc` with armor.
  init() throws {
    keys = try KeyFixture()
    let plain = try keys.cli.directory.read("recovery.key")
    let passphrase = try AgePassphrase(Array(KeyFixture.new.utf8).span)
    let encrypted = try AgeFile(for: passphrase, workFactor: 2).encrypt(plain.span)
    try write(encrypted, to: "key.age")
    try write(AgeArmor.encode(encrypted), to: "key.asc")
  }

  private func write(_ bytes: [UInt8], to name: ByteString) throws {
    try keys.cli.directory.write(bytes, at: name)
    try keys.cli.directory.directory.setPermissions(0o600, of: name)
  }

  private func run(
    identity: String, environment: [String: String] = [:]
  ) throws -> Program.Outcome {
    let words = Self.command.split(separator: " ").map(String.init) + [identity, "--json"]
    return try keys.run(words, environment: environment)
  }

  @Test(arguments: ["key.age", "key.asc"])
  func theEnvironmentHasThePassphrase(_ name: String) throws {
    for (variable, value) in [
      ("SANDBOXCTL_PASSPHRASE_FILE", "new"), ("SANDBOXCTL_PASSPHRASE_COMMAND", "cat new"),
    ] {
      let opened = try run(identity: name, environment: [variable: value])
      #expect(opened.code == 0, "\(variable): \(opened.errors)")
    }
    let wrong = try run(identity: name, environment: ["SANDBOXCTL_PASSPHRASE_FILE": "old"])
    #expect(wrong.code == 12 && wrong.errors.contains("\"wrong_key\""), "\(wrong.errors)")
    #expect(wrong.errors.contains("$SANDBOXCTL_PASSPHRASE_FILE"), "\(wrong.errors)")
    let none = try run(identity: name)
    #expect(none.code == 12 && none.errors.contains("\"key_required\""), "\(none.errors)")
    try keys.expectNoSecrets()
  }

  @Test func aTerminalAsksForThePassphrase() throws {
    let line = "\(Self.command) key.age"
    let question = "Passphrase of 'key.age': "
    #expect(try keys.type([[question, KeyFixture.new]], into: line).code == 0)
    #expect(try keys.type([[question, KeyFixture.old]], into: line).code == 12)
    #expect(try keys.type([[question, ""]], into: line).code == 12)
    try keys.expectNoSecrets()
  }

  /// Two repositories with the same key need one answer.
  @Test func aTerminalAsksOnce() throws {
    try keys.succeed(
      "backup --layout folder --root tree --repo repo --passphrase-file old --quiet")
    try keys.succeed("init other --recipient \(keys.recipient("recovery.key")) --no-default")
    let copied = try keys.type(
      [["Passphrase of 'key.age': ", KeyFixture.new]],
      into: "copy --repo repo --to other --identity key.age")
    #expect(copied.code == 0, "\(copied.output)\(copied.errors)")
    try keys.expectNoSecrets()
  }

  @Test func unusableFilesAreErrors() throws {
    let environment = ["SANDBOXCTL_PASSPHRASE_FILE": "new"]
    let passphrase = try AgePassphrase(Array(KeyFixture.new.utf8).span)
    let other = try AgeFile(for: [AgeIdentity().recipient]).encrypt(Array("text".utf8).span)
    let noKey = try AgeFile(for: passphrase, workFactor: 2).encrypt(Array("text\n".utf8).span)
    let cut = Array(try keys.cli.directory.read("key.age").dropLast())
    for (bytes, reason) in [
      (other, "it is encrypted for a recipient"), (noKey, "line 1: "), (cut, "\"action\""),
      (Array("-----BEGIN AGE ENCRYPTED FILE-----\n".utf8), "armor"),
    ] {
      try write(bytes, to: "given")
      let outcome = try run(identity: "given", environment: environment)
      #expect(outcome.code == 1 && outcome.errors.contains(reason), "\(outcome.errors)")
    }
  }
}
