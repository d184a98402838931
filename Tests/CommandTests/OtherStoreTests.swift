import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// `copy` and `mirror` between two object stores, each of which has its own server and keys. The
/// keys of the first are in the environment, those of the second in a profile.
struct OtherStoreTests {
  private let fixture: S3CommandFixture
  private let second: FaultStore
  private var cli: CommandLine { fixture.cli }

  private static let repo = "--repo s3://bucket/place"
  /// The options of the second store, as the other side of a command.
  private let to: String
  /// The same for a command on that store alone.
  private let alone: String

  init() throws {
    fixture = try S3CommandFixture()
    second = try FaultStore()
    to = "--to-s3-endpoint \(second.endpoint) --to-s3-profile second"
    alone = "--s3-endpoint \(second.endpoint) --s3-profile second"
    try fixture.store.requireKey("ACCESSKEYID")
    try second.requireKey("SECONDKEYID")
    try cli.directory.write(
      "[second]\naws_access_key_id = SECONDKEYID\naws_secret_access_key = SECONDSECRETKEY\n",
      at: "home/.aws/credentials")
    _ = try fixture.succeed("init s3://bucket/place --plain --no-default")
    _ = try fixture.backUp()
  }

  /// Expects the second store to have the complete snapshot.
  private func expectRestored(from location: String) throws {
    let checked = try fixture.succeed("check --read-data --repo \(location) \(alone)")
    #expect(checked.contains("1 snapshot") && checked.hasSuffix("no damage found\n"), "\(checked)")
    _ = try fixture.succeed(
      "restore latest:folders/data --to back --repo \(location) \(alone) --quiet")
    try ChangeDetector.expectSame(cli.directory, "data", "back")
    try cli.directory.directory.removeTree("back")
  }

  /// The second repository may even have the same text.
  @Test(arguments: ["s3://bucket/place", "s3://bucket/second"])
  func copiesGoToAnotherStore(location: String) throws {
    _ = try fixture.succeed("init \(location) --plain --no-default \(alone)")
    let copy = "copy --to \(location) \(Self.repo)"
    #expect(try fixture.succeed("\(copy) \(to)").contains("copied 1 of 1 snapshot"))
    try expectRestored(from: location)
    // Back, with the sides exchanged: the profile of the source is not used for the target.
    let back = try fixture.succeed(
      "copy --repo \(location) \(alone) --to s3://bucket/place --to-s3-endpoint "
        + fixture.store.endpoint)
    #expect(back.contains("copied 0 of 1 snapshot, 1 existed before"), "\(back)")
  }

  @Test func keysOfOneStoreDoNotOpenTheOther() throws {
    _ = try fixture.succeed("init s3://bucket/second --plain --no-default \(alone)")
    let endpoint = "--to-s3-endpoint \(second.endpoint)"
    for options in [endpoint, "\(endpoint) --to-s3-region eu"] {
      let outcome = try fixture.run("copy --to s3://bucket/second \(Self.repo) \(options)")
      #expect(outcome.code == 1 && outcome.errors.contains("access key"), "\(outcome)")
    }
    // Without options the other side is in the same store, in which it does not exist.
    #expect(try fixture.run("copy --to s3://bucket/second \(Self.repo)").code == 10)
    // The same bucket of the same server is the repository itself.
    let own = "--to-s3-endpoint \(fixture.store.endpoint)/"
    let itself = try fixture.run("copy --to s3://bucket/place \(Self.repo) \(own)")
    #expect(itself.code == 2 && itself.errors.contains("is the repository itself"), "\(itself)")
    let invalid = try fixture.run(
      "mirror --to s3://bucket/second \(Self.repo) --to-s3-endpoint secret@host")
    #expect(invalid.code == 2 && invalid.errors.contains("'--to-s3-endpoint'"), "\(invalid)")
    #expect(!invalid.errors.contains("secret"))
  }

  @Test func aMirrorIsInAnotherStore() throws {
    let mirror = "mirror --to s3://bucket/place \(Self.repo) \(to)"
    #expect(try fixture.succeed("\(mirror) --dry-run").contains("would copy 1 snapshot"))
    #expect(try second.keys().isEmpty)
    #expect(try fixture.succeed(mirror).contains("copied 1 snapshot"))
    #expect(try fixture.succeed(mirror).contains("up to date"))
    #expect(try fixture.succeed("\(mirror) --dry-run").contains("up to date"))
    try expectRestored(from: "s3://bucket/place")
  }

  /// The configuration has the options of both sides.
  @Test func theConfigurationNamesTheOtherStore() throws {
    try cli.directory.write(
      """
      repo: s3://bucket/place
      mirror:
        to: s3://bucket/mirror
        to-s3-endpoint: \(second.endpoint)
        to-s3-profile: second
      """, at: "home/.config/sandboxctl/config.yaml")
    #expect(try fixture.succeed("mirror --quiet").isEmpty)
    try expectRestored(from: "s3://bucket/mirror")
  }

  /// A suggested command reaches both stores, and has no limits.
  @Test func suggestionsReachBothStores() throws {
    let mirror = "mirror --to s3://bucket/mirror \(to) \(Self.repo)"
    _ = try fixture.succeed(mirror)
    let id = try #require(try fixture.snapshots().first)
    _ = try fixture.succeed("forget \(id) --allow-last --prune \(Self.repo)")
    try cli.directory.write("other", at: "other/file")
    _ = try fixture.succeed("backup --root other --layout folder \(Self.repo)")
    let refused = try fixture.run("\(mirror) --limit-upload 100M --connections 2")
    let suggested = "'sandboxctl \(mirror) --allow-large-removal' once"
    #expect(refused.code == 3 && refused.errors.contains(suggested), "\(refused)")
    #expect(try fixture.succeed("\(mirror) --allow-large-removal").contains("removed 1 snapshot"))
  }

  /// The server has another name: nothing is mirrored onto or into itself.
  @Test(arguments: [
    ("", "the repository itself"), ("/packs/inner", "within the repository itself"),
  ])
  func theRepositoryIsKnownByItsLease(path: String, place: String) throws {
    let alias = fixture.store.endpoint.replacing("127.0.0.1", with: "localhost")
    let before = try fixture.store.keys()
    let outcome = try fixture.run(
      "mirror --to s3://bucket/place\(path) \(Self.repo) --to-s3-endpoint \(alias)")
    #expect(outcome.code == 1 && outcome.errors.contains("it is \(place)"), "\(outcome)")
    // A dry run takes none.
    let dry = try fixture.run(
      "mirror --dry-run --to s3://bucket/place\(path) \(Self.repo) --to-s3-endpoint \(alias)")
    #expect(dry.code == 3 && dry.errors.contains("may be \(place), reached in"), "\(dry)")
    #expect(!dry.output.contains("up to date"), "\(dry)")
    #expect(try fixture.store.keys() == before)
  }

  /// The endpoints are in profiles, and the text of the repositories is the same: what this host
  /// knows of one does not apply to the other. Records of an earlier version, which had no
  /// endpoint, apply until there are others.
  @Test func recordsOfTwoStoresAreApart() throws {
    try cli.directory.write(
      """
      [first]
      endpoint_url = \(fixture.store.endpoint)
      aws_access_key_id = ACCESSKEYID
      aws_secret_access_key = TOPSECRETKEY
      [second]
      endpoint_url = \(second.endpoint)/
      aws_access_key_id = SECONDKEYID
      aws_secret_access_key = SECONDSECRETKEY

      """, at: "home/.aws/credentials")
    try cli.directory.write("passphrase", at: "pass")
    try cli.directory.directory.setPermissions(0o600, of: "pass")
    func run(_ line: String) throws -> Program.Outcome {
      try fixture.run(line, environment: ["AWS_ENDPOINT_URL_S3": ""])
    }
    let repo = "s3://bucket/both"
    let (first, other) = ("--s3-profile first", "--s3-profile second")
    let keys = "--passphrase-file pass --recovery-key recovery.key --no-default"
    #expect(try run("init \(repo) \(other) --plain --no-default").code == 0)
    #expect(try run("init \(repo) \(first) \(keys)").code == 0)
    let copy = try run(
      "copy --repo \(repo) \(first) --identity recovery.key --to \(repo) --to-s3-profile second")
    #expect(copy.code == 0, "\(copy)")
    let records: ByteString = "home/.local/share/sandboxctl/recipients"
    let names = try cli.names(in: records).filter { $0.description.hasPrefix("at-") }
    let record = try #require(names.first)
    #expect(names.count == 1)
    // The record as an earlier version left it. It may belong to either store, and is not
    // forgotten.
    let earlier = ByteString("at-\(Blake2b.hash(Array(repo.utf8)).hex).txt")
    let content = try cli.directory.read(records.appending(record))
    try cli.directory.write(content, at: records.appending(earlier))
    try cli.directory.directory.remove(records.appending(record))
    let replaced = try run("snapshots --repo \(repo) \(other)")
    #expect(replaced.code == 12 && replaced.errors.contains("\(earlier)"), "\(replaced)")
    #expect(try run("snapshots --repo \(repo) \(first) --identity recovery.key").code == 0)
    #expect(try cli.directory.read(records.appending(record)) == content)
    try cli.directory.directory.remove(records.appending(earlier))
    #expect(try run("snapshots --repo \(repo) \(other)").code == 0)
  }
}
