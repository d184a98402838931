import Foundation
import SystemIO
import TestSupport
import Testing

/// The options that name the key of an encrypted repository, for all commands that open one.
struct KeyOptionTests {
  private let keys: KeyFixture

  /// Makes the repository with a backup.
  init() throws {
    keys = try KeyFixture()
    try keys.succeed("backup --layout folder --root tree --repo repo --passphrase-file old --quiet")
  }

  private var cli: CommandLine { keys.cli }

  private static let words = ["ls", "latest", "--repo", "repo"]

  private func open(
    _ options: [String] = [], environment: [String: String] = [:]
  ) throws -> Program.Outcome {
    try keys.run(Self.words + options, environment: environment)
  }

  @Test func dataIsReadWithTheKeyOnly() throws {
    for option in ["--passphrase-file old", "--identity recovery.key"] {
      #expect(try keys.succeed("dump latest:folders/tree/kept --repo repo \(option)") == "kept")
    }
    for line in ["ls latest", "restore latest --to back"] {
      let none = try keys.run("\(line) --repo repo --json")
      #expect(none.code == 12 && none.errors.contains("key_required"), "\(line): \(none.errors)")
    }
    for line in ["ls latest", "snapshots", "restore latest --to back", "check", "prune"] {
      let wrong = try keys.run("\(line) --repo repo --json --passphrase-file new")
      #expect(wrong.code == 12 && wrong.errors.contains("wrong_key"), "\(line): \(wrong.errors)")
    }
    #expect(try !cli.isThere("back"))
    try keys.expectNoSecrets()
  }

  @Test func wrongKeyIsReportedWithItsRemedy() throws {
    let outcome = try open(["--passphrase-file", "new"])
    #expect(outcome.code == 12)
    #expect(
      outcome.errors.contains("cannot open 'repo': the passphrase does not open its key file\n"))
    #expect(outcome.errors.contains("hint: check the passphrase; or use the recovery key"))
  }

  /// Errors from code below the commands suggest commands that would use the configured repository.
  @Test func suggestedCommandsUseTheSameRepositoryAndKey() throws {
    try cli.copy("repo", to: "my repo")
    let line = ["ls", "ffffffff", "--repo", "my repo", "--identity", "recovery.key"]
    let command = "sandboxctl snapshots --repo 'my repo' --identity recovery.key"
    let text = try keys.run(line)
    #expect(text.errors.contains("hint: run '\(command)' to list"), "\(text.errors)")
    let json = try CommandLine.object(try keys.run(line + ["--json"]).errors)
    #expect((json["hint"] as? String)?.contains(command) == true, "\(json)")
    // A command about keys may need another one.
    let unknown = try keys.run([
      "key", "remove", "none", "--repo", "my repo", "--passphrase-file", "old",
    ])
    #expect(unknown.code == 1, "\(unknown.errors)")
    let list = "'sandboxctl key list --repo 'my repo'' lists the keys"
    #expect(unknown.errors.contains(list), "\(unknown.errors)")
  }

  @Test func environmentNamesTheKey() throws {
    for (name, value) in [
      ("SANDBOXCTL_PASSPHRASE_FILE", "old"), ("SANDBOXCTL_PASSPHRASE_COMMAND", "cat old"),
      ("SANDBOXCTL_IDENTITY_FILE", "recovery.key"),
    ] {
      #expect(try open(environment: [name: value]).code == 0, "\(name)")
      // The command line has precedence.
      #expect(try open(["--passphrase-file", "new"], environment: [name: value]).code == 12)
    }
  }

  /// The environment precedes the configuration, and the command line both.
  @Test func configurationNamesTheKey() throws {
    try cli.directory.write(
      "passphrase-file: ~/../new\n", at: "home/.config/sandboxctl/config.yaml")
    #expect(try open().code == 12)
    #expect(try open(environment: ["SANDBOXCTL_IDENTITY_FILE": "recovery.key"]).code == 0)
    #expect(try open(["--passphrase-command", "cat old"]).code == 0)
    try cli.directory.write(
      "passphrase-command: cat \(cli.directory.string)/old\n",
      at: "home/.config/sandboxctl/config.yaml")
    #expect(try open().code == 0)
  }

  /// A suggested command names the key as well, but no limits.
  @Test func suggestionsNameTheKey() throws {
    let shown = try keys.succeed(
      "backup --layout folder --root tree --repo repo --passphrase-file old --connections 2")
    #expect(shown.contains("sandboxctl ls latest --repo repo --passphrase-file old\n"), "\(shown)")
    let command = "backup --layout folder --root tree --repo repo --passphrase-command"
    let words = command.split(separator: " ").map(String.init) + ["cat old"]
    #expect(try keys.run(words).output.contains("sandboxctl ls latest --repo repo\n"))
  }

  /// A suggested command of a copy has the key only if the repository that it names is encrypted:
  /// one without encryption is not opened with a key.
  @Test func suggestionsOfACopyNameTheKeyOfTheirSide() throws {
    try keys.succeed("init plain --plain --no-default")
    try keys.succeed("copy --to plain --repo repo --passphrase-file old --quiet")
    try damagePacks(of: "plain")
    let toPlain = try keys.run("copy --to plain --check --repo repo --passphrase-file old")
    let check = "'sandboxctl check --read-data --repo plain'"
    #expect(toPlain.code == 13 && toPlain.errors.contains(check), "\(toPlain)")
    try keys.succeed("init other --plain --no-default")
    try keys.succeed("backup --layout folder --root tree --repo other --quiet")
    try damagePacks(of: "other")
    let repair = "'sandboxctl repair snapshots --repo other'"
    for option in ["--passphrase-file", "--to-passphrase-file"] {
      let fromPlain = try keys.run("copy --to repo --repo other \(option) old")
      #expect(fromPlain.code == 13 && fromPlain.errors.contains(repair), "\(fromPlain)")
    }
    // The suggestion for an encrypted side has its key.
    try damagePacks(of: "repo")
    try keys.succeed("init third --plain --no-default")
    let encrypted = try keys.run("copy --to third --repo repo --passphrase-file old")
    let withKey = "'sandboxctl repair snapshots --repo repo --passphrase-file old'"
    #expect(encrypted.code == 13 && encrypted.errors.contains(withKey), "\(encrypted)")
  }

  /// Changes bytes near the beginning of each pack.
  private func damagePacks(of repository: String) throws {
    let change =
      "chmod u+w $1; head -c 16 /dev/zero | dd of=$1 bs=8 seek=4 conv=notrunc status=none"
    let packs = "\(cli.directory.string)/\(repository)/packs"
    _ = try Program.run(
      "find", [packs, "-type", "f", "-exec", "sh", "-c", change, "sh", "{}", ";"])
  }

  @Test(arguments: [
    ["--passphrase-file", "old", "--identity", "recovery.key"],
    ["--passphrase-file", "old", "--passphrase-command", "cat old"],
    ["--identity", "recovery.key", "--passphrase-command", "cat old"],
  ])
  func severalKeysAreRefused(_ options: [String]) throws {
    let outcome = try open(options)
    #expect(outcome.code == 2 && outcome.errors.contains("cannot be used together"))
  }

  // MARK: - Files

  @Test func oneNewlineIsRemoved() throws {
    for (text, code) in [
      (KeyFixture.old, 0), (KeyFixture.old + "\n", 0), (KeyFixture.old + "\r\n", 0),
      (KeyFixture.old + "\n\n", 12), (KeyFixture.old + " \n", 12), (KeyFixture.old + "\r", 12),
    ] as [(String, Int32)] {
      try keys.write(text, to: "given")
      #expect(try open(["--passphrase-file", "given"]).code == code, "\(text.debugDescription)")
    }
  }

  @Test func readableFileIsReported() throws {
    #expect(try open(["--passphrase-file", "old"]).errors.isEmpty)
    for (mode, isReported) in [(0o640, true), (0o604, true), (0o600, false), (0o400, false)] {
      for (option, name) in [("--passphrase-file", "old"), ("--identity", "recovery.key")] {
        try cli.directory.directory.setPermissions(UInt16(mode), of: ByteString(name))
        let outcome = try open([option, name])
        #expect(outcome.code == 0 && outcome.errors.contains("chmod 600 \(name)") == isReported)
      }
    }
  }

  @Test func unusableFilesAreErrors() throws {
    try keys.write("", to: "empty")
    try keys.write("\n", to: "newline")
    try keys.write(String(repeating: "x", count: 65_537), to: "large")
    try keys.write("garbage\n", to: "garbage")
    _ = try Program.run("mkfifo", [cli.directory.string + "/fifo"])
    for name in ["empty", "newline", "large", "fifo", "/dev/zero", "tree", "none"] {
      let outcome = try open(["--passphrase-file", name])
      #expect(outcome.code == 1, "\(name): \(outcome.errors)")
      let isAdvised = outcome.errors.contains("'--passphrase-command COMMAND'")
      #expect(isAdvised == ["fifo", "/dev/zero"].contains(name), "\(name): \(outcome.errors)")
    }
    for name in ["empty", "garbage", "fifo", "none", "repo/keys"] {
      #expect(try open(["--identity", name]).code == 1, "\(name)")
    }
    // No key is read for a repository that is not encrypted: it is not the expected one.
    try keys.succeed("init plain --plain --no-default")
    let plain = try keys.run("snapshots --repo plain --passphrase-file none")
    #expect(plain.code == 12 && plain.errors.contains("is not encrypted"), "\(plain.errors)")
  }

  // MARK: - Commands

  @Test(arguments: [
    "false", "cat old; exit 3", "exit 0", "kill -9 $$", "head -c 70000 /dev/zero", "nosuchprogram",
  ])
  func failingCommandIsAnError(_ command: String) throws {
    let outcome = try open(["--passphrase-command", command])
    #expect(outcome.code == 1, "\(outcome.errors)")
    #expect(!outcome.errors.contains("'\(command)'"), "a command may contain the passphrase")
    try keys.expectNoSecrets()
  }

  /// The command reads no input, its messages are shown, and it does not inherit the options.
  @Test func commandRunsApart() throws {
    let command = "cat > input; env > environment; echo remark >&2; cat old"
    let outcome = try open(environment: [
      "SANDBOXCTL_PASSPHRASE_COMMAND": command, "SANDBOXCTL_PASSPHRASE_FILE": "",
    ])
    #expect(outcome.code == 0 && outcome.errors == "remark\n", "\(outcome.errors)")
    #expect(try cli.directory.read("input").isEmpty)
    let environment = String(decoding: try cli.directory.read("environment"), as: UTF8.self)
    #expect(environment.contains("HOME=") && !environment.contains("SANDBOXCTL_PASSPHRASE"))
  }

  // MARK: - The terminal

  @Test func passphraseIsAskedForOnce() throws {
    let line = "backup --layout folder --root tree --repo repo"
    let question = "Passphrase of 'repo': "
    let answers = [[question, KeyFixture.old], [question, ""]]
    let outcome = try keys.type(answers, into: line)
    #expect(outcome.code == 0, "\(outcome.output)")
    #expect(outcome.output.components(separatedBy: question).count == 2)
    let wrong = try keys.type([[question, "wrong"]], into: "ls latest --repo repo")
    #expect(wrong.code == 12 && wrong.output.contains("does not open"), "\(wrong.output)")
    // An empty answer is not a key.
    let none = try keys.type([[question, ""]], into: "ls latest --repo repo")
    #expect(none.code == 12 && !none.output.contains("does not open"), "\(none.output)")
    try keys.expectNoSecrets()
  }

  /// The answer for one repository is not used for another, which the prompt names.
  @Test func eachRepositoryIsAskedFor() throws {
    let line = "init second --passphrase-file new --recovery-key second.key --no-default"
    try keys.succeed(line)
    let answers = [
      ["Passphrase of 'repo': ", KeyFixture.old], ["Passphrase of 'second': ", KeyFixture.new],
    ]
    let outcome = try keys.type(answers, into: "copy --to second --repo repo")
    #expect(outcome.code == 0 && outcome.output.contains("copied 1 of 1"), "\(outcome.output)")
    #expect(outcome.output.components(separatedBy: "Passphrase of ").count == 3)
    #expect(
      try keys.succeed("dump latest:folders/tree/kept --repo second --passphrase-file new")
        == "kept")
    try keys.expectNoSecrets()
  }

  /// A signal ends the program, and the terminal shows typed text again.
  @Test func interruptedQuestionRestoresTheTerminal() throws {
    let script = "\"$0\" snapshots --repo repo; echo status $?; stty -a | grep -o '[-]*echo '"
    let outcome = try cli.run(
      [],
      under: [
        "python3", "-B",
        Shared.packageRoot.appendingPathComponent("Tests/CommandTests/Programs/type.py").path,
        "bash", "-c", "trap : INT; " + script,
      ],
      input: Array(try JSONEncoder().encode([["Passphrase of 'repo': ", "\u{3}"]])))
    #expect(outcome.output.contains("status 130"), "\(outcome.output)")
    #expect(outcome.output.contains("\r\necho "), "\(outcome.output)")
  }
}
