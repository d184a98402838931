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
    try exercise("bucket") { try fixture.succeed($0) }
    #expect(try fixture.store.keys().allSatisfy { !$0.contains("/leases/") })
  }

  /// Ceph RGW checks signatures, hashes and conditions. In `make test` only the storage runs on it.
  @Test(.enabled(if: Sampling.isWhole && Peers.areInstalled && StoreLab.ceph != nil))
  func everyCommandWorksOnCeph() throws {
    let lab = try #require(StoreLab.ceph)
    let bucket = "sandboxctl-" + Host.randomHex(bytes: 6)
    let script = """
      import boto3, sys
      url, key, secret, bucket = sys.argv[1:]
      store = boto3.client("s3", endpoint_url=url, aws_access_key_id=key,
                           aws_secret_access_key=secret, region_name="us-east-1")
      store.create_bucket(Bucket=bucket)
      """
    let made = try Program.run(
      Peers.python.path, ["-c", script, lab.endpoint, lab.accessKey, lab.secret, bucket])
    #expect(made.code == 0, "\(made.errors)")
    let environment = [
      "AWS_ACCESS_KEY_ID": lab.accessKey, "AWS_SECRET_ACCESS_KEY": lab.secret,
      "AWS_ENDPOINT_URL_S3": lab.endpoint,
    ]
    try exercise(bucket) { line in
      let outcome = try fixture.run(line, environment: environment)
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
      return outcome.output
    }
  }

  /// Runs every command on repositories in a bucket. `succeed` runs one that must succeed.
  private func exercise(_ bucket: String, succeed: (String) throws -> String) throws {
    let place = "s3://\(bucket)/place"
    let backup = "backup --root data --layout folder --repo \(place)"
    _ = try succeed("init \(place) --plain")
    #expect(try succeed(backup).contains("snapshot"))
    try cli.directory.write("changed", at: "data/d0/0")
    _ = try succeed(backup)
    func snapshots() throws -> [String] {
      try succeed("snapshots --json --repo \(place)").split(separator: "\n")
        .compactMap { try CommandLine.object($0)["id"] as? String }
    }
    let ids = try snapshots()
    #expect(ids.count == 2)
    for (line, words) in [
      ("snapshots show latest", "folder"), ("ls latest:folders/data/d0", "9"),
      ("find 11", "d2/11"), ("dump latest:folders/data/d0/0", "changed"),
      ("versions folders/data/d0/0", ""), ("diff latest~1 latest", "folders/data/d0/0"),
      ("stats", ""), ("stats --growth", ""), ("check --read-data", ""), ("repair index", ""),
      ("repair packs", ""), ("repair snapshots", ""), ("snapshots pin \(ids[0])", ""),
      ("snapshots unpin \(ids[0])", ""), ("leases", ""), ("forget \(ids[0])", ""), ("prune", ""),
      ("cache list", place), ("restore latest:folders/data --to back", ""),
    ] {
      let output = try succeed("\(line) --repo \(place)")
      #expect(output.contains(words) || words.isEmpty, "\(line): \(output)")
    }
    try ChangeDetector.expectSame(cli.directory, "data", "back")
    #expect(try snapshots() == [ids[1]])
    // The same between buckets, and from a bucket to a directory.
    let (second, mirror) = ("s3://\(bucket)/second", "s3://\(bucket)/mirror")
    _ = try succeed("init \(second) --plain --no-default")
    _ = try succeed("copy --to \(second) --repo \(place)")
    _ = try succeed("mirror --to \(mirror) --repo \(place)")
    _ = try succeed("mirror --to mirror --repo \(place)")
    for copy in [second, mirror, "mirror"] { _ = try succeed("check --read-data --repo \(copy)") }
  }

  /// A repository inside another would be listed with it, and a repository is not a copy of itself.
  @Test func copiesAreApart() throws {
    for place in ["s3://bucket/place", "s3://bucket/place/sub", "s3://bucket"] {
      for command in ["copy", "mirror"] {
        let outcome = try fixture.run("\(command) --to \(place) \(Self.repo)")
        #expect(outcome.code == 2, "\(command) \(place)")
        let words =
          place == "s3://bucket/place" ? "is the repository itself" : "is inside the other"
        #expect(outcome.errors.contains(words), "\(outcome.errors)")
      }
    }
  }

  /// All commands that change keys, each with the key that is valid at that point.
  @Test func keysOfARepositoryInABucketAreChanged() throws {
    for name in ["one", "two", "three"] {
      try cli.directory.write("\(name)\n", at: ByteString(name))
    }
    _ = try fixture.succeed("init s3://bucket/place --passphrase-file one --recovery-key recovery")
    let backup = "backup --layout folder --root data \(Self.repo)"
    _ = try fixture.succeed("\(backup) --passphrase-file one")
    let key = { (name: String) in "\(Self.repo) --passphrase-file \(name)" }
    _ = try fixture.succeed("key change --new-passphrase-file two \(key("one"))")
    #expect(try fixture.run("ls latest \(key("one"))").code != 0)
    _ = try fixture.succeed("ls latest \(key("two"))")
    _ = try fixture.succeed("key add second --new-passphrase-file three \(key("two"))")
    #expect(try fixture.succeed("key list \(key("three"))").contains("second"))
    _ = try fixture.succeed("\(backup) --passphrase-file three")
    _ = try fixture.succeed("key remove second \(key("two"))")
    #expect(try fixture.run("ls latest \(key("three"))").code != 0)
    _ = try fixture.succeed("key rotate --recovery-key next.key \(key("two"))")
    try cli.directory.write("changed", at: "data/d0/0")
    _ = try fixture.succeed("\(backup) --passphrase-file two")
    _ = try fixture.succeed("key rewrap \(key("two"))")
    _ = try fixture.succeed("check --read-data \(Self.repo) --identity next.key")
    _ = try fixture.succeed(
      "restore latest:folders/data --to back \(Self.repo) --identity next.key")
    try ChangeDetector.expectSame(cli.directory, "data", "back")
  }

  /// The kernel shows the data that a restore writes, even for an encrypted repository in a bucket.
  @Test(.enabled(if: MountedView.isPossible)) func anEncryptedBucketIsMounted() throws {
    var random = Seeded(5)
    try cli.directory.write(random.bytes(3_000_000), at: "data/large")
    _ = try fixture.succeed("init s3://bucket/place --recipient \(cli.makeKey("fleet.key"))")
    _ = try fixture.backUp()
    let view = try MountedView(
      cli, "--identity fleet.key", repo: "s3://bucket/place", environment: fixture.environment)
    try ChangeDetector.expectSame(cli.directory, "data", "view/latest/folders/data")
    let readers = try Program.run(
      "bash",
      ["-c", "for i in {1..32}; do cmp data/large view/latest/folders/data/large & done; wait"],
      in: cli.directory.url)
    #expect(readers.code == 0 && readers.output.isEmpty && readers.errors.isEmpty)
    #expect(view.end(by: SIGTERM) == 0 && !view.isMounted, "\(view.errors)")
    #expect(try fixture.store.keys().allSatisfy { !$0.contains("/leases/") })
  }

  /// A host that has only the recipient stores data that it cannot read.
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

  /// Neither the store nor a file of this host has the secret key or the token: neither after
  /// commands that succeed nor after those that fail.
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
