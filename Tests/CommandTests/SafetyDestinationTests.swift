import Foundation
import SystemIO
import TestSupport
import Testing

/// The snapshots that operations make of the data they are about to change contain the same data as
/// backups to the same repository: in an encrypted one, also the data that an app excludes from
/// unencrypted backups.
struct SafetyDestinationTests {
  private let fixture: S3CommandFixture
  private var cli: CommandLine { fixture.cli }
  private static let app = "apps/org.example.notebook"
  /// A note that the app excludes from unencrypted backups.
  private static let note = "Documents/Notes/Recipes.md"
  private static let vault = "--repo vault --identity key"

  init() throws {
    fixture = try S3CommandFixture()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init vault --recipient \(cli.makeKey()) --no-default")
    try mark(Self.note, on: "device")
  }

  /// Excludes an entry of the app from backups to one kind of repository.
  private func mark(_ inner: String, on device: String, for kind: String = "unencrypted") throws {
    _ = try cli.succeed("exclude notebook/\(inner) --root \(device) --for \(kind)")
  }

  private func location(of path: String, on device: String = "device") throws -> ByteString {
    let found = try cli.containers(of: device).first { $0.path == ByteString(path) }
    return try #require(found).realPath
  }

  /// The real path of an entry of the app's data.
  private func path(_ inner: String, on device: String = "device") throws -> String {
    try location(of: Self.app + "/data", on: device).appending(ByteString(inner)).description
  }

  private func text(_ inner: String = note, on device: String = "device") throws -> String {
    try String(contentsOfFile: path(inner, on: device), encoding: .utf8)
  }

  /// Changes a file in place, so that it keeps its marks.
  private func write(_ text: String, to inner: String = note) throws {
    let path = try path(inner)
    if !FileManager.default.fileExists(atPath: path) {
      _ = FileManager.default.createFile(atPath: path, contents: nil)
    }
    let file = try #require(FileHandle(forWritingAtPath: path))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: Data(text.utf8))
    try file.close()
  }

  /// Whether a snapshot has an entry of the app's data.
  private func has(_ inner: String = note, in snapshot: String) throws -> Bool {
    try cli.succeed("ls \(snapshot) --recursive \(Self.vault)")
      .contains("\(Self.app)/data/\(inner)")
  }

  /// The snapshots with a reason, the oldest first.
  private func snapshots(_ reason: String) throws -> [String] {
    try cli.jsonLines("snapshots --json \(Self.vault)").filter { $0["reason"] as? String == reason }
      .compactMap { $0["id"] as? String }
  }

  /// Copies the app's bundle as a package.
  private func makePackage() throws {
    let bundle = try location(of: Self.app + "/bundle")
    let copied = try Program.run(
      "cp", ["-a", "\(bundle)/Notebook.app", "New.app"], in: cli.directory.url)
    #expect(copied.code == 0, "\(copied.errors)")
  }

  /// The names of the files at the top of the app's bundle.
  private func bundleFiles() throws -> [String] {
    let container = try location(of: Self.app + "/bundle").description
    let names = try FileManager.default.contentsOfDirectory(atPath: container)
    let bundle = try #require(names.first { $0.hasSuffix(".app") })
    return try FileManager.default.contentsOfDirectory(atPath: "\(container)/\(bundle)")
  }

  // MARK: - Updates

  @Test func aRollbackRestoresWhatAnEncryptedRepositoryMayHave() throws {
    try makePackage()
    let before = try text()
    let report = try cli.json("update New.app --root device --json \(Self.vault)")
    #expect(try has(in: #require(report["saved"] as? String)))
    try write("changed")
    _ = try cli.succeed("rollback notebook --data before --root device \(Self.vault)")
    #expect(try text() == before)
    #expect(try snapshots("pre-rollback").count { try has(in: $0) } == 1)
  }

  /// A dry run knows the repository and reports the data that a snapshot in it lacks.
  @Test func aDryRunNamesWhatTheSnapshotLacks() throws {
    try makePackage()
    _ = try cli.succeed("init plain --plain --no-default")
    for (repository, isNamed) in [("plain", true), ("vault", false)] {
      let plan = try cli.json(
        "update New.app --root device --dry-run --json --repo \(repository)")
      let left = try #require(plan["not_in_snapshot"] as? [[String: Any]])
      let rules = left.compactMap { $0["rule"] as? String }
      #expect(rules.contains("excluded-from-unencrypted-backup") == isNamed, "\(rules)")
    }
  }

  /// In a bucket, the snapshot has the bundle, without which there is no rollback, and lacks the
  /// data that the app excludes from clouds, which is left unchanged.
  @Test func aRollbackFromABucketRestoresTheBundle() throws {
    let place = "--repo s3://bucket/place"
    try makePackage()
    try cli.directory.write("new", at: "New.app/added")
    let local = "Documents/Notes/Groceries.md"
    try mark(local, on: "device", for: "cloud")
    _ = try fixture.succeed("init s3://bucket/place --plain --no-default")
    let report = try CommandLine.object(
      fixture.succeed("update New.app --root device --json \(place)"))
    let saved = try #require(report["saved"] as? String)
    let list = try fixture.succeed("ls \(saved) --recursive \(place)")
    #expect(list.contains("\(Self.app)/bundle/Notebook.app/Info.plist"))
    #expect(!list.contains("\(Self.app)/data/\(local)"))
    #expect(try bundleFiles().contains("added"))
    try write("kept", to: local)
    _ = try fixture.succeed("rollback notebook --data before --root device \(place)")
    let files = try bundleFiles()
    #expect(files.contains("Info.plist") && !files.contains("added"))
    #expect(try text(local) == "kept")
  }

  // MARK: - Restores

  /// A replaced file is in the snapshot, and needs no second name beside the restored one. Marked
  /// files that the snapshot lacks are not deleted: it may be a copy from a repository without
  /// encryption.
  @Test func aRestoreSavesWhatAnEncryptedRepositoryMayHave() throws {
    _ = try cli.succeed("backup --root device \(Self.vault)")
    let before = try text()
    try write("changed")
    for (name, isMarked) in [("marked.md", true), ("other.md", false)] {
      try write("new", to: "Documents/Notes/\(name)")
      if isMarked { try mark("Documents/Notes/\(name)", on: "device") }
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: path("Documents/Notes"))
    let report = try cli.json(
      "restore latest --app notebook --in-place --delete --json \(Self.vault)")
    let saved = try #require(report["saved"] as? String)
    #expect(try has(in: saved) && has("Documents/Notes/marked.md", in: saved))
    #expect(try text() == before)
    let left = try FileManager.default.contentsOfDirectory(atPath: path("Documents/Notes"))
    #expect(Set(left) == Set(names).subtracting(["other.md"]))
    _ = try cli.succeed("restore \(saved) --in-place \(Self.vault)")
    #expect(try text() == "changed")
  }

  /// A restore from a copy in a local repository does not delete data that a bucket never contains,
  /// either.
  @Test func aRestoreFromACopyKeepsWhatTheBucketLacks() throws {
    let local = "Documents/Notes/local.md"
    try write("local", to: local)
    try mark(local, on: "device", for: "cloud")
    _ = try fixture.succeed("init s3://bucket/place --plain --no-default")
    _ = try fixture.succeed("backup --root device --repo s3://bucket/place")
    _ = try fixture.succeed("copy --repo s3://bucket/place --to vault --to-identity key")
    try write("new", to: "Documents/Notes/other.md")
    _ = try cli.succeed("restore latest --app notebook --in-place --delete \(Self.vault)")
    #expect(try text(local) == "local")
    let left = try FileManager.default.contentsOfDirectory(atPath: path("Documents/Notes"))
    #expect(!left.contains("other.md"))
    #expect(try bundleFiles().contains("Info.plist"))
    _ = try cli.succeed(
      "restore latest --app notebook --in-place --delete --delete-excluded \(Self.vault)")
    #expect(throws: (any Error).self) { try text(local) }
  }

  // MARK: - Migrations

  @Test func aMigrationBetweenDevicesSavesAndMovesMarkedData() throws {
    _ = try cli.succeed("sample other")
    try mark(Self.note, on: "other")
    let moved = "Documents/Notes/moved.md"
    try write("moved", to: moved)
    try mark(moved, on: "device")
    let line = "migrate --from device --to other --app notebook \(Self.vault)"
    let preview = try cli.jsonLines(line + " --dry-run --json")
    let data = try #require(preview.first { $0["path"] as? String == "\(Self.app)/data" })
    #expect((data["copy"] as? [String: Any])?["files"] as? Int == 1, "\(data)")
    _ = try cli.succeed(line)
    #expect(try text(moved, on: "other") == "moved")
    let saved = try snapshots("pre-restore")
    #expect(try saved.count == 1 && saved.allSatisfy { try has(in: $0) })
  }

  @Test func aMigrationBetweenFormsSavesMarkedData() throws {
    for (path, text) in [
      (".mozilla/firefox/profiles.ini", "[Profile0]\nName=x\nIsRelative=1\nPath=x.default\n"),
      (".mozilla/firefox/x.default/places.sqlite", "places"),
      (".var/app/org.mozilla.firefox/data/secret", "secret"),
      (".var/app/org.mozilla.firefox/data/other", "other"),
    ] {
      try cli.directory.write(text, at: ByteString("home/\(path)"))
    }
    try cli.directory.write(
      """
      policy: mine
      schema: 1
      extends: [flatpak]
      rules:
        - {id: secret, in: [data], match: data/secret, backup: {unencrypted: never}}

      """, at: "mine.yaml")
    _ = try cli.succeed(
      "migrate --from host:home --to flatpak:home --app firefox --policy mine.yaml \(Self.vault)")
    let saved = try #require(snapshots("pre-restore").first)
    let list = try cli.succeed("ls \(saved) --recursive \(Self.vault)")
    #expect(list.contains("apps/org.mozilla.firefox/data/data/other"), "\(list)")
    #expect(list.contains("apps/org.mozilla.firefox/data/data/secret"), "\(list)")
  }
}
