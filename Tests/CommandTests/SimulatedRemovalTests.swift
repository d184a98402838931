import Foundation
import SystemIO
import TestSupport
import Testing

/// The output of offload, reinstall and uninstall, as text and JSON, for apps installed by another
/// program; nothing is changed.
struct SimulatedRemovalTests {
  @Test func flatpakRemovalIsOnlyDescribed() throws {
    let cli = try CommandLine(inMemory: true)
    for (path, text) in [
      "data/note.txt": "note", "config/settings.ini": "dark", "cache/thumbnails/a.png": "picture",
      ".local/share/log": "log",
    ] {
      try cli.directory.write(
        text, at: ByteString("user/.var/app/org.example.Note").appending(ByteString(path)))
    }
    try expect(cli, "--root user/.var/app --layout flatpak", "org.example.Note", "removal-flatpak")
  }

  @Test func snapRemovalIsOnlyDescribed() throws {
    let cli = try CommandLine(inMemory: true)
    for (path, text) in [
      "home/you/snap/editor/41/notes.txt": "old", "home/you/snap/editor/42/notes.txt": "newer",
      "home/you/snap/editor/42/.cache/thumbs/a": "again",
      "home/you/snap/editor/common/profile/places": "bookmarks",
      "var/snap/editor/common/db/table": "rows", "var/snap/editor/42/config": "set",
    ] { try cli.directory.write(text, at: ByteString("disk").appending(ByteString(path))) }
    for location: ByteString in ["disk/home/you/snap/editor", "disk/var/snap/editor"] {
      try Directory.open(path: cli.directory.path(location)).createLink("current", to: "42")
    }
    try expect(cli, "--root disk/home/you/snap", "editor", "removal-snap")
  }

  private func expect(
    _ cli: CommandLine, _ device: String, _ app: String, _ name: String
  ) throws {
    let before = try cli.records("")
    var transcript = Transcript(cli)
    for command in ["offload", "reinstall", "uninstall"] {
      let line = "\(command) \(app) \(device)"
      try transcript.run(line, exits: 0)
      try transcript.runForJSON(line + " --json", without: ["device"])
    }
    try transcript.expectSnapshot(name)
    #expect(
      try cli.records("").filter { !$0.key.isWithin("home") }
        == before.filter { !$0.key.isWithin("home") })
  }
}
