import Foundation
import SystemIO
import TestSupport
import Testing

/// `init` of encrypted repositories: passphrases, recipients and the recovery key.
struct EncryptedInitTests {
  private let keys: KeyFixture

  init() throws { keys = try KeyFixture(hasRepository: false) }

  private var cli: CommandLine { keys.cli }

  private func settings() throws -> [String: Any] {
    let text = try cli.directory.read("repo/repository.json")
    return try CommandLine.object(String(decoding: text, as: UTF8.self))
  }

  private func isOpened(_ options: String) throws -> Bool {
    try keys.run("snapshots --repo repo \(options)").code == 0
  }

  private func keyFiles() throws -> [ByteString] { try cli.names(in: "repo/keys") }

  // MARK: - Passphrases

  @Test func passphraseFileEncrypts() throws {
    let output = try cli.succeed("init repo --passphrase-file old")
    let key = try #require(output.firstMatch(of: /AGE-SECRET-KEY-1[A-Z0-9]+/)).output
    #expect(output.contains("in ./repo, encrypted with a passphrase\n"), "\(output)")
    #expect(output.components(separatedBy: key).count == 2, "the recovery key is printed once")
    #expect(try settings()["encryption"] as? String == "age")
    let recipients = try settings()["recipients"] as? [String]
    #expect(recipients?.count == 1)
    #expect(try keyFiles().count == 1)
    #expect(try isOpened("--passphrase-file old"))
    try keys.write(String(key) + "\n", to: "printed")
    #expect(try isOpened("--identity printed"))
  }

  @Test func passphraseCommandEncrypts() throws {
    let outcome = try keys.run(
      ["init", "repo", "--passphrase-command", "cat old", "--recovery-key", "recovery.key"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.errors.contains("the recovery key is in 'recovery.key': move it"))
    #expect(outcome.errors.contains("if both are lost, nobody can"))
    #expect(try isOpened("--passphrase-file old"))
    #expect(try isOpened("--identity recovery.key"))
    try keys.expectNoSecrets()
  }

  @Test func environmentEncrypts() throws {
    let environment = ["SANDBOXCTL_PASSPHRASE_FILE": "old"]
    #expect(
      try keys.run(["init", "repo", "--recovery-key", "recovery.key"], environment: environment)
        .code == 0)
    #expect(try isOpened("--passphrase-file old"))
    #expect(try keys.run(["init", "plain", "--plain"], environment: environment).code == 0)
    #expect(try cli.names(in: "plain/keys").isEmpty)
  }

  @Test func passphraseIsAskedForTwice() throws {
    let questions = [["New passphrase: ", KeyFixture.old], ["The same again: ", KeyFixture.old]]
    let outcome = try keys.type(
      questions, into: "init repo --passphrase --recovery-key recovery.key")
    #expect(outcome.code == 0, "\(outcome.output)")
    #expect(try isOpened("--passphrase-file old"))
    try keys.expectNoSecrets()
  }

  /// Encryption is the default answer, for which an empty line is sufficient.
  @Test func encryptionIsSuggested() throws {
    let questions = [
      ["[Y/n] ", ""], ["New passphrase: ", KeyFixture.old], ["The same again: ", KeyFixture.old],
    ]
    let outcome = try keys.type(questions, into: "init repo --recovery-key recovery.key")
    #expect(outcome.code == 0, "\(outcome.output)")
    #expect(try settings()["encryption"] as? String == "age")
    #expect(try isOpened("--passphrase-file old"))
    try keys.expectNoSecrets()
  }

  @Test(arguments: [
    ([KeyFixture.old, KeyFixture.new], "the two passphrases differ"), ([""], "it is empty"),
  ])
  func uncertainPassphraseCreatesNothing(_ typed: [String], _ reason: String) throws {
    let questions = zip(["New passphrase: ", "The same again: "], typed).map { [$0, $1] }
    let outcome = try keys.type(
      questions, into: "init repo --passphrase --recovery-key recovery.key")
    #expect(outcome.code == 1 && outcome.output.contains(reason), "\(outcome.output)")
    #expect(try !cli.isThere("repo") && !cli.isThere("recovery.key"))
    try keys.expectNoSecrets()
  }

  // MARK: - The recovery key

  @Test func recoveryKeyFileIsPrivateAndNew() throws {
    try keys.succeed("init repo --passphrase-file old --recovery-key recovery.key --json")
    let status = try cli.directory.directory.status("recovery.key")
    #expect(status.permissions == 0o600)
    let before = try cli.directory.read("recovery.key")
    let outcome = try keys.run("init next --passphrase-file old --recovery-key recovery.key")
    let message = "cannot create 'recovery.key': it already exists"
    #expect(outcome.code == 1 && outcome.errors.contains(message), "\(outcome.errors)")
    #expect(outcome.errors.contains("name a new file"), "\(outcome.errors)")
    #expect(try cli.directory.read("recovery.key") == before)
    #expect(try !cli.isThere("next/repository.json"))
    try keys.expectNoSecrets()
  }

  @Test func impossibleRecoveryKeyCreatesNothing() throws {
    let rows: [(file: String, code: Int32)] = [("repo/recovery.key", 2), ("nowhere/x.key", 1)]
    for (file, code) in rows {
      let outcome = try keys.run("init repo --passphrase-file old --recovery-key \(file)")
      #expect(outcome.code == code, "\(outcome.errors)")
      #expect(try !cli.isThere("repo/repository.json"))
    }
    try cli.directory.write("mine", at: "full/mine")
    #expect(try keys.run("init full --passphrase-file old --recovery-key recovery.key").code == 1)
    #expect(try !cli.isThere("recovery.key"), "no key of a repository that does not exist")
  }

  /// Files are limited to 8 KiB, which suffices for the recovery key but not for the repository.
  @Test func recoveryKeyOfNoRepositoryIsRemoved() throws {
    let limited = ["bash", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""]
    let line = "init repo --passphrase-file old --recovery-key recovery.key"
    let outcome = try cli.run(line, under: limited)
    #expect(outcome.code == 1 && outcome.errors.contains("it is larger than"), "\(outcome.errors)")
    #expect(try !cli.isThere("recovery.key") && !cli.isThere("repo/repository.json"))
    // A file that was there before is not written to.
    try keys.write("mine", to: "recovery.key")
    #expect(try cli.run("init next --passphrase-file old --recovery-key recovery.key").code == 1)
    #expect(try cli.directory.read("recovery.key") == Array("mine".utf8))
  }

  /// The home directory may be full or read-only. The repository exists by then, and its recovery
  /// key is shown only once.
  @Test func recoveryKeyIsShownAlthoughTheRecipientsCannotBeRecorded() throws {
    try cli.directory.write("no directory", at: "data")
    let outcome = try cli.run(
      ["init", "repo", "--passphrase-file", "old", "--no-default"],
      environment: ["XDG_DATA_HOME": cli.directory.string + "/data"])
    #expect(outcome.code == 0, "\(outcome)")
    #expect(outcome.errors.contains("cannot record the recipients"), "\(outcome.errors)")
    #expect(outcome.output.contains("AGE-SECRET-KEY-1"), "\(outcome)")
    #expect(try isOpened("--passphrase-file old"))
  }

  /// A recovery key that nobody receives would be lost, so no repository is created.
  @Test(arguments: ["exec >/dev/full", "exec >&-", "mkfifo out; exec 3<>out >out 3>&-"])
  func lostRecoveryKeyCreatesNothing(_ output: String) throws {
    let line = "init repo --passphrase-file old --no-default"
    let outcome = try cli.run(line, under: ["bash", "-c", "\(output); exec \"$0\" \"$@\""])
    #expect(outcome.code == 1, "\(outcome)")
    #expect(outcome.errors.contains("error: cannot print the recovery key: "), "\(outcome.errors)")
    #expect(outcome.errors.contains("'--recovery-key FILE'"), "\(outcome.errors)")
    #expect(try cli.names(in: "repo").isEmpty)
    // The empty directory does not prevent another attempt.
    #expect(try cli.run(line).code == 0)
  }

  /// A signal leaves neither a partial repository nor a key without a repository.
  @Test(.enabled(if: Strace.isPermitted), arguments: ["INT", "TERM"])
  func interruptedInitLeavesNothing(_ signal: String) throws {
    let strace = [
      "strace", "-f", "-qq", "-o", "trace", "-e", "trace=mkdirat", "-e",
      "inject=mkdirat:signal=\(signal):when=100",
    ]
    for options in ["--plain", "--passphrase-file old --recovery-key recovery.key"] {
      let line = "init repo --no-default \(options)"
      let outcome = try cli.run(line + " --json", under: strace)
      #expect(outcome.code == 130 && outcome.output.isEmpty, "\(outcome)")
      let last = try #require(outcome.errors.split(separator: "\n").last)
      #expect(try CommandLine.object(last)["code"] as? String == "interrupted", "\(last)")
      #expect(try cli.names(in: "repo").isEmpty && !cli.isThere("recovery.key"))
      #expect(try cli.run(line).code == 0)
      try cli.directory.directory.removeTree("repo")
    }
  }

  /// `head -1` shows it, too.
  @Test func recoveryKeyIsTheFirstLine() throws {
    let output = try cli.succeed("init repo --passphrase-file old --no-default")
    #expect(output.hasPrefix("AGE-SECRET-KEY-1"), "\(output)")
    #expect(output.contains("\ncreated repository "), "\(output)")
  }

  /// The repository needs more than 8 KiB in a file.
  @Test func printedRecoveryKeyOfNoRepositoryIsNamed() throws {
    let limited = ["bash", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""]
    let outcome = try cli.run("init repo --passphrase-file old", under: limited)
    #expect(outcome.code == 1 && outcome.output.hasPrefix("AGE-SECRET-KEY-1"), "\(outcome)")
    #expect(outcome.errors.contains("the recovery key above opens nothing"), "\(outcome.errors)")
    #expect(try !cli.isThere("repo/repository.json"))
  }

  /// A secret is never part of JSON, and `--quiet` prints nothing.
  @Test(arguments: ["--json", "--quiet"])
  func unseenRecoveryKeyIsRefused(_ option: String) throws {
    let outcome = try keys.run("init repo --passphrase-file old \(option)")
    #expect(outcome.code == 2 && outcome.errors.contains("--recovery-key FILE"))
    #expect(try !cli.isThere("repo"))
    try keys.succeed("init repo --passphrase-file old --recovery-key recovery.key \(option)")
    try keys.expectNoSecrets()
  }

  // MARK: - Recipients

  @Test func recipientsAloneMakeAHostThatOnlyWrites() throws {
    try keys.succeed("init first --passphrase-file old --recovery-key recovery.key --no-default")
    let recipient = try keys.succeed("key show-recipient --repo first")
      .trimmingCharacters(in: .newlines)
    let outcome = try keys.run("init repo --recipient \(recipient)")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("encrypted for 1 recipient\nrecipient \(recipient)\n"))
    #expect(outcome.errors.contains("this host can write backups but cannot read them"))
    #expect(!outcome.output.contains("AGE-SECRET-KEY"))
    #expect(try settings()["recipients"] as? [String] == [recipient])
    #expect(try keyFiles().isEmpty)
    #expect(try isOpened("--identity recovery.key"))
  }

  @Test func passphraseAndRecipientsAreCombined() throws {
    try keys.succeed("init first --passphrase-file old --recovery-key recovery.key --no-default")
    let recipient = try keys.succeed("key show-recipient --repo first")
    try cli.directory.write("# of the first\n\n" + recipient, at: "recipients")
    let line = "init repo --passphrase-file new --recovery-key own.key --recipients-file recipients"
    let made = try CommandLine.object(try keys.succeed(line + " --json"))
    let recipients = try #require(made["recipients"] as? [String])
    #expect(made["encryption"] as? String == "age" && made["recovery_key"] == nil)
    #expect(recipients.count == 2)
    #expect(recipients[1] == recipient.trimmingCharacters(in: .newlines))
    for option in ["--passphrase-file new", "--identity own.key", "--identity recovery.key"] {
      #expect(try isOpened(option), "\(option)")
    }
    try keys.expectNoSecrets()
  }

  /// The options of a passphrase have defaults in the environment, even if recipients are given.
  @Test(arguments: [
    ("SANDBOXCTL_PASSPHRASE_FILE", "old"), ("SANDBOXCTL_PASSPHRASE_COMMAND", "cat old"),
  ])
  func passphraseOfTheEnvironmentIsUsedBesideRecipients(_ name: String, _ value: String) throws {
    try keys.succeed("init first --passphrase-file new --recovery-key recovery.key --no-default")
    let recipient = try keys.succeed("key show-recipient --repo first")
      .trimmingCharacters(in: .newlines)
    let words = ["init", "repo", "--recipient", recipient]
    let unseen = try keys.run(words + ["--json"], environment: [name: value])
    #expect(unseen.code == 2 && unseen.errors.contains("--recovery-key FILE"))
    let outcome = try keys.run(words + ["--recovery-key", "own.key"], environment: [name: value])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.errors.contains("passphrase that $\(name) names is used as well"))
    #expect(try settings()["recipients"] as? [String] == [keys.recipient("own.key"), recipient])
    for option in ["--passphrase-file old", "--identity own.key", "--identity recovery.key"] {
      #expect(try isOpened(option), "\(option)")
    }
    try keys.expectNoSecrets()
  }

  @Test func unusableRecipientsAreRefused() throws {
    try keys.succeed("init first --passphrase-file old --recovery-key recovery.key --no-default")
    let secret = try keys.recoveryKey()
    for word in ["age1", "ssh-ed25519", "AGE", secret] {
      let outcome = try keys.run(["init", "repo", "--recipient", word])
      #expect(outcome.code == 2, "\(outcome.errors)")
    }
    for text in ["", "# nothing\n", "age1\n", "\u{1}\n", secret] {
      try cli.directory.write(text, at: "recipients")
      #expect(try keys.run("init repo --recipients-file recipients").code == 1)
    }
    #expect(try !cli.isThere("repo"))
    try keys.expectNoSecrets()
  }

  // MARK: - Options

  @Test(arguments: [
    "--plain --passphrase-file old", "--plain --passphrase", "--plain --recipients-file r",
    "--passphrase --passphrase-file old", "--plain --recovery-key k",
    "--recipients-file r --recovery-key k",
  ])
  func conflictingOptionsAreRefused(_ options: String) throws {
    let outcome = try keys.run("init repo \(options) --json")
    #expect(outcome.code == 2 && outcome.errors.contains("options_conflict"), "\(outcome.errors)")
    #expect(try !cli.isThere("repo"))
  }

  @Test func withoutATerminalNothingIsAsked() throws {
    let outcome = try keys.run("init repo --passphrase")
    #expect(outcome.code == 2 && outcome.errors.contains("--passphrase-file FILE"))
    #expect(try !cli.isThere("repo"))
  }

  /// The command line chooses one of several ways, whatever the configuration chooses.
  @Test func commandLinePrecedesConfiguration() throws {
    let file: ByteString = "home/.config/sandboxctl/config.yaml"
    try cli.directory.write("passphrase-file: \(cli.directory.string)/old\n", at: file)
    #expect(try keys.succeed("init plain --plain --no-default").contains("not encrypted"))
    try keys.succeed("init repo --recovery-key recovery.key --no-default")
    #expect(try isOpened("--identity recovery.key"))
    #expect(try keys.run("snapshots --repo repo --passphrase-file new").code == 12)
  }
}
