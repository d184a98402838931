import Foundation
import SystemIO
import TestSupport
import Testing

/// Signed snapshots and trusted signers on the command line.
struct SignatureTests {
  private let keys: KeyFixture
  private var cli: CommandLine { keys.cli }
  private static let key = "--passphrase-file old"

  init() throws { keys = try KeyFixture() }

  /// Runs a command as another user of the same store.
  @discardableResult
  private func onOtherHost(_ line: String, code: Int32 = 0) throws -> Program.Outcome {
    _ = try Directory.make(path: cli.directory.path("other-home"))
    let outcome = try keys.run(
      line.split(separator: " ").map(String.init),
      environment: ["HOME": cli.directory.string + "/other-home"])
    #expect(outcome.code == code, "\(line): \(outcome)")
    return outcome
  }

  private func backUp(_ text: String, _ repository: String) throws -> String {
    try cli.directory.write(text, at: "tree/kept")
    return "backup --layout folder --root tree --quiet --repo \(repository)"
  }

  private func signers(_ repository: String) throws -> [[String: Any]] {
    try cli.jsonLines("key list --json --repo \(repository)").filter { $0["signer"] != nil }
  }

  private func ownSigner(_ repository: String) throws -> String {
    let own = try #require(signers(repository).first { $0["this_host"] as? Bool == true })
    return try #require(own["signer"] as? String)
  }

  /// Expects a restore of the latest snapshot to end with a status.
  private func expectRestore(
    _ code: Int32, _ options: String, _ location: SourceLocation = #_sourceLocation
  ) throws {
    let outcome = try keys.run("restore latest --to back --json \(options)")
    #expect(outcome.code == code, "\(outcome)", sourceLocation: location)
    if code == 13 {
      #expect(
        outcome.errors.contains(#""code":"snapshot_untrusted""#), "\(outcome)",
        sourceLocation: location)
      #expect(try !cli.isThere("back"), sourceLocation: location)
    } else {
      try cli.directory.directory.removeTree("back")
    }
  }

  @Test func snapshotsAreSignedAndNothingIsRefused() throws {
    guard TestEncryption.keys == nil else { return }
    try keys.succeed("init plain --plain --no-default")
    #expect(try signers("plain").isEmpty)
    try keys.succeed(backUp("one", "plain"))
    let signer = try ownSigner("plain")
    #expect(signer.wholeMatch(of: /sbxsig1[a-z0-9]{58}/) != nil)
    let listed = try cli.jsonLines("snapshots --json --repo plain")
    #expect(listed.map { $0["signer"] as? String } == [signer])
    #expect(listed.map { $0["trusted"] as? Bool } == [true])
    try cli.forgeSnapshot(in: "plain")
    try expectRestore(0, "--repo plain")
    let checked = try keys.succeed("check --repo plain")
    #expect(checked.hasPrefix("checked 2 snapshots (1 signed)"), "\(checked)")
    #expect(checked.hasSuffix("no damage found\n"), "\(checked)")
    #expect(try !keys.succeed("snapshots --repo plain").contains("signature"))
    let recovered = try Recover.succeed(cli, "plain list")
    #expect(recovered.contains(signer) && recovered.contains(" -\n"), "\(recovered)")
    // Only its user can read the key.
    let id = try #require(cli.names(in: "home/.local/share/sandboxctl/signing").first)
    let home = try Directory.open(path: cli.directory.path("home/.local/share/sandboxctl/signing"))
    #expect(try home.file(id).status().permissions & 0o777 == 0o600)
  }

  @Test func refusedSnapshotsAreNamed() throws {
    guard TestEncryption.keys == nil else { return }
    try keys.succeed("init plain --plain --no-default")
    try keys.succeed(backUp("one", "plain"))
    let signer = try ownSigner("plain")
    #expect(try keys.succeed("key trust --repo plain") == "trusted signer \(signer)\n")
    try expectRestore(0, "--repo plain")
    #expect(try keys.run("check --repo plain").code == 0)
    try cli.forgeSnapshot(in: "plain")
    try expectRestore(13, "--repo plain")
    try expectRestore(0, "--repo plain --allow-unsigned")
    let check = try keys.run("check --repo plain")
    #expect(check.code == 13 && check.output.contains("untrusted snapshot "), "\(check)")
    #expect(check.output.contains("1 snapshot not signed by a trusted signer"), "\(check)")
    #expect(try keys.succeed("snapshots --repo plain").contains("signature"))
    let listing = try keys.run("ls latest --repo plain")
    #expect(listing.code == 0 && listing.errors.contains("is not trusted: it is not signed"))
    // The next backup is not based on it, and is later.
    try keys.succeed(backUp("two", "plain"))
    try expectRestore(0, "--repo plain")
    try keys.succeed("key trust --snapshot all --repo plain")
    #expect(try keys.run("check --repo plain").code == 0)
    try keys.succeed("key untrust \(signer) --repo plain")
    #expect(try signers("plain").first?["trusted"] as? Bool == false)
    try expectRestore(0, "--repo plain")
  }

  @Test func signersOfOtherHostsAreTrustedByName() throws {
    try onOtherHost(backUp("one", "repo") + " " + Self.key)
    try keys.succeed("key trust --repo repo")
    try expectRestore(13, "--repo repo \(Self.key)")
    let listed = try onOtherHost("key list --json --repo repo").output.split(separator: "\n")
    let other = try #require(
      listed.compactMap { try CommandLine.object($0)["signer"] as? String }.first)
    try keys.succeed("key trust \(other) --name nas --repo repo")
    #expect(try keys.succeed("key list --repo repo").contains("nas"))
    try expectRestore(0, "--repo repo \(Self.key)")
    for words in [
      "key trust sbxsig1x", "key untrust x", "key trust \(other) --snapshot latest",
      "key trust --name",
    ] {
      #expect(try keys.run("\(words) --repo repo").code == 2, "\(words)")
    }
    let invalid = try keys.run("key trust sbxsig1x --repo repo")
    #expect(invalid.errors.contains("a signer has 65 characters and begins with 'sbxsig1'"))
    #expect(invalid.errors.contains("'sandboxctl key list'") && other.count == 65)
    try keys.expectNoSecrets()
  }

  /// A host learns the signers from a key file, and keeps them if the store replaces the file.
  @Test func keyFileInformsOtherHosts() throws {
    let file = ByteString("repo/keys").appending(try #require(cli.names(in: "repo/keys").first))
    let old = try cli.directory.read(file)
    try keys.succeed(backUp("one", "repo") + " " + Self.key)
    let signer = try ownSigner("repo")
    let trusted = try keys.run("key trust --repo repo \(Self.key)")
    #expect(trusted.code == 0 && trusted.errors.isEmpty, "\(trusted)")
    try onOtherHost("restore latest --to theirs --repo repo \(Self.key)")
    try cli.directory.write(old, at: file)
    let list = try onOtherHost("key list --json --repo repo").output
    #expect(list.contains(#""signer":"\#(signer)","name":"","trusted":true"#), "\(list)")
    // A write-only host also signs, and is a separate signer.
    let recipient = try keys.succeed("key show-recipient --repo repo").dropLast()
    #expect(recipient.hasPrefix("age1"))
    try cli.directory.directory.removeTree("other-home")
    try onOtherHost(backUp("two", "repo"))
    let refused = try keys.run("restore latest --to back --repo repo \(Self.key)")
    #expect(refused.code == 13 && refused.errors.contains("is not trusted"), "\(refused)")
    try keys.expectNoSecrets()
  }

  @Test func damagedSigningKeyDoesNotPreventBackups() throws {
    try keys.succeed(backUp("one", "repo") + " " + Self.key)
    let directory = ByteString("home/.local/share/sandboxctl/signing")
    let name = try #require(cli.names(in: directory).first)
    try keys.succeed("key trust --repo repo")
    try cli.directory.write("SBX-SIGNING-KEY-1QQQQ\n", at: directory.appending(name))
    let outcome = try keys.run(backUp("two", "repo") + " " + Self.key)
    #expect(outcome.code == 0, "\(outcome)")
    #expect(outcome.errors.contains("new snapshots are not signed"), "\(outcome)")
    #expect(outcome.errors.contains("so restores refuse it"), "\(outcome)")
    #expect(!outcome.errors.contains("QQQQ"))
    try cli.directory.directory.remove(directory.appending(name))
    try keys.succeed(backUp("three", "repo") + " " + Self.key)
  }
}
