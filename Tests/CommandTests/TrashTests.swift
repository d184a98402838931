import Foundation
import SystemIO
import TestSupport
import Testing

/// What a restore into a device keeps of what it replaces and removes, and the locks of apps.
@Suite struct TrashTests {
  private static let data: ByteString = "apps/org.example.notebook/data"
  private static let restore =
    "restore latest --app notebook --in-place --delete --repo repo --no-snapshot"

  private func prepare() throws -> (rig: DeviceRestoreFixture, trash: ByteString) {
    let rig = try DeviceRestoreFixture()
    let data = try rig.place(Self.data, of: "device")
    try rig.change(data.appending("Documents/Notes/Recipes.md"), to: "spoilt")
    try rig.change(data.appending("Documents/mine/new.txt"), to: "mine")
    let report = try rig.cli.json(Self.restore + " --json")
    let id = try #require(report["trash"] as? String)
    return (rig, rig.cli.directory.path(ByteString("device/.sandboxctl/trash/\(id)")))
  }

  @Test func whatGivesWayIsKept() throws {
    let (rig, trash) = try prepare()
    let kept = trash.appending(Self.data).appending("Documents")
    #expect(try rig.text(kept.appending("Notes/Recipes.md")) == "spoilt")
    #expect(try rig.text(kept.appending("mine/new.txt")) == "mine")
    let items = try rig.cli.jsonLines("trash list --root device --json")
    #expect(items.map { $0["id"] as? String } == [trash.lastComponent?.utf8])
    let holds = try #require(items.first?["holds"] as? [String: Any])
    #expect(holds["files"] as? Int == 2 && holds["bytes"] as? Int == 10, "\(holds)")
    let subjects = items.first?["subjects"] as? [[String: Any]] ?? []
    #expect(subjects.compactMap { $0.path() } == ["apps/org.example.notebook"])
    #expect(try rig.cli.succeed("trash list --root device").contains("restore of apps/org.example"))
    // It is no part of the device, and in no backup.
    _ = try rig.cli.succeed("backup --root device --repo repo --quiet")
    #expect(!(try rig.cli.succeed("ls latest --recursive --repo repo").contains("sandboxctl")))
    // A second restore has nothing to do, and puts nothing there.
    let again = try rig.cli.json(Self.restore + " --json")
    #expect(again["trash"] is NSNull)
  }

  @Test func itIsEmptied() throws {
    let (rig, trash) = try prepare()
    let young = try rig.cli.json("trash empty --root device --older-than 1h --json")
    #expect((young["removed"] as? [Any])?.isEmpty == true)
    let dry = try rig.cli.succeed("trash empty --root device --dry-run")
    #expect(dry.contains("would delete 10 B in 2 files"), "\(dry)")
    #expect(rig.isThere(trash))
    let gone = try rig.cli.json("trash empty --root device --json")
    #expect((gone["freed"] as? [String: Any])?["files"] as? Int == 2)
    #expect(!rig.isThere(trash))
    #expect(try rig.cli.succeed("trash list --root device") == "the trash is empty\n")
    let unknown = try rig.cli.run("trash empty nothing --root device")
    #expect(unknown.code == 1 && unknown.errors.contains("'sandboxctl trash list' names them"))
  }

  @Test func nothingOfAnotherVolumeGoes() throws {
    guard try Mount.isPermitted() else { return }
    let (rig, trash) = try prepare()
    let mount = try Mount(
      on: Directory.open(path: trash.appending(Self.data)),
      at: trash.appending(Self.data), "mounted")
    defer { withExtendedLifetime(mount) {} }
    let place = trash.appending(Self.data).appending("mounted")
    try Directory.open(path: place).create("file").close()
    let outcome = try rig.cli.run("trash empty --root device")
    #expect(outcome.code == 3 && outcome.errors.contains("not deleted"), "\(outcome.errors)")
    #expect(rig.isThere(place.appending("file")))
  }

  @Test func aContainerOnAnotherVolumeHasATrashThere() throws {
    guard try Mount.isPermitted() else { return }
    let rig = try DeviceRestoreFixture()
    let data = try rig.place(Self.data, of: "device")
    let name = try #require(data.lastComponent)
    let above = try Directory.open(path: data.directoryPath)
    let mount = try Mount(
      on: rig.cli.directory.directory, at: rig.cli.directory.path, "other-volume")
    defer { withExtendedLifetime(mount) {} }
    let moved = rig.cli.directory.path("other-volume/data")
    _ = try Program.run("mv", ["\(data)", "\(moved)"])
    try above.createLink(name, to: moved)
    try rig.change(moved.appending("Documents/Notes/Recipes.md"), to: "spoilt")
    let report = try rig.cli.json(Self.restore + " --json")
    let id = ByteString(try #require(report["trash"] as? String))
    let kept = moved.appending(".sandboxctl/trash").appending(id).appending(Self.data)
    #expect(try rig.text(kept.appending("Documents/Notes/Recipes.md")) == "spoilt")
    #expect(try rig.text(moved.appending("Documents/Notes/Recipes.md")) != "spoilt")
    let items = try rig.cli.jsonLines("trash list --root device --json")
    #expect((items.first?["holds"] as? [String: Any])?["files"] as? Int == 1)
    _ = try rig.cli.succeed("backup --root device --repo repo --quiet")
    #expect(!(try rig.cli.succeed("ls latest --recursive --repo repo").contains(".sandboxctl")))
    _ = try rig.cli.succeed("trash empty --root device")
    #expect(!rig.isThere(moved.appending(".sandboxctl/trash").appending(id)))
  }

  @Test func twoOperationsOnOneAppDoNotMeet() throws {
    let rig = try DeviceRestoreFixture()
    let data = try rig.place(Self.data, of: "device")
    try rig.change(data.appending("Documents/Notes/Recipes.md"), to: "spoilt")
    _ = try rig.cli.succeed(Self.restore)
    let locks = try Directory.open(path: rig.cli.directory.path("device/.sandboxctl/locks"))
    let names = try locks.names()
    #expect(names.count == 1)
    let lock = try FileLock(names[0], in: locks)
    let busy = try rig.cli.run(Self.restore)
    #expect(busy.code == 11)
    #expect(busy.errors.contains("cannot change 'apps/org.example.notebook'"), "\(busy.errors)")
    // Who has it, and since when: by the note of the lock's own file, which is this process's.
    let said = try #require(busy.errors.firstMatch(of: /\(process (\d+), since ([^)]+)\)/))
    #expect(Int32(said.1) == ProcessInfo.processInfo.processIdentifier, "\(busy.errors)")
    let since = try #require(ISO8601DateFormatter().date(from: String(said.2)))
    #expect((-60...1).contains(since.timeIntervalSinceNow), "\(said.2)")
    #expect(try rig.cli.run("restore latest --app reader --in-place --repo repo").code == 0)
    withExtendedLifetime(lock) {}
  }

  @Test func aDryRunNamesTheRunningApp() throws {
    let rig = try DeviceRestoreFixture()
    let note = try rig.place(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    try rig.change(note, to: "spoilt")
    let plan = "restore latest --app notebook --in-place --repo repo --dry-run"
    #expect(!(try rig.cli.run(plan).errors.contains(" runs: ")))
    let app = try OpenFileHolder(of: "\(note)")
    defer { app.end() }
    let told = try rig.cli.run(plan)
    #expect(told.code == 0)
    #expect(told.errors.contains("runs: process \(app.process) "), "\(told.errors)")
    #expect(told.errors.contains("without '--force' nothing would be restored"))
    let running = try rig.cli.json(plan + " --json")["running"] as? [[String: Any]] ?? []
    #expect(running.compactMap { $0["process"] as? Int } == [Int(app.process)])
    #expect(running.compactMap { $0.path("file") } == [note])
  }
}
