import Foundation
import SystemIO
import TestSupport
import Testing

/// What is merged into a device's containers, and what is refused.
@Suite struct RestoreInPlaceTests {
  private static let data: ByteString = "apps/org.example.notebook/data"

  @Test func aFileComesBackBesideThePresentOne() throws {
    let rig = try DeviceRestoreFixture()
    let note = try rig.place(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    let before = try rig.text(note)
    try rig.change(note, to: "spoilt")
    // By its real path the latest that has it is meant.
    let report = try rig.restore("\(note) --in-place")
    #expect(try rig.text(note) == before)
    let notes = try Directory.open(path: note.directoryPath)
    let aside = try notes.names().filter { $0.description.hasPrefix("Recipes.md.before-restore-") }
    #expect(aside.count == 1)
    #expect(try rig.text(note.directoryPath.appending(aside[0])) == "spoilt")
    #expect((report["restored"] as? [String: Any])?["files"] as? Int == 1)
    // Nothing else is touched, and what was there is in a snapshot of its own.
    let saved = try #require(report["saved"] as? String)
    let snapshot = try rig.cli.json("snapshots show \(saved) --json --repo repo")
    #expect(snapshot["reason"] as? String == "pre-restore")
    #expect(
      (snapshot["scope"] as? [String: Any])?["apps"] as? [String] == [DeviceRestoreFixture.notebook]
    )
    let path = "\(Self.data)/Documents/Notes/Recipes.md"
    #expect(try rig.cli.succeed("dump \(saved):\(path) --repo repo") == "spoilt")
    #expect(
      try rig.cli.succeed("dump latest:\(path) --repo repo") == before, "latest is the device's")
  }

  @Test func anAppIsMergedAndTheOthersAreLeft() throws {
    let rig = try DeviceRestoreFixture()
    let data = try rig.place(Self.data, of: "device")
    let other = try rig.place("apps/org.example.reader/data", of: "device")
    let documents = data.appending("Documents")
    let strange = other.appending("Documents/strange")
    try rig.change(documents.appending("Notes/Recipes.md"), to: "spoilt")
    try rig.change(documents.appending("new.txt"), to: "new")
    try rig.change(data.appending("Library/Caches/new.bin"), to: "cache")
    try rig.change(strange, to: "mine")
    let plan = try rig.cli.json(
      "restore latest --app notebook --in-place --dry-run --json --repo repo")
    let replaced = (plan["replaced"] as? [[String: Any]] ?? []).compactMap { $0.path() }
    #expect(replaced.contains(Self.data.appending("Documents/Notes/Recipes.md")))
    #expect(try rig.text(documents.appending("Notes/Recipes.md")) == "spoilt", "only planned")
    let report = try rig.restore("latest --app notebook --in-place")
    #expect(try rig.text(documents.appending("Notes/Recipes.md")) != "spoilt")
    #expect(try rig.text(documents.appending("new.txt")) == "new")
    #expect(try rig.text(strange) == "mine")
    // The group is shared with another app.
    let left = report["left_groups"] as? [[String: Any]] ?? []
    #expect(left.compactMap { $0.path() } == ["groups/group.org.example.library"])
    #expect(left.first?["shared_by"] as? [String] == ["org.example.reader"])
    let with = try rig.restore("latest --app notebook --in-place --with-groups")
    let paths = (with["containers"] as? [[String: Any]] ?? []).compactMap { $0.path() }
    #expect(paths.contains("groups/group.org.example.library"))
    #expect((with["left_groups"] as? [Any])?.isEmpty == true)
  }

  @Test func whatThePolicyKeepsOutOfBackupsIsDeletedOnlyWhenSaidSo() throws {
    let rig = try DeviceRestoreFixture()
    let data = try rig.place(Self.data, of: "device")
    let kept = data.appending("Documents/new/kept.txt")
    let marked = data.appending("Documents/new/marked.bin")
    let cache = data.appending("Library/Caches/new.bin")
    for path in [kept, marked, cache] { try rig.change(path, to: "x") }
    try Self.exclude(marked)
    _ = try rig.restore("latest --app notebook --in-place --delete")
    #expect(!rig.isThere(kept))
    #expect(rig.isThere(marked) && rig.isThere(cache), "in no backup, and so not removed")
    _ = try rig.restore("latest --app notebook --in-place --delete --delete-excluded")
    #expect(!rig.isThere(marked) && !rig.isThere(marked.directoryPath))
  }

  /// Marks a file as one that is to be in no backup.
  private static func exclude(_ path: ByteString) throws {
    let directory = try Directory.open(path: path.directoryPath)
    try directory.attributes(of: path.lastComponent ?? "").set(
      "user.com.apple.metadata:com_apple_backup_excludeItem", to: [1])
  }

  @Test func aClassComesBackAlone() throws {
    let rig = try DeviceRestoreFixture()
    let data = try rig.place(Self.data, of: "device")
    let preferences = data.appending("Library/Preferences/org.example.notebook.plist")
    let note = data.appending("Documents/Notes/Recipes.md")
    for path in [preferences, note] { try rig.change(path, to: "spoilt") }
    _ = try rig.restore("latest --app notebook --class preferences --in-place")
    #expect(try rig.text(preferences) != "spoilt")
    #expect(try rig.text(note) == "spoilt")
    // Into a directory, too, where only what is of that class is made.
    _ = try rig.cli.succeed("restore latest --app notebook --class inbox --to inbox --repo repo")
    let names = try OddTree.listing(rig.cli.directory, "inbox").keys.filter { !$0.isEmpty }
    #expect(names.contains { $0.isWithin("data/Documents/Inbox") })
    #expect(names.allSatisfy { $0 == "data" || $0.isWithin("data/Documents") })
  }

  @Test func aRunningAppIsNotTouched() throws {
    let rig = try DeviceRestoreFixture()
    let note = try rig.place(Self.data, of: "device").appending("Documents/Notes/Recipes.md")
    try rig.change(note, to: "spoilt")
    // The app holds a file of its own open, by another name of it.
    let other = rig.cli.directory.path("other-name")
    try Directory.open(path: other.directoryPath).createHardLink(
      "other-name", to: "Recipes.md", in: Directory.open(path: note.directoryPath))
    let app = try OpenFileHolder(of: "\(other)")
    defer { app.end() }
    let outcome = try rig.cli.run("restore latest --app notebook --in-place --repo repo")
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("process \(app.process) "), "\(outcome.errors)")
    #expect(outcome.errors.contains("other-name"), "\(outcome.errors)")
    #expect(outcome.errors.contains("--force"))
    #expect(try rig.text(note) == "spoilt")
    _ = try rig.restore("latest --app notebook --in-place --force")
    #expect(try rig.text(note) != "spoilt")
  }

  @Test func whatCannotBeDoneIsSaid() throws {
    let rig = try DeviceRestoreFixture()
    var said = Transcript(rig.cli)
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
  /// Gives a file another content, an hour from now by its time.
  func change(_ path: ByteString, to text: String) throws {
    let directory = try Directory.make(path: path.directoryPath)
    let name = path.lastComponent ?? ""
    let file = try directory.openOrCreate(name)
    try file.truncate(to: 0)
    try file.write(Array(text.utf8))
    try file.setModified(Timestamp(seconds: Host.now().seconds - 7200))
  }
}

/// A process that holds a file open until it is ended.
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
