import SystemIO
import TestSupport
import Testing

/// Backups of a source that lost everything, such as the mount point of an unmounted disk.
struct EmptiedSourceTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private func remove(_ name: ByteString, in directory: ByteString) throws {
    try Directory.open(path: cli.directory.path(directory)).removeTree(name)
  }

  @Test func emptiedDirectoryIsReportedOnce() throws {
    try cli.directory.write("text", at: "mnt/disk/notes/file")
    let backup = "backup --layout folder --root mnt/disk --repo repo --quiet"
    _ = try cli.succeed(backup)
    try remove("notes", in: "mnt/disk")
    let outcome = try cli.run(backup)
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.errors.contains("warning: folders/disk"), "\(outcome.errors)")
    #expect(outcome.errors.contains("it is empty, while the last snapshot"), "\(outcome.errors)")
    #expect(
      outcome.errors.contains("has 1 file: check that its disk is mounted"), "\(outcome.errors)")
    #expect(try cli.snapshots().count == 2, "the snapshot is made")
    #expect(try cli.run(backup).code == 0)
  }

  @Test func emptiedDirectoryIsAWarningInJSON() throws {
    try cli.directory.write("text", at: "mnt/disk/file")
    let backup = "backup --layout folder --root mnt/disk --repo repo --json"
    #expect(try cli.json(backup)["warnings"] as? [[String: String]] == [])
    try Directory.open(path: cli.directory.path("mnt/disk")).remove("file")
    let outcome = try cli.run(backup)
    #expect(outcome.code == 3, "\(outcome.errors)")
    let warnings = try CommandLine.object(outcome.output)["warnings"] as? [[String: String]]
    #expect(warnings?.first?["path"] == "folders/disk")
    #expect(warnings?.first?["note"]?.contains("check that its disk is mounted") == true)
    #expect(try cli.json(backup)["warnings"] as? [[String: String]] == [])
  }

  @Test func directoryThatWasAlwaysEmptyIsNotReported() throws {
    try cli.directory.directory.createDirectory("empty", permissions: 0o700)
    let backup = "backup --layout folder --root empty --repo repo"
    #expect(try cli.run(backup).code == 0)
    #expect(try cli.run(backup).code == 0)
    // Neither is a directory in which only files are gone.
    try cli.directory.write("text", at: "empty/inner/file")
    #expect(try cli.run(backup).code == 0)
    try Directory.open(path: cli.directory.path("empty/inner")).remove("file")
    #expect(try cli.run(backup).code == 0)
  }

  @Test func deviceWithoutItsAppsIsReportedOnce() throws {
    try cli.directory.write("text", at: "user/.var/app/org.example.App/data/file")
    let backup = "backup --layout flatpak --root user --repo repo --quiet"
    _ = try cli.succeed(backup)
    try remove("org.example.App", in: "user/.var/app")
    let outcome = try cli.run(backup)
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(
      outcome.errors.contains("user/.var/app: no app was found there, while the last snapshot"),
      "\(outcome.errors)")
    #expect(outcome.errors.contains("has 1 app: check that its disk is mounted"))
    #expect(try cli.snapshots().count == 2)
    #expect(try cli.run(backup).code == 0)
  }

  @Test func dataThatWasMovedAndLinkedIsNotMissing() throws {
    let app: ByteString = "org.example.App"
    try cli.directory.write("text", at: "user/.var/app/org.example.App/file")
    let backup = "backup --layout flatpak --root user --repo repo --quiet"
    _ = try cli.succeed(backup)
    let apps = try Directory.open(path: cli.directory.path("user/.var/app"))
    try apps.rename(app, to: app, in: cli.directory.directory)
    try apps.createLink(app, to: cli.directory.path(app))
    let outcome = try cli.run(backup)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(!outcome.errors.contains("was found there"), "\(outcome.errors)")
  }

  /// The apps of a machine are known although the directory of their data has none.
  @Test func missingDataOfInstalledAppsIsReportedOnce() throws {
    try cli.directory.write("text", at: "user/.var/app/org.example.App/data/file")
    try cli.directory.write("text", at: "user/.var/app/org.example.Other/data/file")
    try cli.directory.write("[Context]", at: "user/.local/share/flatpak/overrides/org.example.App")
    let app: ByteString = "user/.local/share/flatpak/app/org.example.App"
    try cli.directory.write("", at: app.appending("x86_64/stable/c0ffee/metadata"))
    let installed = try Directory.open(path: cli.directory.path(app))
    try installed.createLink("current", to: "x86_64/stable")
    try Directory.open(path: cli.directory.path(app.appending("x86_64/stable")))
      .createLink("active", to: "c0ffee")
    let backup = "backup --layout flatpak --root user --repo repo --quiet"
    _ = try cli.succeed(backup)
    try remove("org.example.App", in: "user/.var/app")
    #expect(try cli.run(backup).code == 0, "another app has data")
    try remove("org.example.Other", in: "user/.var/app")
    let outcome = try cli.run(backup)
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(
      outcome.errors.contains(
        "user/.var/app: no data of an app was found there, while the last snapshot"),
      "\(outcome.errors)")
    #expect(
      outcome.errors.contains("has 1 directory of app data: check that its disk is mounted"),
      "\(outcome.errors)")
    #expect(try cli.snapshots().count == 3)
    #expect(try cli.run(backup).code == 0)
  }
}
