import Foundation
import SystemIO
import TestSupport
import Testing

/// Restores into existing containers of a device, and refusals.
struct RestoreInPlaceTests {
  private static let data: ByteString = "apps/org.example.notebook/data"

  @Test func fileIsRestoredBesideTheCurrentOne() throws {
    let fixture = try DeviceRestoreFixture()
    let note = try fixture.path(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    let before = try fixture.text(note)
    try fixture.change(note, to: "spoilt")
    // A real path selects the latest snapshot that contains it.
    let report = try fixture.restore("\(note) --in-place")
    #expect(try fixture.text(note) == before)
    let notes = try Directory.open(path: note.directoryPath)
    let aside = try notes.names().filter { $0.description.hasPrefix("Recipes.md.before-restore-") }
    #expect(aside.count == 1)
    #expect(try fixture.text(note.directoryPath.appending(aside[0])) == "spoilt")
    #expect((report["restored"] as? [String: Any])?["files"] as? Int == 1)
    #expect(report["trash"] is NSNull, "nothing was moved there")
    let setAside = report["set_aside"] as? [[String: Any]] ?? []
    let restored = Self.data.appending("Documents/Notes/Recipes.md")
    #expect(setAside.compactMap { $0.path() } == [restored])
    #expect(
      setAside.map { $0["kept_path"] as? String }
        == ["\(note.directoryPath.appending(aside[0]))"])
    // Nothing else is changed, and a new snapshot contains the previous state.
    let saved = try #require(report["saved"] as? String)
    let snapshot = try fixture.cli.json("snapshots show \(saved) --json --repo repo")
    #expect(snapshot["reason"] as? String == "pre-restore")
    #expect(
      (snapshot["scope"] as? [String: Any])?["apps"] as? [String] == [DeviceRestoreFixture.notebook]
    )
    let path = "\(Self.data)/Documents/Notes/Recipes.md"
    #expect(try fixture.cli.succeed("dump \(saved):\(path) --repo repo") == "spoilt")
    #expect(
      try fixture.cli.succeed("dump latest:\(path) --repo repo") == before, "latest is the device's"
    )
  }

  /// The text output gives the path of the previous file and the command that deletes it.
  @Test func fileKeptBesideTheRestoredOneIsNamed() throws {
    let fixture = try DeviceRestoreFixture()
    let note = try fixture.path(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    try fixture.change(note, to: "spoilt")
    let output = try fixture.cli.succeed("restore \(note) --in-place --repo repo")
    let notes = try Directory.open(path: note.directoryPath)
    let aside = try notes.names().filter { $0.description.hasPrefix("Recipes.md.before-restore-") }
    let path = note.directoryPath.appending(try #require(aside.first))
    let line = try #require(output.split(separator: "\n").first { $0.contains("is kept as") })
    #expect(line.hasPrefix("the previous 'Recipes.md' is kept as "), "\(line)")
    #expect(line.contains("; 'rm \(path)' deletes it when it is no longer needed"), "\(line)")
    // Nothing is reported if nothing was kept that way.
    let again = try fixture.cli.succeed("restore \(note) --in-place --repo repo")
    #expect(!again.contains("is kept as"), "\(again)")
  }

  @Test func onlyTheSelectedAppIsRestored() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path(Self.data, of: "device")
    let other = try fixture.path("apps/org.example.reader/data", of: "device")
    let documents = data.appending("Documents")
    let strange = other.appending("Documents/strange")
    try fixture.change(documents.appending("Notes/Recipes.md"), to: "spoilt")
    try fixture.change(documents.appending("new.txt"), to: "new")
    try fixture.change(data.appending("Library/Caches/new.bin"), to: "cache")
    try fixture.change(strange, to: "mine")
    let plan = try fixture.cli.json(
      "restore latest --app notebook --in-place --dry-run --json --repo repo")
    let replaced = (plan["replaced"] as? [[String: Any]] ?? []).compactMap { $0.path() }
    #expect(replaced.contains(Self.data.appending("Documents/Notes/Recipes.md")))
    #expect(try fixture.text(documents.appending("Notes/Recipes.md")) == "spoilt", "only planned")
    let report = try fixture.restore("latest --app notebook --in-place")
    #expect(try fixture.text(documents.appending("Notes/Recipes.md")) != "spoilt")
    #expect(try fixture.text(documents.appending("new.txt")) == "new")
    #expect(try fixture.text(strange) == "mine")
    // The group is shared with another app.
    let left = report["left_groups"] as? [[String: Any]] ?? []
    #expect(left.compactMap { $0.path() } == ["groups/group.org.example.library"])
    #expect(left.first?["shared_by"] as? [String] == ["org.example.reader"])
    let with = try fixture.restore("latest --app notebook --in-place --with-groups")
    let paths = (with["containers"] as? [[String: Any]] ?? []).compactMap { $0.path() }
    #expect(paths.contains("groups/group.org.example.library"))
    #expect((with["left_groups"] as? [Any])?.isEmpty == true)
  }

  /// Data of the container that is not at the restored path is not reported as missing.
  @Test func onlyExcludedDataOfThePathIsNamed() throws {
    let fixture = try DeviceRestoreFixture()
    func left(_ path: ByteString) throws -> [ByteString] {
      let plan = try fixture.cli.json(
        "restore latest:\(path) --in-place --dry-run --json --repo repo")
      return (plan["not_in_snapshot"] as? [[String: Any]] ?? []).compactMap { $0.path() }
    }
    let library = Self.data.appending("Library")
    let all = try left(Self.data)
    #expect(all.contains { $0.isWithin(library) } && all.contains { !$0.isWithin(library) })
    // For files that were excluded individually, only the container is known.
    for path in [library, Self.data.appending("Documents/Notes")] {
      #expect(try left(path) == all.filter { $0.isWithin(path) || path.isWithin($0) }, "\(path)")
    }
  }

  @Test func excludedDataIsDeletedOnlyOnRequest() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path(Self.data, of: "device")
    let kept = data.appending("Documents/new/kept.txt")
    let marked = data.appending("Documents/new/marked.bin")
    let cache = data.appending("Library/Caches/new.bin")
    for path in [kept, marked, cache] { try fixture.change(path, to: "x") }
    try Self.exclude(marked)
    _ = try fixture.restore("latest --app notebook --in-place --delete")
    #expect(!fixture.isThere(kept))
    #expect(
      fixture.isThere(marked) && fixture.isThere(cache), "excluded from backups, so not deleted")
    _ = try fixture.restore("latest --app notebook --in-place --delete --delete-excluded")
    #expect(!fixture.isThere(marked) && !fixture.isThere(marked.directoryPath))
  }

  /// Marks a file as excluded from backups.
  private static func exclude(_ path: ByteString) throws {
    let directory = try Directory.open(path: path.directoryPath)
    try directory.attributes(of: path.lastComponent ?? "").set(
      "user.com.apple.metadata:com_apple_backup_excludeItem", to: [1])
  }

  @Test func singleClassIsRestored() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path(Self.data, of: "device")
    let preferences = data.appending("Library/Preferences/org.example.notebook.plist")
    let note = data.appending("Documents/Notes/Recipes.md")
    for path in [preferences, note] { try fixture.change(path, to: "spoilt") }
    _ = try fixture.restore("latest --app notebook --class preferences --in-place")
    #expect(try fixture.text(preferences) != "spoilt")
    #expect(try fixture.text(note) == "spoilt")
    // The same into a directory, which then contains only entries of that class.
    _ = try fixture.cli.succeed(
      "restore latest --app notebook --class inbox --to inbox --repo repo")
    let names = try OddTree.listing(fixture.cli.directory, "inbox").keys.filter { !$0.isEmpty }
    #expect(names.contains { $0.isWithin("data/Documents/Inbox") })
    #expect(names.allSatisfy { $0 == "data" || $0.isWithin("data/Documents") })
  }

  @Test func runningAppIsNotChanged() throws {
    let fixture = try DeviceRestoreFixture()
    let note = try fixture.path(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    try fixture.change(note, to: "spoilt")
    // The app has one of its files open under another hard link.
    let other = fixture.cli.directory.path("other-name")
    try Directory.open(path: other.directoryPath).createHardLink(
      "other-name", to: "Recipes.md", in: Directory.open(path: note.directoryPath))
    let app = try OpenFileHolder(of: "\(other)")
    defer { app.end() }
    let outcome = try fixture.cli.run("restore latest --app notebook --in-place --repo repo")
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("process \(app.process) "), "\(outcome.errors)")
    #expect(outcome.errors.contains("other-name"), "\(outcome.errors)")
    #expect(outcome.errors.contains("--force"))
    #expect(try fixture.text(note) == "spoilt")
    _ = try fixture.restore("latest --app notebook --in-place --force")
    #expect(try fixture.text(note) != "spoilt")
  }

  /// One path of an app is scanned, and its other files are recognized by their paths.
  @Test func runningAppIsFoundByItsOtherFiles() throws {
    let fixture = try DeviceRestoreFixture()
    let note = try fixture.path(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    let bundle = try fixture.path("apps/org.example.notebook/bundle", of: "device")
    let other = try fixture.path("apps/org.example.reader/bundle", of: "device")
    let line = "restore latest:notebook/Documents/Notes --in-place --repo repo"
    try fixture.change(note, to: "spoilt")
    func file(below directory: ByteString) throws -> String {
      let found = try Program.run("find", [directory.description, "-name", "Info.plist"])
      return try #require(found.output.split(separator: "\n").first.map(String.init))
    }
    do {
      let app = try OpenFileHolder(of: file(below: bundle))
      defer { app.end() }
      let refused = try fixture.cli.run(line)
      #expect(refused.code == 1)
      #expect(
        refused.errors.contains("'org.example.notebook' is running: process \(app.process) "),
        "\(refused.errors)")
    }
    let app = try OpenFileHolder(of: file(below: other))
    defer { app.end() }
    _ = try fixture.cli.succeed(line)
    #expect(try fixture.text(note) != "spoilt")
  }

  @Test func impossibleRestoresAreRefused() throws {
    let fixture = try DeviceRestoreFixture()
    var said = Transcript(fixture.cli)
    let note = "restore latest:notebook/Documents"
    try said.run("\(note) --repo repo", exits: 2)
    try said.run("\(note) --to x --in-place --repo repo", exits: 2)
    try said.run("\(note) --to x --force --repo repo", exits: 2)
    try said.run("restore latest --app nobody --in-place --repo repo", exits: 1)
    try said.run("restore latest:apps/org.example.absent --in-place --repo repo", exits: 1)
    try said.run("restore latest --class music --in-place --repo repo", exits: 2)
    try said.run("restore latest --class cache --delete --in-place --repo repo", exits: 2)
    try said.run("restore /nowhere/at/all --in-place --repo repo", exits: 1)
    try said.run("restore latest --to-device home --repo repo", exits: 1)
    try said.expectSnapshot("restore-device-errors")
  }
}

extension DeviceRestoreFixture {
  /// Changes a file's content, with a modification time one hour in the future.
  func change(_ path: ByteString, to text: String) throws {
    let directory = try Directory.make(path: path.directoryPath)
    let name = path.lastComponent ?? ""
    let file = try directory.openOrCreate(name)
    try file.truncate(to: 0)
    try file.write(Array(text.utf8))
    try file.setModified(Timestamp(seconds: Host.now().seconds - 7200))
  }
}

/// A process that keeps a file open until `end`.
final class OpenFileHolder {
  private let running = Process()
  private let input = Pipe()
  var process: Int32 { running.processIdentifier }

  init(of path: String) throws {
    let ready = Pipe()
    running.executableURL = URL(fileURLWithPath: "/bin/sh")
    running.arguments = ["-c", "exec 3<\"$0\"; echo ready; exec cat <&0", path]
    running.standardInput = input
    running.standardOutput = ready
    try running.run()
    _ = ready.fileHandleForReading.availableData
  }

  func end() {
    try? input.fileHandleForWriting.close()
    running.waitUntilExit()
  }
}
