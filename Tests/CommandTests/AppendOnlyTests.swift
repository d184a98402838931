import Foundation
import SystemIO
import TestSupport
import Testing

/// `check --append-only`: whether credentials can destroy stored data.
struct AppendOnlyTests {
  private static let check = "check --append-only --repo s3://bucket/place"

  /// A backup works with such credentials, and no command misinterprets the objects that the check
  /// leaves.
  @Test(arguments: [
    (FaultStore.Mode.none, "possible", "these credentials can replace and remove objects"),
    (.appendOnly, "refused", "these credentials can neither replace nor remove objects"),
    (.versions, "possible", "these credentials can replace and remove objects"),
    (.locked, "kept", "stays as a version that they cannot remove"),
  ]) func aBucketIsCheckedByAttempts(
    mode: FaultStore.Mode, outcome: String, words: String
  ) throws {
    let fixture = try S3CommandFixture()
    _ = try fixture.succeed("init s3://bucket/place --plain")
    _ = try fixture.backUp()
    let before = try fixture.store.keys()
    try fixture.store.protect(mode)
    let isProtected = outcome != "possible"
    let checked = try fixture.run(Self.check)
    #expect(checked.code == (isProtected ? 0 : 5), "\(checked)")
    #expect(checked.output.hasSuffix(words + "\n"), "\(checked.output)")
    #expect(checked.errors.contains("hint: use a bucket with object lock") == !isProtected)
    let lines = try fixture.run(Self.check + " --json").output.split(separator: "\n")
      .map { try CommandLine.object($0) }
    let directories = lines.dropLast().compactMap { $0["directory"] as? String }
    #expect(directories == ["packs", "index", "snapshots"])
    for line in lines.dropLast() {
      #expect(line["replacement"] as? String == outcome && line["removal"] as? String == outcome)
    }
    #expect(lines.last?["append_only"] as? Bool == isProtected)
    if mode != .appendOnly { #expect(try fixture.store.keys() == before) }
    _ = try fixture.backUp()
    let all = try fixture.run("check --read-data --repo s3://bucket/place")
    #expect(all.code == 0 && !all.output.contains("probe-"), "\(all)")
    try requireCleanUp(fixture)
  }

  /// After an hour, a prune by a user with more rights removes the objects that the check had to
  /// leave.
  private func requireCleanUp(_ fixture: S3CommandFixture) throws {
    try fixture.store.protect(.none)
    _ = try fixture.succeed("prune --repo s3://bucket/place")
    try fixture.store.advance(by: 3700)
    _ = try fixture.succeed("prune --repo s3://bucket/place")
    #expect(try fixture.store.keys().filter { $0.contains("probe-") }.isEmpty)
    #expect(try fixture.snapshots().count == 2)
    _ = try fixture.succeed("check --read-data --repo s3://bucket/place")
  }

  /// Such a host cannot remove its leases, and marks them as those of programs that have ended.
  @Test func aHostThatMayNotRemoveIsNotWaitedFor() throws {
    let fixture = try S3CommandFixture()
    _ = try fixture.succeed("init s3://bucket/place --plain --no-default")
    _ = try fixture.backUp()
    try fixture.store.protect(.appendOnly)
    try fixture.cli.directory.write("new", at: "data/new")
    _ = try fixture.backUp()
    #expect(try fixture.store.keys().filter { $0.hasSuffix("/dead") }.count == 1)
    #expect(try fixture.succeed("leases --repo s3://bucket/place").isEmpty)
    let check = try fixture.succeed("check --repo s3://bucket/place")
    #expect(check.contains("a program that has ended left 0 unfinished objects"), "\(check)")
    try fixture.store.protect(.none)
    try fixture.store.advance(by: 90_000)
    _ = try fixture.succeed("prune --repo s3://bucket/place")
    #expect(try fixture.store.keys().filter { $0.contains("/leases/") }.isEmpty)
  }

  /// A user of a directory can remove its files.
  @Test func aDirectoryIsNotProtected() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain")
    let outcome = try cli.run("check --append-only --repo repo")
    #expect(outcome.code == 5, "\(outcome)")
    #expect(outcome.output.contains("packs      replacement possible, removal possible"))
    #expect(outcome.errors.contains("hint: a file system and SFTP cannot forbid it"))
    #expect(try cli.names(in: "repo/packs").allSatisfy { $0.description.count == 2 })
    #expect(try cli.names(in: "repo/leases").isEmpty)
  }

  /// A forced command that denies removals still permits replacing files, which the check reports.
  @Test(SFTPServer.isInstalled) func aServerThatDeniesRemovalsIsNotProtected() throws {
    let cli = try CommandLine()
    let server = try SFTPServer(for: cli, "-e $(cat \(cli.directory.string)/denied)")
    try cli.directory.write("", at: "denied")
    let repo = server.repository()
    _ = try cli.succeed("init \(server.location()) --plain --no-default \(server.option)")
    try cli.directory.write("-P remove,rmdir", at: "denied")
    let outcome = try cli.run("check --append-only \(repo)")
    #expect(outcome.code == 5, "\(outcome)")
    #expect(outcome.output.contains("replacement possible"), "\(outcome)")
    try cli.directory.write("", at: "denied")
    _ = try cli.succeed("prune \(repo)")
    _ = try cli.succeed("check --read-data \(repo)")
  }

  @Test func otherChecksCannotBeMadeAtTheSameTime() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain")
    let outcome = try cli.run("check --append-only --read-data --repo repo")
    #expect(outcome.code == 2 && outcome.errors.contains("cannot be used together"), "\(outcome)")
  }
}
