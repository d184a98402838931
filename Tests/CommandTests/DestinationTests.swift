import Foundation
import SystemIO
import TestSupport
import Testing

/// The data that the policy keeps depends on the repository: an app's token that must not be in an
/// unencrypted backup is in an encrypted one, and bundles are not in a bucket.
struct DestinationTests {
  private let fixture: S3CommandFixture
  private var cli: CommandLine { fixture.cli }
  private static let token =
    "apps/com.example.podcast/data/Library/Application Support/Account.token"
  private static let bundle = "apps/org.example.notebook/bundle"
  private static let document = "apps/org.example.notebook/data/Documents"

  init() throws {
    fixture = try S3CommandFixture()
    _ = try fixture.cli.succeed("sample device")
  }

  /// Backs the device up and returns the paths in the snapshot, and the files of a dry run.
  private func paths(_ options: String, key: String = "") throws -> (stored: String, dry: Int) {
    let dry = try CommandLine.object(
      fixture.succeed("backup --root device --dry-run --json \(options)"))
    let files = (dry["keeps"] as? [String: Any])?["files"] as? Int
    _ = try fixture.succeed("backup --root device \(options)")
    return (
      try fixture.succeed("ls latest --recursive \(options) \(key)"), try #require(files)
    )
  }

  @Test func theRepositoryDecidesWhatIsKept() throws {
    _ = try cli.succeed("init plain --plain --no-default")
    _ = try cli.succeed("init encrypted --recipient \(cli.makeKey()) --no-default")
    _ = try fixture.succeed("init s3://bucket/place --plain --no-default")
    let plain = try paths("--repo plain")
    let encrypted = try paths("--repo encrypted", key: "--identity key")
    let bucket = try paths("--repo s3://bucket/place")
    for found in [plain, encrypted, bucket] { #expect(found.stored.contains(Self.document)) }
    #expect(!plain.stored.contains(Self.token) && !bucket.stored.contains(Self.token))
    #expect(encrypted.stored.contains(Self.token))
    #expect(plain.stored.contains(Self.bundle) && encrypted.stored.contains(Self.bundle))
    #expect(!bucket.stored.contains(Self.bundle + "/Notebook.app"))
    #expect(encrypted.dry == plain.dry + 1)
    #expect(bucket.dry < plain.dry)
  }

  /// An app that is installed gets its data from a bucket, and keeps its bundle.
  @Test func dataOfABucketIsRestoredInPlace() throws {
    let note = "Documents/Notes/Groceries.md"
    let found = try Program.run(
      "find", [cli.directory.string + "/device", "-path", "*/\(note)"])
    let path = String(found.output.dropLast())
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    _ = try fixture.succeed("init s3://bucket/place --plain --no-default")
    _ = try fixture.succeed("backup --root device --repo s3://bucket/place")
    try Data("changed".utf8).write(to: URL(fileURLWithPath: path))
    let added = String(path.dropLast("Groceries.md".count)) + "added.md"
    try Data("added".utf8).write(to: URL(fileURLWithPath: added))
    let marked = String(path.dropLast("Groceries.md".count)) + "local.md"
    try Data("local".utf8).write(to: URL(fileURLWithPath: marked))
    let mark = "user.com.apple.metadata:com_apple_cloudBackup_excludeItem"
    let set = try Program.run("setfattr", ["-n", mark, "-v", "com.apple.backupd", marked])
    let files = { (name: String) in FileManager.default.fileExists(atPath: name) }
    // Data that a bucket never contains is not removed either, although the snapshot lacks it.
    _ = try fixture.succeed(
      "restore latest --app notebook --in-place --delete --repo s3://bucket/place")
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    #expect(!files(added))
    #expect(files(marked) == (set.code == 0))
    let bundles = try Program.run(
      "find", [cli.directory.string + "/device", "-path", "*/Notebook.app/Info.plist"])
    #expect(!bundles.output.isEmpty)
    // A policy can store bundles in a bucket, too.
    try cli.directory.write(
      """
      policy: mine
      schema: 1
      extends: [ios]
      classes:
        bundle: {backup: when-changed}

      """, at: "mine.yaml")
    _ = try fixture.succeed(
      "backup --root device --policy mine.yaml --repo s3://bucket/place")
    let stored = try fixture.succeed("ls latest --recursive --repo s3://bucket/place")
    #expect(stored.contains(Self.bundle + "/Notebook.app"))
  }
}
