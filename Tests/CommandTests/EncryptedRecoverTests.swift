import Foundation
import SystemIO
import TestSupport
import Testing

/// Recovery of encrypted repositories without the program: with the program `age` and with the code
/// of recover.py alone.
struct EncryptedRecoverTests {
  private let keys: KeyFixture
  private var cli: CommandLine { keys.cli }
  private static let forms = ["", "--no-age "]
  private static let keyOptions = ["--passphrase-file old", "--identity recovery.key"]

  /// Makes an encrypted repository with a backup of files in two packs of data.
  init() throws {
    keys = try KeyFixture()
    try OddTree.make(in: cli.directory, at: "tree/odd")
    var random = Seeded(7)
    for name: ByteString in ["a-first", "b-second"] {
      try cli.directory.write(random.bytes(3_000_000), at: ByteString("tree").appending(name))
    }
    // In one thread, so that the files are stored in the order of their names.
    try cli.succeedInOrder(
      "backup --layout folder --root tree --repo repo --quiet --passphrase-file old")
  }

  private func recover(_ line: String) throws -> Program.Outcome {
    try Recover.run(cli, line.split(separator: " ").map(String.init))
  }

  @Test func everythingIsListedVerifiedAndRestored() throws {
    let listed = try cli.jsonLines("snapshots --json --repo repo \(Self.keyOptions[0])")
    let id = try #require(listed.first?["id"] as? String)
    let signer = try #require(listed.first?["signer"] as? String)
    for form in Self.forms {
      for key in Self.keyOptions {
        let list = try Recover.succeed(cli, "\(form)\(key) repo list")
        #expect(list.contains("\n\(id.prefix(16))") && list.contains(signer), "\(list)")
        let verified = try Recover.succeed(cli, "\(form)\(key) repo verify --read-data")
        #expect(verified.contains("1 snapshot") && verified.hasSuffix("no damage found\n"))
        try Recover.succeed(cli, "\(form)\(key) repo restore latest:folders/tree --to back")
        try ChangeDetector.expectSame(cli.directory, "tree", "back")
        #expect(
          try OddTree.listing(cli.directory, "back") == OddTree.listing(cli.directory, "tree"))
        try cli.directory.directory.removeTree("back")
      }
    }
    // The copy of the reader in the repository is the same program.
    let script = cli.directory.string + "/repo/recover.py"
    let own = try Recover.run(
      cli, ["--no-age", "--identity", "recovery.key", "repo", "ls", "latest:folders/tree/a-first"],
      script: script)
    #expect(own.code == 0 && own.output.contains("a-first"), "\(own)")
  }

  @Test func withoutTheIndexEverythingIsRestored() throws {
    for name in try cli.names(in: "repo/index") {
      try cli.directory.write("not an index", at: ByteString("repo/index").appending(name))
    }
    for form in Self.forms {
      let line = "\(form)--identity recovery.key"
      let refused = try recover("\(line) repo restore latest --to refused")
      #expect(refused.code == 13 && refused.errors.contains("damaged: index "), "\(refused)")
      try Recover.succeed(cli, "\(line) --without-index repo verify --read-data")
      try Recover.succeed(
        cli, "\(line) --without-index repo restore latest:folders/tree --to back")
      try ChangeDetector.expectSame(cli.directory, "tree", "back")
      try cli.directory.directory.removeTree("back")
    }
  }

  /// A changed byte of an encrypted pack loses the piece of 64 KiB that it is in, which is
  /// authenticated: the files that are not in it are restored.
  @Test func damagedPackLosesOnlyAffectedFiles() throws {
    let pack = try #require(
      try cli.packs(suffix: ".age").max { try size($0) < size($1) })
    let id = URL(fileURLWithPath: pack).lastPathComponent.prefix(64)
    try cli.flip(byte: 1_000_000, of: pack)
    for form in Self.forms {
      let line = "\(form)--identity recovery.key repo"
      let check = try recover("\(line) verify --read-data")
      #expect(check.code == 13, "\(check)")
      #expect(check.errors.contains("damaged: pack \(id): its hash does not match its name"))
      #expect(check.errors.contains(": folders/tree/a-first: "), "\(check)")
      #expect(!check.errors.contains("b-second"), "\(check)")
      let outcome = try recover("\(line) restore latest:folders/tree --to back")
      #expect(outcome.code == 13 && outcome.errors.contains("damaged: a-first: "), "\(outcome)")
      #expect(try !cli.isThere("back/a-first"))
      #expect(try cli.directory.read("back/b-second") == cli.directory.read("tree/b-second"))
      #expect(
        try OddTree.listing(cli.directory, "back/odd")
          == OddTree.listing(cli.directory, "tree/odd"))
      try cli.directory.directory.removeTree("back")
    }
    // The program loses the same file.
    let ours = try keys.run(
      "restore latest:folders/tree --to ours --repo repo --identity recovery.key")
    #expect(ours.code == 13 && ours.errors.contains("a-first"), "\(ours)")
    #expect(try !cli.isThere("ours/a-first") && cli.isThere("ours/b-second"))
    try FileManager.default.removeItem(atPath: pack)
    let without = try recover("--no-age --identity recovery.key repo verify")
    #expect(without.code == 13 && without.errors.contains("\(id): an index refers to it"))
  }

  private func size(_ path: String) throws -> Int {
    try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
  }

  @Test func wrongAndMissingKeysAreRefused() throws {
    try keys.succeed("init other --passphrase-file new --recovery-key other.key --no-default")
    for form in Self.forms {
      for (key, words) in [
        ("--passphrase-file new ", "wrong passphrase"), ("--identity other.key ", "wrong key"),
        ("--identity old ", "is not an age identity"), ("--identity none ", "cannot be read"),
        ("--passphrase-file none ", "cannot be read"),
      ] {
        for command in ["list", "verify", "restore latest --to back"] {
          let outcome = try recover("\(form)\(key)repo \(command)")
          #expect([1, 12].contains(outcome.code), "\(key)\(command): \(outcome)")
          #expect(outcome.errors.contains(words), "\(key)\(command): \(outcome)")
          #expect(!outcome.errors.contains("Traceback") && outcome.output.isEmpty, "\(outcome)")
          for secret in [KeyFixture.old, KeyFixture.new, try keys.recoveryKey()] {
            #expect(!outcome.errors.contains(secret))
          }
        }
      }
    }
    #expect(try !cli.isThere("back"))
    let missing = try recover("repo list")
    #expect(missing.code == 12 && !missing.errors.contains("Traceback"), "\(missing)")
    try keys.expectNoSecrets()
  }

  /// A key that has been added opens the repository, and one that has been removed does not.
  @Test func addedKeysOpenTheRepository() throws {
    try keys.succeed("key add more --passphrase-file old --new-passphrase-file new --repo repo")
    for form in Self.forms {
      try Recover.succeed(cli, "\(form)--passphrase-file new repo verify")
    }
    try keys.succeed("key remove more --passphrase-file old --repo repo")
    let removed = try recover("--passphrase-file new repo list")
    #expect(removed.code == 12 && removed.errors.contains("wrong passphrase"), "\(removed)")
  }
}
