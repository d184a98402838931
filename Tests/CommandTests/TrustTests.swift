import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands on snapshots that are not accepted, and this host's list of trusted signers.
@Suite(.enabled(if: TestEncryption.keys == nil, "snapshots are forged in plain repositories"))
struct TrustTests {
  private let cli: CommandLine
  private static let backup = "backup --layout folder --root tree --quiet --repo repo"
  private static let data: ByteString = "home/.local/share/sandboxctl"

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("one", at: "tree/kept")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed(Self.backup)
  }

  private func text(of path: ByteString) throws -> String {
    String(decoding: try cli.directory.read(path), as: UTF8.self)
  }

  private func trustThisHost() throws -> String {
    _ = try cli.succeed("key trust --repo repo")
    return try #require(
      cli.jsonLines("key list --json --repo repo").compactMap { $0["signer"] as? String }.first)
  }

  /// The file of trusted signers.
  private func signersFile() throws -> ByteString {
    let directory = Self.data.appending("signers")
    let name = try #require(
      cli.names(in: directory).first { $0.hasSuffix(".txt") && !$0.description.hasPrefix("at-") })
    return directory.appending(name)
  }

  // MARK: - Refused snapshots

  @Test func dumpRefusesWhatRestoreRefuses() throws {
    _ = try trustThisHost()
    let dump = "dump latest:folders/tree/kept --repo repo"
    #expect(try cli.succeed(dump) == "one")
    try cli.forgeSnapshot(in: "repo")
    for line in [dump, "dump latest --repo repo", dump + " --tar"] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 13 && outcome.standardOutput.isEmpty, "\(line): \(outcome)")
      #expect(outcome.errors.contains("'--allow-unsigned' uses it anyway"), "\(outcome)")
    }
    #expect(try cli.succeed(dump + " --allow-unsigned") == "one")
  }

  @Test func detailsNameTheSigner() throws {
    let show = "snapshots show latest --repo repo"
    let own = try cli.jsonLines("key list --json --repo repo")
    let signer = try #require(own.first?["signer"] as? String)
    let untrusting = try cli.succeed(show)
    #expect(untrusting.contains("signature  \(signer), this host: no signer is trusted\n"))
    _ = try cli.succeed("key trust \(signer) --name nas --repo repo")
    let trusting = try cli.succeed(show)
    #expect(trusting.contains("signature  \(signer) (nas), this host: trusted\n"), "\(trusting)")
    let signed = try cli.json(show + " --json")
    #expect(signed["signature"] as? String == "valid" && signed["signer"] as? String == signer)
    #expect(signed["signer_name"] as? String == "nas" && signed["trusted"] as? Bool == true)
    // Members of a later version do not replace those of the program.
    try cli.forgeSnapshot(in: "repo", adding: #""id":"0","trusted":true,"#)
    let refused = try cli.run(show + " --json")
    #expect(refused.code == 0 && !refused.output.contains(#""id":"0""#), "\(refused)")
    #expect(refused.output.ranges(of: #""trusted":"#).count == 1, "\(refused)")
    let forged = try CommandLine.object(refused.output)
    #expect(forged["signature"] as? String == "none" && forged["signer"] is NSNull)
    #expect(forged["trusted"] as? Bool == false && (forged["id"] as? String)?.count == 64)
    #expect(try cli.succeed(show).contains("signature  none\n"))
    _ = try cli.succeed("key trust --snapshot latest --repo repo")
    #expect(try cli.succeed(show).contains("signature  none, accepted by its id\n"))
    #expect(try cli.json(show + " --json")["trusted"] as? Bool == true)
  }

  @Test func restoreInPlaceChangesNothing() throws {
    _ = try trustThisHost()
    try cli.forgeSnapshot(in: "repo")
    try cli.directory.write("two", at: "tree/kept")
    for line in ["restore latest --in-place", "restore ./tree/kept --in-place"] {
      let outcome = try cli.run(line + " --repo repo")
      #expect(outcome.code == 13 && outcome.errors.contains("is not signed"), "\(outcome)")
    }
    #expect(try text(of: "tree/kept") == "two")
    #expect(try cli.snapshots().count == 2)
    _ = try cli.succeed("restore latest --in-place --allow-unsigned --repo repo")
    #expect(try text(of: "tree/kept") == "one")
    // The snapshot that was made first is signed, so it can be restored.
    let made = try cli.jsonLines("snapshots --json --repo repo").filter {
      $0["reason"] as? String == "pre-restore"
    }
    #expect(made.count == 1 && made[0]["trusted"] as? Bool == true)
  }

  @Test func rollbackRefusesASnapshotWithoutItsSignature() throws {
    let fixture = try AppUpdateFixture()
    let rollback = "rollback notebook --root device --repo repo"
    _ = try fixture.cli.succeed("update New.app --root device --repo repo --quiet")
    _ = try fixture.cli.succeed("key trust --repo repo")
    _ = try fixture.cli.succeed(rollback + " --dry-run")
    try fixture.cli.forgeSnapshot(in: "repo", isReplacing: true)
    for line in [rollback + " --dry-run", rollback] {
      let outcome = try fixture.cli.run(line)
      #expect(outcome.code == 13, "\(outcome)")
      #expect(outcome.errors.contains("cannot roll back to"), "\(outcome)")
    }
    #expect(try fixture.version() == "9.0")
    _ = try fixture.cli.succeed("key trust --snapshot all --repo repo")
    _ = try fixture.cli.succeed(rollback)
    #expect(try fixture.version() == "3.2")
  }

  /// An update with an unusable signing key reports that its snapshot is refused.
  @Test func updateNamesASnapshotThatIsRefused() throws {
    let fixture = try AppUpdateFixture()
    _ = try fixture.cli.succeed("key trust --repo repo")
    let directory = Self.data.appending("signing")
    let key = try #require(fixture.cli.names(in: directory).first)
    try fixture.cli.directory.write("damaged\n", at: directory.appending(key))
    let update = try fixture.cli.run("update New.app --root device --repo repo --quiet")
    #expect(update.code == 0 && update.errors.contains("so restores refuse it"), "\(update)")
    #expect(try fixture.cli.run("rollback notebook --root device --repo repo").code == 13)
    #expect(try fixture.version() == "9.0")
  }

  @Test func refusedSnapshotIsNoReasonToForgetOthers() throws {
    _ = try trustThisHost()
    let own = try #require(cli.snapshots().first)
    try cli.forgeSnapshot(in: "repo")
    let output = try cli.succeed("forget --keep-last 1 --repo repo")
    #expect(output.contains(", not trusted: keep 1, remove 0\n"), "\(output)")
    #expect(output.hasSuffix("removed 0 of 2 snapshots\n"), "\(output)")
    let named = try cli.run("forget \(own) --repo repo")
    #expect(named.code == 1 && named.errors.contains("no other snapshot of the same group"))
    #expect(try cli.succeed("dump \(own):folders/tree/kept --repo repo") == "one")
  }

  /// Otherwise a store could add a snapshot and have it signed.
  @Test func repairOfARefusedSnapshotIsNotSigned() throws {
    _ = try trustThisHost()
    var random = Seeded(23)
    for name in ["a", "b"] {
      try cli.directory.write(random.bytes(300_000), at: ByteString("tree/\(name)"))
    }
    _ = try cli.succeed(Self.backup)
    try cli.forgeSnapshot(in: "repo")
    try cli.flip(byte: 100_000, of: cli.largestPack())
    #expect(try cli.run("check --read-data --repo repo").code == 13)
    #expect(try cli.run("repair packs --repo repo --quiet").code == 13)
    let repair = try cli.run("repair snapshots --forget --json --repo repo")
    let new = try repair.output.split(separator: "\n").compactMap {
      try CommandLine.object($0)["new"] as? String
    }
    #expect(new.count == 2, "\(repair)")
    let repaired = try cli.jsonLines("snapshots --json --repo repo").filter {
      new.contains($0["id"] as? String ?? "")
    }
    #expect(repaired.map { $0["trusted"] as? Bool } == [true, false], "\(repaired)")
    #expect(repaired.last?["signer"] is NSNull)
    #expect(try cli.run("restore latest --to back --repo repo").code == 13)
  }

  /// All trust belongs to an id, which a store can change.
  @Test func anotherIDAtTheSamePathIsNotTrusted() throws {
    _ = try trustThisHost()
    try cli.changeRepositoryID(of: "repo")
    for line in ["restore latest --to back", "dump latest:folders/tree/kept"] {
      let outcome = try cli.run(line + " --repo repo")
      #expect(outcome.code == 13 && outcome.errors.contains("is not signed"), "\(outcome)")
      #expect(outcome.errors.contains("signers of another repository"), "\(outcome)")
    }
    #expect(try !cli.isThere("back"))
    // Backups continue, and snapshots that this host signs are accepted.
    try cli.directory.write("two", at: "tree/kept")
    _ = try cli.succeed(Self.backup)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo --quiet")
    #expect(try text(of: "back/kept") == "two")
    _ = try cli.succeed("key trust --repo repo")
    #expect(try cli.run("snapshots --repo repo").errors.isEmpty)
    #expect(try cli.run("dump latest~1:folders/tree/kept --repo repo").code == 13)
  }

  // MARK: - The host's files

  /// Starts a command line for each word, all at the same time, and waits for all of them.
  private func runAtOnce(_ words: [String], _ line: String) throws -> Program.Outcome {
    let script = """
      jobs=
      for word in \(words.joined(separator: " ")); do "$0" \(line) & jobs="$jobs $!"; done
      for job in $jobs; do wait "$job" || exit; done
      """
    return try cli.run([], under: ["sh", "-c", script])
  }

  @Test func backupsAtOnceCreateOneKey() throws {
    _ = try cli.succeed("init second --plain --no-default")
    let names = (1...4).map { "tree-\($0)" }
    for name in names { try cli.directory.write(name, at: ByteString(name).appending("file")) }
    let outcome = try runAtOnce(
      names, #"backup --layout folder --root "$word" --quiet --repo second"#)
    #expect(outcome.code == 0, "\(outcome)")
    let signers = try cli.jsonLines("snapshots --json --repo second").map {
      $0["signer"] as? String
    }
    #expect(signers.count == 4 && signers[0] != nil && Set(signers).count == 1, "\(signers)")
    // One key for each repository, and no temporary file.
    let directory = Self.data.appending("signing")
    let keys = try cli.names(in: directory)
    #expect(keys.count == 2 && keys.allSatisfy { $0.hasSuffix(".key") }, "\(keys)")
    let home = try Directory.open(path: cli.directory.path(directory))
    #expect(try home.status().permissions & 0o777 == 0o700)
    for key in keys { #expect(try home.file(key).status().permissions & 0o777 == 0o600) }
  }

  @Test func changesOfTheSignersAtOnceAreAllKept() throws {
    let own = try trustThisHost()
    let signers = (0..<8).map { _ in SigningKey().signer.description }
    let outcome = try runAtOnce(signers, #"key trust "$word" --repo repo"#)
    #expect(outcome.code == 0, "\(outcome)")
    let revoked = try runAtOnce(Array(signers.prefix(4)), #"key untrust "$word" --repo repo"#)
    #expect(revoked.code == 0, "\(revoked)")
    let listed = try cli.jsonLines("key list --json --repo repo")
    let trusted = listed.filter { $0["trusted"] as? Bool == true }
    #expect(listed.count == 9)
    #expect(
      Set(trusted.compactMap { $0["signer"] as? String }) == Set(signers.suffix(4) + [own]))
    let file = try Descriptor.open(path: cli.directory.path(signersFile()))
    #expect(try file.status().permissions & 0o777 == 0o600)
  }

  @Test func lastSignerIsRevokedWithAWarning() throws {
    let own = try trustThisHost()
    let other = SigningKey().signer.description
    _ = try cli.succeed("key trust \(other) --repo repo")
    let first = try cli.run("key untrust \(own) --repo repo")
    #expect(first.code == 0 && first.errors.isEmpty, "\(first)")
    try cli.directory.write("two", at: "tree/kept")
    let backup = try cli.run(Self.backup)
    #expect(backup.code == 0 && backup.errors.contains("this host's signer \(own)"), "\(backup)")
    #expect(try cli.run("restore latest --to back --repo repo").code == 13)
    let last = try cli.run("key untrust \(other) --repo repo")
    #expect(last.code == 0 && last.errors.contains("every snapshot is accepted"), "\(last)")
    _ = try cli.succeed("restore latest --to back --repo repo --quiet")
  }

  /// A mistyped signer is an error, because the intended one would remain trusted.
  @Test func onlyAKnownSignerIsRevoked() throws {
    let own = try trustThisHost()
    let (known, unknown) = (SigningKey().signer.description, SigningKey().signer.description)
    _ = try cli.succeed("key trust \(known) --name nas --repo repo")
    let refused = try cli.run("key untrust \(unknown) --repo repo")
    #expect(refused.code == 1 && refused.output.isEmpty, "\(refused)")
    for text in [unknown, own, "\(known) (nas)", "key list"] {
      #expect(refused.errors.contains(text), "\(refused.errors)")
    }
    // Once revoked, it stays known.
    for _ in 0..<2 { _ = try cli.succeed("key untrust \(known) --repo repo") }
    let listed = try cli.jsonLines("key list --json --repo repo")
    #expect(Set(listed.compactMap { $0["signer"] as? String }) == [own, known])
  }

  /// Lines that could be mistaken for others must not lose a revocation.
  @Test func fileOfSignersIsReadStrictly() throws {
    let signer = try trustThisHost()
    let path = try signersFile()
    for text in [
      "\(signer) nas\r\nuntrusted \(signer)\r\n", "\(signer) \u{1b}[31mred\n", "\(signer)x\n",
      "# a comment\n\nuntrusted\n", "snapshot 12\n", "trusted \(signer)\n", " \(signer)\n\n ",
    ] {
      try cli.directory.write(text, at: path)
      let outcome = try cli.run("restore latest --to back --repo repo")
      #expect(outcome.code == 1 && outcome.errors.contains("invalid"), "\(text): \(outcome)")
      #expect(try !cli.isThere("back") && !outcome.errors.contains("\u{1b}"))
    }
    try cli.directory.write("# a comment\n\n\(signer) nas\n", at: path)
    _ = try cli.run(["key", "trust", signer, "--name", "\u{301}x", "--repo", "repo"])
    #expect(try cli.run("snapshots --repo repo").errors.isEmpty)
    try cli.directory.directory.setPermissions(0o666, of: path)
    let warned = try cli.run("snapshots --repo repo")
    #expect(warned.code == 0 && warned.errors.contains("other users may change"), "\(warned)")
  }
}

extension CommandLine {
  /// Adds a snapshot to a plain repository as anyone with write access could: the latest one
  /// without its signature.
  ///
  /// - Parameters:
  ///   - members: members to add at the beginning, each with a comma.
  ///   - isReplacing: whether the original is removed; otherwise the new one is later than all
  ///     others.
  func forgeSnapshot(
    in repository: String, adding members: String = "", isReplacing: Bool = false
  ) throws {
    let id = try #require(snapshots(repository).last)
    let directory = ByteString("\(repository)/snapshots")
    let original = directory.appending(ByteString("\(id).json"))
    let line = try #require(self.directory.read(original).split(separator: 0x0a).first)
    var text = "{" + members + String(decoding: line, as: UTF8.self).dropFirst()
    if isReplacing {
      try self.directory.directory.remove(original)
    } else {
      let sequence = try #require(text.firstMatch(of: /"sequence":[0-9]+/))
      text = text.replacing(sequence.output, with: "\"sequence\":999")
    }
    try put(text + "\n", in: directory)
  }

  /// Gives a plain repository and all its snapshots another id. Their signatures are lost.
  func changeRepositoryID(of repository: String) throws {
    let settings = ByteString("\(repository)/repository.json")
    let text = String(decoding: try directory.read(settings), as: UTF8.self)
    let old = try #require(CommandLine.object(text)["id"] as? String)
    let new = String(old.reversed())
    try directory.write(text.replacing(old, with: new), at: settings)
    let snapshots = ByteString("\(repository)/snapshots")
    for name in try names(in: snapshots) {
      let path = snapshots.appending(name)
      let line = try #require(directory.read(path).split(separator: 0x0a).first)
      try directory.directory.remove(path)
      try put(
        String(decoding: line, as: UTF8.self).replacing(old, with: new) + "\n", in: snapshots)
    }
  }

  /// Stores a snapshot under its id.
  private func put(_ text: String, in directory: ByteString) throws {
    let name = ByteString("\(Blake2b.hash(Array(text.utf8)).hex).json")
    try self.directory.write(text, at: directory.appending(name))
  }
}
