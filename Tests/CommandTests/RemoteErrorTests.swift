import Foundation
import SystemIO
import TestSupport
import Testing

/// Errors that a user sees if a bucket, its store or the keys have a problem.
struct RemoteErrorTests {
  /// Runs a command that fails, and checks the properties of every error.
  private func fail(
    _ line: String, _ fixture: S3CommandFixture, code: Int32 = 1
  ) throws -> String {
    let outcome = try fixture.run(line)
    #expect(outcome.code == code, "\(line): \(outcome)")
    #expect(outcome.errors.contains("error: cannot "), "\(line): \(outcome.errors)")
    #expect(outcome.errors.contains("hint: "), "\(line): \(outcome.errors)")
    for secret in ["TOPSECRETKEY", "AWS4-HMAC"] {
      #expect(!(outcome.errors + outcome.output).contains(secret), "\(line)")
    }
    return outcome.errors
  }

  private static let bucket = "s3://bucket/place"

  /// Returns a rule for all requests.
  private static func always(_ status: Int, _ code: String, _ more: String = "") -> String {
    #"[{"status": \#(status), "times": 0, "body": "<Error><Code>\#(code)</Code></Error>"\#(more)}]"#
  }

  private static let page =
    #"[{"status": 200, "times": 0, "headers": {"Content-Type": "text/html"}, "#
    + #""body": "<!DOCTYPE html><html>Welcome</html>"}]"#

  /// The error is that of the store, whatever the command.
  @Test(arguments: [
    "snapshots --repo s3://bucket/place", "init s3://bucket/place --plain",
    "backup --root data --layout folder --repo s3://bucket/place",
  ]) func aStoreThatRefusesEverythingIsExplained(line: String) throws {
    let fixture = try S3CommandFixture()
    for (rules, words) in [
      (Self.always(403, "SignatureDoesNotMatch"), "the secret access key is wrong"),
      (Self.always(403, "InvalidAccessKeyId"), "the store does not know the access key ID"),
      (
        Self.always(403, "RequestTimeTooSkewed", #", "headers": {"Date": "\#(Self.lateDate)"}"#),
        "by 20 minutes"
      ),
      (Self.page, "returned a web page instead of an S3 response"),
      (Self.always(403, "AccessDenied"), "the store denies access"),
      (Self.always(400, "ExpiredToken"), "the session token is invalid"),
    ] {
      try fixture.store.setRules(rules)
      let errors = try fail(line, fixture)
      #expect(errors.contains(words), "\(line): \(errors)")
    }
  }

  /// Sums of sizes do not overflow, whatever a store states.
  @Test func impossibleSizesInListingsDoNotEndTheProgram() throws {
    let fixture = try S3CommandFixture()
    _ = try fixture.succeed("init \(Self.bucket) --plain")
    _ = try fixture.backUp()
    try fixture.store.protect(.hugeSizes)
    for line in [
      "check --read-data", "stats", "prune --dry-run", "restore latest --to into",
      "mirror --to other", "repair packs --dry-run",
    ] {
      let outcome = try fixture.run("\(line) --repo \(Self.bucket)")
      #expect([0, 1, 3, 13].contains(outcome.code), "\(line): \(outcome)")
    }
    try fixture.store.protect(.none)
    #expect(try fixture.run("check --read-data --repo \(Self.bucket)").code != 1)
    _ = try fixture.succeed("restore latest --to whole --repo \(Self.bucket)")
  }

  /// The time of a store whose clock is 20 minutes late, in the form of a header.
  private static let lateDate: String = {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "GMT")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.string(from: Date(timeIntervalSinceNow: -1200))
  }()

  @Test func aBucketThatIsNotThereIsNamed() throws {
    let fixture = try S3CommandFixture()
    for line in [
      "snapshots --repo s3://no-such-bucket/place", "init s3://no-such-bucket/place --plain",
    ] {
      let errors = try fail(line, fixture, code: 10)
      #expect(errors.contains("cannot find the bucket 'no-such-bucket'"), "\(errors)")
      #expect(errors.contains("create the bucket"), "\(errors)")
    }
    // A bucket without a repository.
    let errors = try fail("snapshots --repo s3://bucket/place", fixture, code: 10)
    #expect(errors.contains("sandboxctl init"), "\(errors)")
  }

  /// Objects of others are unchanged, beside a repository and in its place.
  @Test func aBucketWithOtherThingsKeepsThem() throws {
    let fixture = try S3CommandFixture()
    _ = try fixture.succeed("init s3://bucket/other/place --plain --no-default")
    let before = try fixture.store.keys()
    #expect(before.contains("other/place/repository.json"))
    for place in ["s3://bucket", "s3://bucket/other"] {
      let errors = try fail("init \(place) --plain", fixture)
      #expect(errors.contains("not empty"), "\(errors)")
    }
    #expect(try fixture.store.keys() == before)
    _ = try fixture.succeed("init \(Self.bucket) --plain")
    _ = try fixture.backUp()
    _ = try fixture.backUp()
    _ = try fixture.succeed("forget --keep-last 1 --prune --repo \(Self.bucket)")
    let keys = try fixture.store.keys()
    #expect(keys.filter { $0.hasPrefix("other/") } == before)
    #expect(keys.allSatisfy { $0.hasPrefix("other/") || $0.hasPrefix("place/") })
  }

  @Test func aStoreWhoseListingLiesIsRefused() throws {
    let fixture = try S3CommandFixture()
    try fixture.store.setRules(
      #"[{"query": "list-type", "status": 200, "times": 0, "body": "<ListBucketResult/>"}]"#)
    let errors = try fail("init \(Self.bucket) --plain", fixture)
    #expect(errors.contains("a new object is not listed"), "\(errors)")
    #expect(errors.contains("strongly consistent"), "\(errors)")
    #expect(try fixture.store.keys().isEmpty)
  }

  /// A user who may only read can list, check and restore; a backup fails with the reason.
  @Test func aUserWithoutTheRightToWriteCanRestore() throws {
    let fixture = try S3CommandFixture()
    _ = try fixture.succeed("init \(Self.bucket) --plain")
    for _ in 0..<2 { _ = try fixture.backUp() }
    let denied = #""status": 403, "times": 0, "body": "<Error><Code>AccessDenied</Code></Error>""#
    let methods = ["PUT", "POST", "DELETE"].map { #"{"method": "\#($0)", \#(denied)}"# }
    try fixture.store.setRules("[\(methods.joined(separator: ", "))]")
    for line in ["backup --root data --layout folder", "prune", "forget latest~1"] {
      let errors = try fail("\(line) --repo \(Self.bucket)", fixture)
      #expect(errors.contains("the store denies access"), "\(errors)")
      #expect(errors.contains("permissions of these credentials"), "\(errors)")
    }
    for line in ["snapshots", "check --read-data", "restore latest --to back", "ls latest"] {
      _ = try fixture.succeed("\(line) --repo \(Self.bucket)")
    }
  }

  /// The run ends with the reason; the next one continues with the data that it stored.
  @Test func credentialsThatExpireInTheMiddleEndABackup() throws {
    let fixture = try S3CommandFixture()
    _ = try fixture.succeed("init \(Self.bucket) --plain")
    try fixture.store.setRules(
      #"[{"skip": 9, "status": 400, "times": 0, "body": "<Error><Code>ExpiredToken</Code></Error>"}]"#
    )
    let errors = try fail("backup --root data --layout folder --repo \(Self.bucket)", fixture)
    #expect(errors.contains("the session token is invalid or has expired"), "\(errors)")
    #expect(errors.contains("renew the credentials"), "\(errors)")
    try fixture.store.setRules("[]")
    _ = try fixture.backUp()
    #expect(try fixture.snapshots().count == 1)
  }

  /// Credentials from a command are requested again in the middle of a backup.
  @Test func credentialsOfACommandAreRenewedInTheMiddle() throws {
    let fixture = try S3CommandFixture()
    let place = fixture.cli.directory.string
    try fixture.cli.directory.write(
      """
      echo x >> \(place)/calls
      echo '{"Version": 1, "AccessKeyId": "KEY", "SecretAccessKey": "TOPSECRETKEY"}'

      """, at: "credentials.sh")
    try fixture.cli.directory.write(
      """
      [backup]
      credential_process = sh \(place)/credentials.sh
      endpoint_url = \(fixture.store.endpoint)

      """, at: "home/.aws/config")
    _ = try fixture.succeed("init \(Self.bucket) --plain --s3-profile backup")
    let calls = try fixture.cli.directory.read("calls").count
    try fixture.store.setRules(
      #"[{"skip": 9, "status": 400, "body": "<Error><Code>ExpiredToken</Code></Error>"}]"#)
    _ = try fixture.backUp()
    #expect(try fixture.cli.directory.read("calls").count == calls + 4)
    #expect(try fixture.snapshots().count == 1)
  }
}

/// Errors that a user sees if a server behind SSH has a problem.
struct RemoteServerErrorTests {
  private let cli: CommandLine
  private let place: String

  init() throws {
    cli = try CommandLine()
    place = cli.directory.string
    try cli.directory.write("text", at: "data/file")
  }

  private func writeProgram(_ text: String) throws { try cli.writeProgram(text, at: "ssh") }

  private func outcome(_ line: String) throws -> Program.Outcome {
    try cli.run("\(line) --ssh-command \(place)/ssh")
  }

  /// The message of ssh(1) ends the command at once, with a remedy.
  @Test(arguments: [
    (
      "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @",
      "the host key of the server has changed", "ssh-keygen -R"
    ),
    ("Host key verification failed.", "the host key of the server is not known", "fingerprint"),
    (
      "backup@host: Permission denied (publickey).", "the server refused the login", "ssh-agent"
    ),
  ]) func aServerThatIsNotTheKnownOneIsExplained(text: String, reason: String, hint: String) throws
  {
    try writeProgram("echo '\(text)' >&2; exit 255")
    for line in ["snapshots --repo sftp:host/x", "init sftp:host/x --plain"] {
      let outcome = try outcome(line)
      #expect(outcome.code == 1, "\(line)")
      #expect(outcome.errors.contains(reason), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains(hint), "\(line): \(outcome.errors)")
    }
  }

  /// A read-only server, such as `internal-sftp -R`.
  @Test(SFTPServer.isInstalled) func aServerThatOnlyReadsCanRestore() throws {
    let repo = try SFTPServer(for: cli).location()
    #expect(try outcome("init \(repo) --plain --no-default").code == 0)
    #expect(try outcome("backup --root data --layout folder --repo \(repo)").code == 0)
    _ = try SFTPServer(for: cli, "-e -R")
    let refused = try outcome("backup --root data --layout folder --repo \(repo)")
    #expect(refused.code == 1, "\(refused)")
    #expect(refused.errors.contains("the server denies permission"), "\(refused.errors)")
    for line in ["snapshots", "check --read-data", "restore latest --to back"] {
      let outcome = try outcome("\(line) --repo \(repo)")
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    }
  }
}
