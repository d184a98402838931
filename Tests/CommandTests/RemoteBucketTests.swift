import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands on a repository in a bucket.
struct RemoteBucketTests {
  private let fixture: S3CommandFixture
  private var cli: CommandLine { fixture.cli }
  private static let repo = "--repo s3://bucket/place"

  init() throws { fixture = try S3CommandFixture() }

  @Test func everyCommandWorksOnABucket() throws {
    _ = try fixture.succeed("init s3://bucket/place --plain")
    let first = try fixture.backUp()
    #expect(first.contains("snapshot"))
    try cli.directory.write("changed", at: "data/d0/0")
    _ = try fixture.backUp()
    let ids = try fixture.snapshots()
    #expect(ids.count == 2)
    for (line, words) in [
      ("snapshots show latest", "folder"), ("ls latest:folders/data/d0", "9"),
      ("find 11", "d2/11"), ("dump latest:folders/data/d0/0", "changed"),
      ("versions folders/data/d0/0", ""), ("diff latest~1 latest", "folders/data/d0/0"),
      ("stats", ""), ("stats --growth", ""), ("check --read-data", ""), ("repair index", ""),
      ("repair packs", ""), ("repair snapshots", ""), ("snapshots pin \(ids[0])", ""),
      ("snapshots unpin \(ids[0])", ""), ("leases", ""), ("forget \(ids[0])", ""), ("prune", ""),
      ("cache list", "s3://bucket/place"), ("restore latest:folders/data --to back", ""),
    ] {
      let output = try fixture.succeed("\(line) \(Self.repo)")
      #expect(output.contains(words) || words.isEmpty, "\(line): \(output)")
    }
    try ChangeDetector.expectSame(cli.directory, "data", "back")
    #expect(try fixture.snapshots() == [ids[1]])
    // Also between buckets, and from one to a directory.
    _ = try fixture.succeed("init s3://bucket/second --plain --no-default")
    _ = try fixture.succeed("copy --to s3://bucket/second \(Self.repo)")
    _ = try fixture.succeed("mirror --to s3://bucket/mirror \(Self.repo)")
    _ = try fixture.succeed("mirror --to mirror \(Self.repo)")
    for place in ["s3://bucket/second", "s3://bucket/mirror", "mirror"] {
      _ = try fixture.succeed("check --read-data --repo \(place)")
    }
    #expect(try fixture.store.keys().allSatisfy { !$0.contains("/leases/") })
  }

  /// A host that has only the recipient stores what it cannot read.
  @Test func aHostWithoutAKeyWritesToABucket() throws {
    _ = try fixture.succeed("init s3://bucket/place --recipient \(cli.makeKey("fleet.key"))")
    for _ in 0..<2 { _ = try fixture.backUp() }
    for line in ["ls latest", "check --read-data", "restore latest --to none"] {
      #expect(try fixture.run("\(line) \(Self.repo)").code != 0, "\(line)")
    }
    _ = try fixture.succeed(
      "restore latest:folders/data --to back \(Self.repo) --identity fleet.key")
    try ChangeDetector.expectSame(cli.directory, "data", "back")
    _ = try fixture.succeed("check --read-data \(Self.repo) --identity fleet.key")
  }

  /// Neither the store nor a file of this host has the secret key or the token: not after commands
  /// that succeed, and not after those that fail.
  @Test func credentialsAreStoredNowhere() throws {
    let secrets = ["TOPSECRETKEY", "TOPSECRETTOKEN"]
    let token = ["AWS_SESSION_TOKEN": secrets[1]]
    var shown = ""
    for line in [
      "init s3://bucket/place --plain", "backup --root data --layout folder --verbose",
      "snapshots --json", "restore latest --to back --json", "schedule status",
      "backup --root data --layout folder --s3-endpoint http://127.0.0.1:1",
    ] {
      let outcome = try fixture.run(line, environment: token)
      shown += outcome.output + outcome.errors
    }
    try fixture.store.setRules(
      #"[{"status": 403, "times": 0, "body": "<Error><Code>AccessDenied</Code></Error>"}]"#)
    for line in ["backup --root data --layout folder", "prune"] {
      let outcome = try fixture.run(line, environment: token)
      #expect(outcome.code == 1, "\(outcome)")
      shown += outcome.output + outcome.errors
    }
    for secret in secrets {
      #expect(!shown.contains(secret))
      #expect(try fixture.store.keys(ofObjectsWith: secret).isEmpty)
      let files = try Program.run("grep", ["-rla", secret, cli.directory.string])
      #expect(files.output.isEmpty, "\(files.output)")
    }
    #expect(try !fixture.store.keys().isEmpty)
  }
}
