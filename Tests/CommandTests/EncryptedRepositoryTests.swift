import Foundation
import SystemIO
import TestSupport
import Testing

/// All commands on encrypted repositories.
struct EncryptedRepositoryTests {
  private let keys: KeyFixture
  private static let key = "--passphrase-file old"

  private var cli: CommandLine { keys.cli }

  init() throws {
    keys = try KeyFixture()
    try keys.writeTree(files: 12, seed: 11)
  }

  /// Sets the cache directory aside, as on another host.
  private func changeHost() throws {
    if try cli.isThere("home/.cache") { try cli.directory.directory.removeTree("home/.cache") }
    if try cli.isThere("home/.local") { try cli.directory.directory.removeTree("home/.local") }
  }

  private func bytes(in repository: String = "repo") throws -> Int {
    try cli.packs(repository, suffix: ".age").reduce(0) {
      $0 + (try FileManager.default.attributesOfItem(atPath: $1)[.size] as? Int ?? 0)
    }
  }

  // MARK: - Commands

  @Test func everyCommandWorks() throws {
    try keys.backUp(Self.key)
    try cli.directory.write("changed", at: "tree/3")
    try keys.backUp(Self.key)
    let list = try keys.succeed("ls latest --recursive --repo repo \(Self.key)")
    #expect(list.contains("folders/tree/11"))
    #expect(try keys.succeed("find 3 --repo repo \(Self.key)").contains("folders/tree/3"))
    #expect(try keys.succeed("dump latest:folders/tree/3 --repo repo \(Self.key)") == "changed")
    #expect(try keys.succeed("diff latest~1 latest --repo repo \(Self.key)").contains("tree/3"))
    #expect(try keys.succeed("versions folders/tree/3 --repo repo \(Self.key)").contains("7 B"))
    try keys.succeed("stats --growth --repo repo \(Self.key)")
    try keys.succeed("snapshots pin latest --repo repo \(Self.key)")
    try keys.expectRestored(from: "repo", Self.key)
    let checked = try keys.succeed("check --read-data --repo repo \(Self.key)")
    #expect(checked.hasSuffix("no damage found\n"), "\(checked)")
    let forgot = try keys.succeed("forget --keep-last 1 --prune --repo repo \(Self.key)")
    #expect(forgot.contains("removed 1 of 2 snapshots"), "\(forgot)")
    try keys.succeed("leases --repo repo")
    #expect(
      try keys.succeed("check --read-data --repo repo \(Self.key)").hasSuffix("no damage found\n"))
    try keys.expectRestored(from: "repo", Self.key)
    try keys.expectNoSecrets()
  }

  @Test func lostAndDamagedObjectsAreRepaired() throws {
    try keys.backUp(Self.key)
    for name in try cli.names(in: "repo/index") {
      try cli.directory.directory.remove(ByteString("repo/index").appending(name))
    }
    #expect(try cli.names(in: "repo/index").isEmpty)
    try keys.succeed("repair index --repo repo \(Self.key)")
    #expect(try cli.names(in: "repo/index").count == 1)
    try keys.expectRestored(from: "repo", Self.key)
    let pack = try #require(try cli.packs(suffix: ".age").max(by: { size($0) < size($1) }))
    let file = try #require(FileHandle(forUpdatingAtPath: pack))
    try file.seek(toOffset: UInt64(size(pack) / 2))
    try file.write(contentsOf: Data([1, 2, 3, 4]))
    try file.close()
    #expect(try keys.run("check --read-data --repo repo \(Self.key)").code == 13)
    let repaired = try keys.run("repair packs --repo repo \(Self.key)")
    #expect(repaired.code == 13, "\(repaired.output) \(repaired.errors)")
    // The source still has the lost data.
    try keys.backUp(Self.key)
    try keys.expectRestored(from: "repo", Self.key)
  }

  private func size(_ path: String) -> Int {
    (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
  }

  @Test func copiesGoBetweenPlainAndEncryptedRepositories() throws {
    try keys.succeed("init plain --plain --no-default")
    try keys.succeed("init other --passphrase-file new --recovery-key other.key --no-default")
    try keys.backUp(to: "plain")
    try keys.succeed("copy --to repo --repo plain --to-passphrase-file old")
    try keys.expectRestored(from: "repo", Self.key)
    try keys.succeed("copy --to other --repo repo \(Self.key) --to-passphrase-file new --check")
    try keys.expectRestored(from: "other", "--passphrase-file new")
    try keys.succeed("init last --plain --no-default")
    try keys.succeed("copy --to last --repo other --identity other.key")
    try keys.expectRestored(from: "last", "")
    let again = try keys.succeed("copy --to plain --repo last")
    #expect(again.contains("copied 0 of 1 snapshot,"), "\(again)")
    try keys.expectNoSecrets()
  }

  @Test func mirrorIsOpenedByTheSameKey() throws {
    try keys.backUp(Self.key)
    try keys.succeed("mirror --to mirror --repo repo \(Self.key)")
    try keys.expectRestored(from: "mirror", Self.key)
    try cli.directory.write("changed", at: "tree/3")
    try keys.backUp(Self.key)
    try keys.succeed("mirror --to mirror --repo repo \(Self.key)")
    try keys.expectRestored(from: "mirror", Self.key)
    #expect(
      try keys.succeed("check --read-data --repo mirror \(Self.key)").hasSuffix(
        "no damage found\n"))
  }

  /// Every pack is an ordinary archive for the programs age, zstd and tar.
  @Test func packsAreReadByHand() throws {
    try keys.backUp(Self.key)
    let script = """
      set -e; mkdir out
      for p in repo/packs/*/*.age; do
        name=${p##*/}; [ "$(b2sum -l 256 "$p" | cut -c1-64)" = "${name%%.*}" ]
        age -d -i recovery.key "$p" | zstd -dc | tar -x -C out
      done
      diff -r tree out/folders/tree
      """
    let outcome = try Program.run(
      "/bin/bash", ["-o", "pipefail", "-c", script], in: cli.directory.url, timeout: 600)
    #expect(outcome.code == 0, "\(outcome.output)\(outcome.errors)")
  }

  // MARK: - Hosts that only write

  @Test func writeOnlyHostBacksUpAndCannotRead() throws {
    let recipient = try keys.succeed("key show-recipient --repo repo").split(separator: "\n")[0]
    try keys.succeed("init store --recipient \(recipient) --no-default")
    try keys.backUp(to: "store")
    let first = try bytes(in: "store")
    try cli.directory.write("new", at: "tree/new")
    try keys.backUp(to: "store")
    #expect(try bytes(in: "store") < first + 30_000, "only what changed is stored")
    for line in [
      "ls latest", "snapshots", "restore latest --to back", "find new", "check", "prune",
      "forget --keep-last 1", "stats", "dump latest:folders/tree/new",
    ] {
      let outcome = try keys.run("\(line) --repo store")
      #expect(outcome.code == 12, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains(recipient), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("--identity FILE"), "\(line): \(outcome.errors)")
    }
    // Another host reads it.
    try changeHost()
    try keys.expectRestored(from: "store", "--identity recovery.key")
    // Without its cache it stores everything again, in the right order.
    try changeHost()
    try cli.directory.write("newer", at: "tree/new")
    try keys.backUp(to: "store")
    #expect(try bytes(in: "store") > first + first / 2)
    try keys.expectRestored(from: "store", "--identity recovery.key")
    let snapshots = try keys.succeed("snapshots --json --repo store --identity recovery.key")
    #expect(snapshots.split(separator: "\n").count == 3)
    #expect(
      try keys.succeed("check --read-data --repo store --identity recovery.key").hasSuffix(
        "no damage found\n"))
  }

  /// The snapshot before an update is made without a key, and a rollback needs one: the user is
  /// warned before anything changes.
  @Test func writeOnlyHostIsToldWhatARollbackNeeds() throws {
    let recipient = try keys.succeed("key show-recipient --repo repo").split(separator: "\n")[0]
    let fixture = try AppUpdateFixture()
    try fixture.cli.directory.write(cli.directory.read("recovery.key"), at: "recovery.key")
    _ = try fixture.cli.succeed("init store --recipient \(recipient) --no-default")
    let update = "update New.app --root device --repo store --quiet"
    let alone = try fixture.cli.run(update)
    #expect(alone.code == 0 && alone.errors.contains("cannot restore the snapshot"), "\(alone)")
    let rollback = "rollback notebook --root device --repo store --quiet"
    #expect(try fixture.cli.run(rollback).code == 12)
    #expect(try fixture.version() == "9.0")
    let identity = " --identity recovery.key"
    #expect(try fixture.cli.run(rollback + identity).code == 0)
    #expect(try fixture.version() == "3.2")
    let able = try fixture.cli.run(update + identity)
    #expect(able.code == 0 && !able.errors.contains("cannot restore the snapshot"), "\(able)")
  }

  // MARK: - A hostile store

  @Test func changedRecipientsAreRefused() throws {
    try keys.backUp("--identity recovery.key")
    let path: ByteString = "repo/repository.json"
    let text = String(decoding: try cli.directory.read(path), as: UTF8.self)
    let other = try keys.succeed("init other --passphrase-file new --recovery-key other.key")
    #expect(!other.isEmpty)
    let stranger = try keys.succeed("key show-recipient --repo other").split(separator: "\n")[0]
    let added = text.replacing("\"recipients\": [", with: "\"recipients\": [\"\(stranger)\",")
    #expect(added != text)
    try cli.directory.write(added, at: path)
    let outcome = try keys.run(
      "backup --layout folder --root tree --repo repo --identity recovery.key")
    #expect(outcome.code == 12)
    #expect(outcome.errors.contains("differ from those that this host knows"), "\(outcome.errors)")
    // The key file has the recipients as well.
    let before = try cli.packs(suffix: ".age")
    try cli.directory.write("for this one", at: "tree/0")
    let warned = try keys.run(
      "backup --layout folder --root tree --repo repo --quiet \(Self.key)")
    #expect(warned.code == 0 && warned.errors.contains("names other recipients"), "\(warned)")
    for pack in try cli.packs(suffix: ".age") where !before.contains(pack) {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: pack)).prefix(2000)
      let header = String(decoding: bytes, as: UTF8.self)
      #expect(header.components(separatedBy: "-> X25519 ").count == 2)
    }
    // The remedy that the warning names.
    let rotated = try keys.run(
      "key rotate --repo repo --recovery-key next.key \(Self.key)")
    #expect(rotated.code == 0 && rotated.output.hasPrefix("completed the rotation"), "\(rotated)")
    let restored = String(decoding: try cli.directory.read(path), as: UTF8.self)
    #expect(!restored.contains(stranger))
    try keys.backUp("--identity recovery.key")
    #expect(try keys.run("check --repo repo \(Self.key)").errors.isEmpty)
  }

  @Test func encryptionCannotBeTurnedOff() throws {
    try keys.backUp(Self.key)
    let path: ByteString = "repo/repository.json"
    let text = String(decoding: try cli.directory.read(path), as: UTF8.self)
    let plain = text.replacing("\"age\"", with: "\"none\"").replacing(
      /"recipients": \[[^\]]*\]/, with: "\"recipients\": []")
    try cli.directory.write(plain, at: path)
    let known = try keys.run("backup --layout folder --root tree --repo repo \(Self.key)")
    #expect(known.code == 12)
    #expect(known.errors.contains("this host knows it as encrypted"), "\(known.errors)")
    try changeHost()
    let outcome = try keys.run("backup --layout folder --root tree --repo repo \(Self.key)")
    #expect(outcome.code == 12)
    #expect(outcome.errors.contains("is not encrypted"), "\(outcome.errors)")
  }

  @Test func wrongKeyIsQuick() throws {
    try keys.backUp(Self.key)
    // Processor time, which other programs hardly change.
    let outcome = try cli.run(
      "ls latest --repo repo --passphrase-file new",
      under: ["bash", "-c", "TIMEFORMAT='took %U %S'; time \"$0\" \"$@\""])
    #expect(outcome.code == 12)
    let seconds = outcome.errors.split(separator: "\n").last { $0.hasPrefix("took ") }
      .map { $0.split(separator: " ").dropFirst().compactMap { Double($0) } }
    #expect(try #require(seconds).count == 2)
    #expect(try #require(seconds).reduce(0, +) < 2, "\(outcome.errors)")
  }

  /// The cache of the host has names of files.
  @Test func cacheIsForTheUserOnly() throws {
    try keys.backUp(Self.key)
    try keys.succeed("ls latest --repo repo \(Self.key)")
    let root = cli.directory.string + "/home/.cache/sandboxctl"
    let names = try FileManager.default.subpathsOfDirectory(atPath: root)
    #expect(names.contains { $0.hasSuffix(".index") })
    for name in names {
      let attributes = try FileManager.default.attributesOfItem(atPath: root + "/" + name)
      let mode = try #require(attributes[.posixPermissions] as? Int)
      #expect(mode & 0o077 == 0, "\(name)")
    }
  }
}
