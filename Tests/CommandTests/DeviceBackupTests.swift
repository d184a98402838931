import Foundation
import SystemIO
import TestSupport
import Testing

/// Backups of a device and the contents of their snapshots.
struct DeviceBackupTests {
  /// Containers of kinds that the layout does not know are not in the snapshot, but they are
  /// counted.
  @Test func containersOfUnknownKindsAreNamed() throws {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain --no-default")
    for family in ["Data/System", "Shared/SystemGroup"] {
      for number in 0..<3 {
        try cli.directory.write(
          "x", at: ByteString("device/data/Containers/\(family)/0E0E-\(number)/file"))
      }
    }
    let line = "backup --root device --repo repo"
    for command in [line + " --dry-run", line] {
      let notes = try cli.run(command).errors.split(separator: "\n")
      for family in ["Data/System", "Shared/SystemGroup"] {
        #expect(
          notes.contains {
            $0.hasPrefix(
              "note: not in the snapshot: 3 containers in data/Containers/\(family), of a kind that "
                + "the layout coresimulator does not know")
          }, "\(notes)")
      }
    }
    let plan = try cli.json(line + " --dry-run --json")
    let report = try cli.json(line + " --json")["plan"] as? [String: Any]
    for object in [plan, report ?? [:]] {
      let unknown = object["system_containers"] as? [[String: Any]] ?? []
      #expect(unknown.compactMap { $0["count"] as? Int } == [3, 3], "\(object)")
      #expect(unknown.first?.path() == "data/Containers/Data/System")
    }
  }

  @Test func appIsBackedUpWithItsGroups() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path("apps/org.example.notebook/data", of: "device")
    try fixture.change(data.appending("Documents/new.txt"), to: "new")
    let report = try fixture.cli.json("backup --root device --app Notebook --repo repo --json")
    let id = try #require(report["snapshot"] as? String)
    let snapshot = try fixture.cli.json("snapshots show \(id) --json --repo repo")
    let scope = try #require(snapshot["scope"] as? [String: Any])
    #expect(scope["kind"] as? String == "apps")
    #expect(scope["apps"] as? [String] == [DeviceRestoreFixture.notebook])
    #expect(snapshot["reason"] as? String == "manual")
    let apps = snapshot["apps"] as? [[String: Any]] ?? []
    #expect(apps.compactMap { $0["id"] as? String } == [DeviceRestoreFixture.notebook])
    let groups = apps.first?["groups"] as? [[String: Any]] ?? []
    #expect(groups.map { $0["id"] as? String } == ["group.org.example.library"])
    #expect(groups.first?["known"] as? Bool == true)
    let top = try fixture.cli.jsonLines("ls \(id) --recursive --json --repo repo")
      .compactMap { $0.path() }.filter { $0.components.count == 2 }
    #expect(top == ["apps/org.example.notebook", "groups/group.org.example.library"])
    // The latest snapshot of the device is the first one; that of the app is the new one.
    let new = "apps/org.example.notebook/data/Documents/new.txt"
    #expect(try fixture.cli.run("dump latest:\(new) --repo repo").code == 1)
    _ = try fixture.cli.succeed("restore latest --app notebook --to app --repo repo")
    #expect(try fixture.text(fixture.cli.directory.path("app/data/Documents/new.txt")) == "new")
    // The state of the other apps is kept: only new files are opened.
    let whole = try fixture.cli.json("backup --root device --repo repo --json")
    #expect(whole["parent"] as? String != id, "the parent has the same scope")
  }

  @Test func missingOrAmbiguousAppIsRefused() throws {
    let fixture = try DeviceRestoreFixture()
    var said = Transcript(fixture.cli)
    try said.run("backup --root device --app nobody --repo repo", exits: 1)
    try fixture.addTwin(of: "org.example.notebook", as: "com.another.notebook", on: "device")
    try said.run("backup --root device --app notebook --repo repo", exits: 1)
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    try said.run("restore latest --app notebook --in-place --repo repo", exits: 1)
    try said.run("restore latest:notebook/Documents --in-place --repo repo", exits: 1)
    try said.expectSnapshot("app-names")
  }

  /// The attributes of entries that have not changed for two seconds are not read again, except
  /// those of the directory with a tag file, whose content may change while the directory's times
  /// stay the same.
  @Test(.enabled(if: Strace.isPermitted)) func exclusionMarksAreReadOnlyAfterChanges() throws {
    // On a disk: entries of a file system in memory are read each time.
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain --no-default")
    let line = "backup --root device --repo repo --quiet"
    func asked() throws -> Int {
      let log = cli.directory.string + "/log"
      // listxattrat(2) is number 465 everywhere; this strace may not know its name.
      let outcome = try cli.run(line, under: ["strace", "-f", "-qq", "-o", log])
      #expect(outcome.code == 0, "\(outcome.errors)")
      return String(decoding: try cli.directory.read("log"), as: UTF8.self)
        .matches(of: /(?:listxattr(?:at)?|syscall_0x1d1)\(/).count
    }
    #expect(try asked() > 200)
    // Directories that are restored empty are read each time because the snapshot has their
    // attributes: Caches and tmp of five containers, and the Caches of a group.
    let emptied = 11
    var last = Int.max
    for _ in 0..<20 where last > emptied + 2 {
      Host.pause(seconds: 0.5)
      last = try asked()
    }
    #expect(last <= emptied + 2)
    // Entries marked from now on are excluded.
    let container = "device/data/Containers/Data/Application/D23F0824-128B-4F33-8C5C-7FD0A6A3A450"
    let notes = try cli.directory.directory.directory(ByteString(container + "/Documents/Notes"))
    let name: ByteString = "Groceries.md"
    let path = "apps/org.example.notebook/data/Documents/Notes"
    #expect(try cli.succeed("ls latest:\(path) --repo repo").contains(name.description))
    try notes.attributes(of: name).set(
      "user.com.apple.metadata:com_apple_backup_excludeItem", to: Array("com.apple.backupd".utf8))
    _ = try cli.succeed(line)
    #expect(try !cli.succeed("ls latest:\(path) --repo repo").contains(name.description))
  }

  @Test func danglingContainerRootIsReported() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path("apps/org.example.notebook/data", of: "device")
    let directory = try Directory.open(path: data.directoryPath)
    let name = try #require(data.lastComponent)
    try directory.removeTree(name)
    try directory.createLink(name, to: "/nowhere/at/all")
    let backup = try fixture.cli.run("backup --root device --repo repo")
    #expect(backup.errors.contains("it is a link to '/nowhere/at/all', which does not exist"))
    // A restore in place does not follow the link, and names it.
    let first = try #require(try fixture.cli.snapshots().first)
    let restore = try fixture.cli.run("restore \(first) --app notebook --in-place --repo repo")
    #expect(restore.code == 1)
    #expect(restore.errors.contains("is a link to '/nowhere/at/all', which does not exist"))
    #expect(try directory.target(of: name) == "/nowhere/at/all")
  }

  /// Root does not follow another user's link. Its target exists nonetheless.
  @Test(.enabled(if: Host.userID == 0)) func aForeignContainerRootIsNotCalledMissing() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path("apps/org.example.notebook/data", of: "device")
    let directory = try Directory.open(path: data.directoryPath)
    let name = try #require(data.lastComponent)
    try directory.removeTree(name)
    let other = try Directory.make(path: fixture.cli.directory.path("other"))
    try directory.createLink(name, to: other.path)
    _ = try Program.run("chown", ["-h", "nobody", "\(data)"])
    let first = try #require(try fixture.cli.snapshots().first)
    let restore = try fixture.cli.run("restore \(first) --app notebook --in-place --repo repo")
    #expect(restore.code == 1)
    #expect(restore.errors.contains("other', which is not followed"), "\(restore.errors)")
    #expect(try other.names().isEmpty)
  }
}

extension DeviceRestoreFixture {
  /// Adds a data container whose metadata names another app.
  func addTwin(of app: String, as other: String, on device: String) throws {
    let location = try path(ByteString("apps/\(app)/data"), of: device)
    let twin = location.directoryPath.appending("AAAAAAAA-0000-4000-8000-000000000000")
    let list = ".com.apple.mobile_container_manager.metadata.plist"
    try Directory.make(path: twin).sync()
    let text = """
      <?xml version="1.0"?><plist version="1.0"><dict><key>MCMMetadataIdentifier</key>
      <string>\(other)</string></dict></plist>
      """
    let file = try Directory.open(path: twin).create(ByteString(list))
    try file.write(Array(text.utf8))
    _ = try Directory.make(path: twin.appending("Documents"))
  }
}
