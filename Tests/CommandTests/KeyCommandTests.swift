import Foundation
import SystemIO
import TestSupport
import Testing

/// `key` on the command line.
struct KeyCommandTests {
  private let keys: KeyFixture

  init() throws { keys = try KeyFixture() }

  private var cli: CommandLine { keys.cli }

  private func names() throws -> [String] {
    try keys.succeed("key list --repo repo --json").split(separator: "\n").map {
      try #require(CommandLine.object($0)["key"] as? String)
    }
  }

  private func code(_ options: String) throws -> Int32 {
    try keys.run("snapshots --repo repo \(options)").code
  }

  @Test func keysAreListedWithoutAPassphrase() throws {
    let lines = try keys.succeed("key list --repo repo").split(separator: "\n")
    #expect(lines.count == 2 && lines[0].hasPrefix("key "))
    #expect(try names().count == 1)
    for name in try cli.names(in: "repo/keys") {
      try cli.directory.directory.directory("repo").directory("keys").remove(name)
    }
    #expect(try keys.run("key list --repo repo").errors == "note: the repository has no keys\n")
    try keys.succeed("init plain --plain --no-default")
    #expect(
      try keys.run("key list --repo plain").errors == "note: the repository is not encrypted\n")
  }

  @Test func keyIsAdded() throws {
    let line = "key add nas --passphrase-file old --new-passphrase-file new --repo repo"
    #expect(try keys.succeed(line) == "added key 'nas'\n")
    #expect(try names().contains("nas") && names().count == 2)
    #expect(try code("--passphrase-file old") == 0)
    #expect(try code("--passphrase-file new") == 0)
    let again = try keys.run(line)
    #expect(again.code == 1 && again.errors.contains("a key with this name already exists"))
    for name in ["a/b", ".a", "ä"] {
      let outcome = try keys.run(
        [
          "key", "add", name, "--passphrase-file", "old", "--new-passphrase-file", "new", "--repo",
          "repo",
        ])
      #expect(outcome.code == 1 && outcome.errors.contains("not a valid name"))
    }
    try keys.expectNoSecrets()
  }

  @Test func passphraseIsChanged() throws {
    let line = "key change --passphrase-file old --new-passphrase-file new --repo repo"
    let name = try names()[0]
    #expect(try keys.succeed(line) == "changed key '\(name)'\n")
    #expect(try code("--passphrase-file old") == 12)
    #expect(try code("--passphrase-file new") == 0)
    #expect(try code("--identity recovery.key") == 0)
    try keys.succeed("key add nas --passphrase-file new --new-passphrase-file old --repo repo")
    let unnamed = try keys.run(line)
    #expect(unnamed.code == 2 && unnamed.errors.contains("has 2 keys"), "\(unnamed.errors)")
    try keys.expectNoSecrets()
  }

  @Test func newPassphraseIsAskedForTwice() throws {
    let questions = [
      ["Passphrase of 'repo': ", KeyFixture.old], ["New passphrase: ", KeyFixture.new],
      ["The same again: ", KeyFixture.new],
    ]
    let outcome = try keys.type(questions, into: "key change --repo repo")
    #expect(outcome.code == 0, "\(outcome.output)")
    #expect(try code("--passphrase-file new") == 0)
    try keys.expectNoSecrets()
  }

  /// The recovery key adds a key again after all were lost.
  @Test func recoveryKeyReplacesLostKeys() throws {
    let name = try #require(try cli.names(in: "repo/keys").first)
    try cli.directory.directory.directory("repo").directory("keys").remove(name)
    let outcome = try keys.run("snapshots --repo repo --passphrase-file old")
    #expect(outcome.code == 12)
    #expect(outcome.errors.contains("all key files are gone"))
    #expect(outcome.errors.contains("use the recovery key"))
    try keys.succeed("key add nas --identity recovery.key --new-passphrase-file new --repo repo")
    #expect(try code("--passphrase-file new") == 0)
  }

  @Test func keyIsRemovedUnlessItIsTheLast() throws {
    let first = try names()[0]
    let unknown = try keys.run("key remove \(first) --repo repo")
    #expect(unknown.code == 12, "\(unknown.errors)")
    let last = try keys.run("key remove \(first) --repo repo --identity recovery.key")
    #expect(last.code == 1 && last.errors.contains("it is the last key"), "\(last.errors)")
    try keys.succeed("key add nas --passphrase-file old --new-passphrase-file new --repo repo")
    let used = try keys.run("key remove \(first) --repo repo --passphrase-file old")
    #expect(used.code == 1 && used.errors.contains("whose passphrase was given"), "\(used.errors)")
    let removed = try keys.succeed("key remove \(first) --repo repo --passphrase-file new")
    #expect(removed == "removed key '\(first)'\n")
    #expect(try names() == ["nas"])
    #expect(try code("--passphrase-file old") == 12)
    #expect(try keys.run("key remove \(first) --repo repo --passphrase-file new").code == 1)
    #expect(try cli.names(in: "repo/leases").isEmpty)
  }

  @Test func changesNeedAKey() throws {
    for line in ["key add nas", "key change"] {
      let options = "--new-passphrase-file new --repo repo --json"
      let none = try keys.run("\(line) \(options)")
      #expect(none.code == 12 && none.errors.contains(#""code":"key_required""#), "\(none.errors)")
      let wrong = try keys.run("\(line) --passphrase-file new \(options)")
      #expect(wrong.code == 12 && wrong.errors.contains(#""code":"wrong_key""#), "\(wrong.errors)")
    }
    #expect(try keys.run("key add nas --passphrase-file old --repo repo").code == 2)
    #expect(try code("--passphrase-file old") == 0)
  }

  @Test func recipientsAreThoseThatNewRepositoriesAccept() throws {
    let recipients = try keys.succeed("key show-recipient --repo repo")
    #expect(recipients.wholeMatch(of: /age1[a-z0-9]{58}\n/) != nil, "\(recipients)")
    #expect(try keys.succeed("key show-recipient --repo repo --passphrase-file old") == recipients)
    try cli.directory.write(recipients, at: "recipients")
    try keys.succeed("init host --recipients-file recipients --no-default")
    #expect(try keys.succeed("key show-recipient --repo host") == recipients)
    #expect(try keys.run("snapshots --repo host --identity recovery.key").code == 0)
    try keys.succeed("init plain --plain --no-default")
    #expect(try keys.run("key show-recipient --repo plain").code == 1)
  }
}
