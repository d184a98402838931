import Foundation
import SystemIO
import TestSupport
import Testing

/// The trash of a restore into a device, and the locks of apps.
struct TrashTests {
  private static let data: ByteString = "apps/org.example.notebook/data"
  private static let restore =
    "restore latest --app notebook --in-place --delete --repo repo --no-snapshot"

  private func prepare() throws -> (fixture: DeviceRestoreFixture, trash: ByteString) {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path(Self.data, of: "device")
    try fixture.change(data.appending("Documents/Notes/Recipes.md"), to: "spoilt")
    try fixture.change(data.appending("Documents/mine/new.txt"), to: "mine")
    let report = try fixture.cli.json(Self.restore + " --json")
    let id = try #require(report["trash"] as? String)
    return (fixture, fixture.cli.directory.path(ByteString("device/.sandboxctl/trash/\(id)")))
  }

  @Test func replacedFilesAreMovedToTheTrash() throws {
    let (fixture, trash) = try prepare()
    let kept = trash.appending(Self.data).appending("Documents")
    #expect(try fixture.text(kept.appending("Notes/Recipes.md")) == "spoilt")
    #expect(try fixture.text(kept.appending("mine/new.txt")) == "mine")
    let items = try fixture.cli.jsonLines("trash list --root device --json")
    #expect(items.map { $0["id"] as? String } == [trash.lastComponent?.utf8])
    let holds = try #require(items.first?["holds"] as? [String: Any])
    #expect(holds["files"] as? Int == 2 && holds["bytes"] as? Int == 10, "\(holds)")
    let subjects = items.first?["subjects"] as? [[String: Any]] ?? []
    #expect(subjects.compactMap { $0.path() } == ["apps/org.example.notebook"])
    #expect(
      try fixture.cli.succeed("trash list --root device").contains("restore of apps/org.example"))
    // The trash is not part of the device and is excluded from backups.
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    #expect(!(try fixture.cli.succeed("ls latest --recursive --repo repo").contains("sandboxctl")))
    // A second restore has nothing to do and moves nothing to the trash.
    let again = try fixture.cli.json(Self.restore + " --json")
    #expect(again["trash"] is NSNull)
  }

  /// The command that a restore names shows its trash: without `--root` it would be a different
  /// one.
  @Test func reportNamesTheCommandThatListsTheTrash() throws {
    let fixture = try DeviceRestoreFixture()
    let note = try fixture.path(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    try fixture.change(note, to: "spoilt")
    let text = try fixture.cli.succeed(Self.restore)
    let found = try #require(text.firstMatch(of: /'sandboxctl (trash list --root [^']+)' shows/))
    #expect(try fixture.cli.succeed(String(found.1)).contains("restore of apps/org.example"))
  }

  @Test func trashIsEmptied() throws {
    let (fixture, trash) = try prepare()
    let young = try fixture.cli.json("trash empty --root device --older-than 1h --json")
    #expect((young["removed"] as? [Any])?.isEmpty == true)
    let dry = try fixture.cli.succeed("trash empty --root device --dry-run")
    #expect(dry.contains("would delete 10 B in 2 files"), "\(dry)")
    let plan = try fixture.cli.json("trash empty --root device --dry-run --json")
    #expect(plan["dry_run"] as? Bool == true)
    #expect((plan["freed"] as? [String: Any])?["files"] as? Int == 2)
    #expect(fixture.isThere(trash))
    let gone = try fixture.cli.json("trash empty --root device --json")
    #expect(gone["dry_run"] as? Bool == false)
    #expect((gone["freed"] as? [String: Any])?["files"] as? Int == 2)
    #expect(!fixture.isThere(trash))
    #expect(try fixture.cli.succeed("trash list --root device") == "the trash is empty\n")
    #expect(try fixture.cli.succeed("trash empty --root device") == "nothing to delete\n")
    let unknown = try fixture.cli.run("trash empty nothing --root device")
    #expect(
      unknown.code == 1 && unknown.errors.contains("'sandboxctl trash list' lists the operations"))
  }

  @Test func filesOfAnotherVolumeAreNotDeleted() throws {
    guard try Mount.isPermitted() else { return }
    let (fixture, trash) = try prepare()
    let mount = try Mount(
      on: Directory.open(path: trash.appending(Self.data)),
      at: trash.appending(Self.data), "mounted")
    defer { withExtendedLifetime(mount) {} }
    let location = trash.appending(Self.data).appending("mounted")
    try Directory.open(path: location).create("file").close()
    let outcome = try fixture.cli.run("trash empty --root device")
    #expect(outcome.code == 3 && outcome.errors.contains("not deleted"), "\(outcome.errors)")
    #expect(fixture.isThere(location.appending("file")))
  }

  @Test func containerOnAnotherVolumeHasItsOwnTrash() throws {
    guard try Mount.isPermitted() else { return }
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path(Self.data, of: "device")
    let name = try #require(data.lastComponent)
    let above = try Directory.open(path: data.directoryPath)
    let mount = try Mount(
      on: fixture.cli.directory.directory, at: fixture.cli.directory.path, "other-volume")
    defer { withExtendedLifetime(mount) {} }
    let moved = fixture.cli.directory.path("other-volume/data")
    _ = try Program.run("mv", ["\(data)", "\(moved)"])
    try above.createLink(name, to: moved)
    try fixture.change(moved.appending("Documents/Notes/Recipes.md"), to: "spoilt")
    let report = try fixture.cli.json(Self.restore + " --json")
    let id = ByteString(try #require(report["trash"] as? String))
    let kept = moved.appending(".sandboxctl/trash").appending(id).appending(Self.data)
    #expect(try fixture.text(kept.appending("Documents/Notes/Recipes.md")) == "spoilt")
    #expect(try fixture.text(moved.appending("Documents/Notes/Recipes.md")) != "spoilt")
    let items = try fixture.cli.jsonLines("trash list --root device --json")
    #expect((items.first?["holds"] as? [String: Any])?["files"] as? Int == 1)
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    #expect(!(try fixture.cli.succeed("ls latest --recursive --repo repo").contains(".sandboxctl")))
    _ = try fixture.cli.succeed("trash empty --root device")
    #expect(!fixture.isThere(moved.appending(".sandboxctl/trash").appending(id)))
  }

  @Test func operationsOnOneAppAreExclusive() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path(Self.data, of: "device")
    try fixture.change(data.appending("Documents/Notes/Recipes.md"), to: "spoilt")
    _ = try fixture.cli.succeed(Self.restore)
    let locks = try Directory.open(path: fixture.cli.directory.path("device/.sandboxctl/locks"))
    let names = try locks.names()
    #expect(names.count == 1)
    let lock = try FileLock(names[0], in: locks)
    let busy = try fixture.cli.run(Self.restore)
    #expect(busy.code == 11)
    #expect(busy.errors.contains("cannot change 'apps/org.example.notebook'"), "\(busy.errors)")
    // The holder of the lock and its start time, from the lock file, which is that of this process.
    let said = try #require(busy.errors.firstMatch(of: /\(process (\d+), since ([^)]+)\)/))
    #expect(Int32(said.1) == ProcessInfo.processInfo.processIdentifier, "\(busy.errors)")
    let since = try #require(ISO8601DateFormatter().date(from: String(said.2)))
    #expect((-60...1).contains(since.timeIntervalSinceNow), "\(said.2)")
    #expect(try fixture.cli.run("restore latest --app reader --in-place --repo repo").code == 0)
    withExtendedLifetime(lock) {}
  }

  @Test func dryRunNamesTheRunningApp() throws {
    let fixture = try DeviceRestoreFixture()
    let note = try fixture.path(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    try fixture.change(note, to: "spoilt")
    let plan = "restore latest --app notebook --in-place --repo repo --dry-run"
    #expect(!(try fixture.cli.run(plan).errors.contains(" is running: ")))
    let app = try OpenFileHolder(of: "\(note)")
    defer { app.end() }
    let reported = try fixture.cli.run(plan)
    #expect(reported.code == 0)
    #expect(reported.errors.contains("is running: process \(app.process) "), "\(reported.errors)")
    #expect(reported.errors.contains("refused without '--force'"))
    let running = try fixture.cli.json(plan + " --json")["running"] as? [[String: Any]] ?? []
    #expect(running.compactMap { $0["process"] as? Int } == [Int(app.process)])
    #expect(running.compactMap { $0.path("file") } == [note])
  }
}
