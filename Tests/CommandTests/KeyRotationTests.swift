import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// `key rotate` and `key rewrap` on the command line.
struct KeyRotationTests {
  private let keys: KeyFixture
  private var cli: CommandLine { keys.cli }

  private static let key = "--repo repo --passphrase-file old"
  private static let rotate = "key rotate \(key) --recovery-key next.key"

  init() throws {
    keys = try KeyFixture()
    try backUp()
  }

  private func backUp(_ options: String = Self.key) throws {
    try cli.directory.write(UUID().uuidString, at: "tree/kept")
    try keys.succeed("backup --layout folder --root tree \(options)")
  }

  private func report(_ line: String) throws -> [String: Any] {
    try CommandLine.object(#require(keys.succeed(line).split(separator: "\n").last))
  }

  private func count(_ options: String) throws -> Int {
    try keys.succeed("snapshots --json --repo repo \(options)").split(separator: "\n").count
  }

  @Test func rotationAndRewrapReplaceTheKey() throws {
    let output = try keys.run(Self.rotate)
    #expect(output.code == 0 && output.output.hasPrefix("rotated the key of the repository\n"))
    #expect(output.errors.contains("'sandboxctl key rewrap --repo repo'"), "\(output.errors)")
    let saved = String(decoding: try cli.directory.read("next.key"), as: UTF8.self)
    #expect(saved.split(separator: "\n").count { $0.hasPrefix("AGE-SECRET-KEY-1") } == 2)
    let path = cli.directory.string + "/next.key"
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    try backUp()
    #expect(try count("--passphrase-file old") == 2)
    #expect(try count("--identity next.key") == 2)
    let former = try keys.run("snapshots --repo repo --identity recovery.key")
    #expect(former.code == 12 && former.errors.contains("rotated"), "\(former.errors)")

    let dry = try report("key rewrap --dry-run --json \(Self.key)")
    #expect(dry["dry_run"] as? Bool == true && dry["snapshots"] as? Int == 1)
    let packs = Set(try cli.packs(suffix: ".age"))
    let done = try report("key rewrap --json \(Self.key)")
    #expect(done["snapshots"] as? Int == 1 && done["older_identities"] as? Int == 0, "\(done)")
    #expect((done["replaced"] as? [Any])?.count == 1)
    #expect(Set(try cli.packs(suffix: ".age")).count == packs.count)
    // The first line of the recovery key opens everything, and the old one opens nothing.
    let line = saved.split(separator: "\n").first { $0.hasPrefix("AGE-SECRET-KEY-1") }
    try keys.write(String(try #require(line)) + "\n", to: "first.key")
    #expect(try count("--identity first.key") == 2)
    #expect(try keys.run("snapshots --repo repo --identity recovery.key").code == 12)
    #expect(
      try keys.succeed("check --read-data \(Self.key)").hasSuffix("no damage found\n"))
    try keys.succeed("restore latest:folders/tree --to back \(Self.key) --quiet")
    #expect(try cli.directory.read("back/kept") == cli.directory.read("tree/kept"))
    #expect(
      try keys.succeed("key rewrap \(Self.key)")
        == "no older identity is needed: nothing to rewrap\n")
    #expect(
      try keys.succeed("key rewrap --dry-run \(Self.key)")
        == "no older identity is needed: nothing to rewrap\n")
    try keys.expectNoSecrets()
    #expect(!keys.shown.contains("AGE-SECRET-KEY-1"))
  }

  @Test func recoveryKeyIsPrintedOnce() throws {
    let outcome = try cli.run("key rotate \(Self.key)".split(separator: " ").map(String.init))
    #expect(outcome.code == 0, "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n").filter {
      $0.hasPrefix("AGE-SECRET-KEY-1")
    }
    #expect(lines.count == 2)
    try keys.write(lines.joined(separator: "\n") + "\n", to: "printed.key")
    #expect(try count("--identity printed.key") == 1)
    for option in ["--json", "--quiet"] {
      let refused = try keys.run("key rotate \(Self.key) \(option)")
      #expect(refused.code == 2 && refused.errors.contains("--recovery-key FILE"))
    }
  }

  /// A new recovery key that nobody receives would be lost.
  @Test func lostRecoveryKeyRotatesNothing() throws {
    let before = try cli.directory.read("repo/repository.json")
    let outcome = try cli.run(
      "key rotate \(Self.key)", under: ["bash", "-c", "exec >/dev/full; exec \"$0\" \"$@\""])
    #expect(outcome.code == 1, "\(outcome)")
    #expect(outcome.errors.contains("error: cannot print the recovery key: "), "\(outcome.errors)")
    #expect(try cli.directory.read("repo/repository.json") == before)
    #expect(try count("--identity recovery.key") == 1)
    #expect(try cli.names(in: "repo/leases").isEmpty)
  }

  @Test func rotationIsRefusedWithoutAWrite() throws {
    let before = try cli.directory.read("repo/repository.json")
    try keys.succeed("key add second --new-passphrase-file new \(Self.key)")
    let others = try keys.run(Self.rotate)
    #expect(others.code == 1 && others.errors.contains("'second'"), "\(others.errors)")
    try keys.succeed("key remove second \(Self.key)")
    let identity = try keys.run(
      "key rotate --repo repo --identity recovery.key --recovery-key next.key")
    #expect(identity.code == 12 && identity.errors.contains("passphrase"), "\(identity.errors)")
    #expect(try !cli.isThere("next.key"))
    let inside = try keys.run("key rotate \(Self.key) --recovery-key repo/next.key")
    #expect(inside.code == 2, "\(inside.errors)")
    let present = try keys.run("key rotate \(Self.key) --recovery-key recovery.key")
    #expect(present.code != 0, "an existing file is not replaced")
    #expect(try cli.directory.read("repo/repository.json") == before)
    try keys.succeed(Self.rotate)
    try keys.expectNoSecrets()
  }

  /// A host that knows the recipients from before refuses the new ones until it has opened the
  /// repository with a passphrase.
  @Test func otherHostsAcceptTheRecipientsOnce() throws {
    try keys.succeed("backup --layout folder --root tree --repo repo --identity recovery.key")
    try cli.copy("home", to: "other-home")
    try keys.succeed(Self.rotate)
    try cli.directory.directory.removeTree("home")
    try cli.copy("other-home", to: "home")
    let line = "backup --layout folder --root tree --repo repo --identity next.key"
    let refused = try keys.run(line)
    #expect(refused.code == 12 && refused.errors.contains("its key was rotated"))
    #expect(try count("--passphrase-file old") == 2)
    try keys.succeed(line)
  }

  /// A rotation that ended between its two writes is completed by the same command.
  @Test func sameCommandCompletesARotation() throws {
    let before = try cli.directory.read("repo/repository.json")
    try keys.succeed(Self.rotate)
    let saved = try cli.directory.read("next.key")
    try cli.directory.write(before, at: "repo/repository.json")
    let other = try keys.run("key rotate \(Self.key) --recovery-key recovery.key")
    #expect(other.code == 1 && other.errors.contains("name another file"), "\(other)")
    #expect(try keys.succeed(Self.rotate).hasPrefix("completed the rotation"))
    #expect(try cli.directory.read("next.key") == saved)
  }

  /// With the key file from before the rotation the same passphrase opens the repository. This host
  /// knows the newer identity, and so writes nothing for the older one.
  @Test(arguments: [false, true]) func olderKeyFileOnlyReads(hasSettings: Bool) throws {
    try cli.copy("repo", to: "before")
    try keys.succeed(Self.rotate)
    try keys.succeed("key rewrap \(Self.key)")
    let ids = try cli.jsonLines("snapshots --json \(Self.key)").compactMap { $0["id"] as? String }
    let pinned = try #require(ids.first)
    try keys.succeed("snapshots pin \(pinned) \(Self.key)")
    try cli.copy("repo", to: "newest")
    let record = try self.record()
    try putKeyFilesBack(from: "before")
    if hasSettings { try putBack("repository.json", from: "before") }
    let objects = try cli.packs(suffix: ".age")
    let line = "backup --layout folder --root tree \(Self.key)"
    let json = try cli.directory.read("repo/repository.json")
    for line in [
      line, "key rotate \(Self.key) --recovery-key last.key",
      "key change --new-passphrase-file new \(Self.key)", "mirror --to mirror \(Self.key)",
      "key remove second \(Self.key)", "forget --keep-last 1 \(Self.key)",
      "forget \(pinned) \(Self.key)", "snapshots pin \(pinned) \(Self.key)",
      "snapshots unpin \(pinned) \(Self.key)",
    ] {
      let refused = try keys.run(line)
      #expect(refused.code == 12, "\(line): \(refused)")
      #expect(refused.errors.contains("an older key file was put back"), "\(refused.errors)")
    }
    #expect(try self.record() == record && cli.directory.read("repo/repository.json") == json)
    #expect(try cli.packs(suffix: ".age") == objects && !cli.isThere("last.key"))
    #expect(try cli.names(in: "repo/pins") == [ByteString(pinned)])
    // Objects that the older key file does not open are not recorded as damaged.
    let check = try keys.run("check --read-data \(Self.key)")
    #expect(check.errors.contains("cannot record the damaged packs"), "\(check)")
    #expect(!check.errors.contains("repair"), "\(check)")
    let findings = try keys.run("check --json \(Self.key)").output.split(separator: "\n")
      .map { try CommandLine.object($0) }.filter { $0["finding"] as? String == "damage" }
    #expect(!findings.isEmpty && findings.allSatisfy { $0["hint"] == nil }, "\(findings)")
    #expect(try !cli.isThere("repo/damaged") || cli.names(in: "repo/damaged").isEmpty)
    try putKeyFilesBack(from: "newest")
    try putBack("repository.json", from: "newest")
    try backUp()
    try keys.succeed("restore latest:folders/tree --to back \(Self.key) --quiet")
    #expect(try cli.directory.read("back/kept") == cli.directory.read("tree/kept"))
  }

  /// A copy of the repository from before a rotation can be read. The record of this host stays.
  @Test func copyFromBeforeIsRead() throws {
    try cli.copy("repo", to: "before")
    try keys.succeed(Self.rotate)
    let record = try self.record()
    let read = try keys.run(
      "restore latest:folders/tree --to back --repo before --passphrase-file old --quiet")
    #expect(read.code == 0 && read.errors.contains("can only be read"), "\(read)")
    #expect(try self.record() == record)
  }

  /// A host that has not used the repository since before a rotation accepts the key file, although
  /// it no longer has the identity that the host knows.
  @Test func keyFileNamesWhatItHasReplaced() throws {
    try cli.copy("home", to: "other-home")
    try keys.succeed(Self.rotate)
    try keys.succeed("key rewrap \(Self.key)")
    try keys.succeed("key rotate \(Self.key) --recovery-key last.key")
    try keys.succeed("key rewrap \(Self.key)")
    try cli.directory.directory.removeTree("home")
    try cli.copy("other-home", to: "home")
    let accepted = try keys.run("backup --layout folder --root tree \(Self.key)")
    #expect(accepted.code == 0 && !accepted.errors.contains("can only be read"), "\(accepted)")
    #expect(try record().contains(keys.recipient("last.key")))
  }

  /// A key file of an earlier version does not name what it has replaced. The error says how to
  /// distinguish it from an older one, and what to remove.
  @Test func keyFileOfAnEarlierVersionIsAccepted() throws {
    try cli.copy("home", to: "other-home")
    try keys.succeed(Self.rotate)
    try keys.succeed("key rewrap \(Self.key)")
    try dropRetired()
    try cli.directory.directory.removeTree("home")
    try cli.copy("other-home", to: "home")
    let refused = try keys.run("backup --layout folder --root tree \(Self.key)")
    let own = try keys.recipient("next.key")
    #expect(refused.code == 12, "\(refused)")
    let hint = "if the public key of the newest recovery key is \(own), remove '"
    #expect(refused.errors.contains(hint), "\(refused)")
    let path = try #require(refused.errors.firstMatch(of: /remove '([^']+)'/)).1
    try FileManager.default.removeItem(atPath: String(path))
    let accepted = try keys.run("backup --layout folder --root tree \(Self.key)")
    #expect(accepted.code == 0 && !accepted.errors.contains("can only be read"), "\(accepted)")
    #expect(try record().contains(own))
    try keys.succeed("restore latest:folders/tree --to back \(Self.key) --quiet")
  }

  /// Writes the key files as an earlier version does, without the recipients that are replaced.
  private func dropRetired() throws {
    let passphrase = try AgePassphrase(Array(KeyFixture.old.utf8).span)
    for name in try cli.names(in: "repo/keys") {
      let path = ByteString("repo/keys").appending(name)
      let stored = try cli.directory.read(path)
      let plain = try AgeFile(opening: stored.span, with: passphrase).decrypt(stored.span)
      let text = String(decoding: plain, as: UTF8.self)
      let earlier = text.replacing(/"retired":\[[^\]]*\],/, with: "")
      try #require(earlier != text)
      let file = try AgeFile(for: passphrase, workFactor: 2).encrypt(Array(earlier.utf8).span)
      try cli.directory.write(file, at: path)
    }
  }

  /// This host's record of the recipients of the repository.
  private func record() throws -> String {
    let directory: ByteString = "home/.local/share/sandboxctl/recipients"
    let names = try cli.names(in: directory).filter { $0.utf8?.hasPrefix("at-") == false }
    return String(
      decoding: try cli.directory.read(directory.appending(try #require(names.first))),
      as: UTF8.self)
  }

  private func putBack(_ name: ByteString, from store: ByteString) throws {
    let bytes = try cli.directory.read(store.appending(name))
    try cli.directory.write(bytes, at: ByteString("repo").appending(name))
  }

  private func putKeyFilesBack(from store: ByteString) throws {
    for name in try cli.names(in: store.appending("keys")) {
      try putBack(ByteString("keys").appending(name), from: store)
    }
  }

  @Test func recipientsAreReplaced() throws {
    try keys.succeed("init other --passphrase-file new --recovery-key other.key --no-default")
    let stranger = try keys.succeed("key show-recipient --repo other").split(separator: "\n")[0]
    try keys.succeed("\(Self.rotate) --recipient \(stranger)")
    try backUp()
    try keys.succeed("key rewrap \(Self.key)")
    #expect(try count("--identity other.key") == 2)
    let rotated = try report("key rotate \(Self.key) --recovery-key last.key --json")
    #expect((rotated["recipients"] as? [String])?.last == String(stranger))
    #expect(rotated["change"] as? String == "rotated")
    let bad = try keys.run("key rotate \(Self.key) --recipient age1x --recovery-key x.key")
    #expect(bad.code == 2, "\(bad.errors)")
  }

  /// A recipient that a rotation adds cannot open what is older. A warning reports that, and no
  /// message suggests to remove it.
  @Test func addedRecipientCannotReadOlderData() throws {
    let recipient = try cli.makeKey("bob.key")
    let rotated = try keys.run("\(Self.rotate) --recipient \(recipient)")
    let warning = "warning: '\(recipient)' cannot read what is stored already"
    #expect(rotated.code == 0 && rotated.errors.contains(warning), "\(rotated.errors)")
    try backUp()
    // Another host, which has no copies of what it cannot read.
    try cli.directory.directory.removeTree("home")
    _ = try Directory.make(path: cli.directory.path("home"))
    let bob = "--repo repo --identity bob.key"
    let check = try keys.run("check \(bob)")
    #expect(check.code == 3 && check.output.contains("unreadable"), "\(check)")
    #expect(check.errors.contains("all lines of the recovery key"), "\(check)")
    for line in ["prune", "repair packs", "repair snapshots --forget", "repair index"] {
      let outcome = try keys.run("\(line) \(bob)")
      #expect(!outcome.errors.contains("forget --force"), "\(line): \(outcome)")
      if line == "prune" { #expect(outcome.code == 12, "\(outcome)") }
    }
    let mirror = try keys.run("mirror --to mirror \(bob)")
    #expect(mirror.code == 3, "\(mirror)")
    #expect(mirror.errors.contains("copied 1 snapshot unread: the key lacks an older identity"))
    #expect(try keys.run("mirror --to mirror \(bob)").code == 0)
    for repository in ["repo", "mirror"] {
      let options = "--repo \(repository) --passphrase-file old"
      #expect(try keys.succeed("check --read-data \(options)").contains("2 snapshots"))
    }
    let made = try keys.run("backup --layout folder --root tree \(bob)")
    let note = "the identity may not restore all of the new snapshots"
    #expect(made.code == 0 && made.errors.contains(note), "\(made)")
    let next = try report("key rotate \(Self.key) --recovery-key last.key --json")
    #expect((next["added_recipients"] as? [Any])?.isEmpty == true, "\(next)")
  }

  /// Data that only an older key opens is not damaged: the exit status and the words say so.
  @Test func dataThatNeedsAnOlderKeyIsUnreadable() throws {
    for path: ByteString in ["tree/same", "tree/directory/same"] {
      try cli.directory.write("unchanged", at: path)
    }
    try backUp()
    try keys.succeed("\(Self.rotate) --recipient \(cli.makeKey("bob.key"))")
    try backUp()
    try cli.directory.directory.removeTree("home")
    _ = try Directory.make(path: cli.directory.path("home"))
    let restore = "restore latest:folders/tree --json --to restored"
    for line in [restore, "ls latest --recursive", "find same"] {
      let outcome = try keys.run("\(line) --repo repo --identity bob.key")
      #expect(outcome.code == 3, "\(line): \(outcome)")
      #expect(outcome.errors.contains("the key lacks an older identity"), "\(line): \(outcome)")
      #expect(!outcome.errors.contains("damaged: "), "\(line): \(outcome)")
      if line == restore {
        let report = try CommandLine.object(#require(outcome.output.split(separator: "\n").last))
        #expect(report["needs_older_key"] as? Bool == true, "\(outcome)")
      } else {
        #expect(outcome.errors.contains("unreadable: folders/tree/directory"), "\(outcome)")
      }
    }
    #expect(
      try keys.succeed(
        "restore latest:folders/tree --repo repo --passphrase-file old --to all --json"
      )
      .contains(#""needs_older_key":false"#))
  }
}
