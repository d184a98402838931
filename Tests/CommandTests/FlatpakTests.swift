import Foundation
import SystemIO
import TestSupport
import Testing

/// Real Flatpak apps: found, classified, backed up and restored on the user's own device.
@Suite(.enabled(if: Shared.has(FlatpakLab.material)))
struct FlatpakTests {
  private static let app = "org.example.Hello"

  @Test func installedAppIsFoundWithItsDetails() throws {
    let cli = try CommandLine()
    let lab = try FlatpakLab(in: cli.directory)
    let device = try cli.json("apps --json")
    #expect(device["layout"] as? String == "flatpak")
    #expect(device["root"] as? String == cli.directory.string + "/home/.var/app")
    let app = try #require((device["apps"] as? [[String: Any]])?.first)
    #expect(app["id"] as? String == Self.app)
    #expect(app["name"] as? String == "Hello \(Self.app)")
    #expect(app["installed"] as? Bool == true)
    let installed = try #require(app["flatpak"] as? [String: Any])
    #expect(installed["branch"] as? String == "stable")
    #expect(installed["origin"] as? String == "lab")
    #expect(installed["scope"] as? String == "user")
    let commit = try lab.flatpak(["info", "--user", "--show-commit", Self.app])
    #expect(installed["commit"] as? String == commit.filter { !$0.isNewline })
    let runtime = try lab.flatpak(["info", "--user", "--show-runtime", Self.app])
    #expect(installed["runtime"] as? String == runtime.filter { !$0.isNewline })
  }

  @Test func dataIsRestoredExceptExcludedData() throws {
    let cli = try CommandLine()
    let lab = try FlatpakLab(in: cli.directory, apps: [Self.app, "org.example.Other"])
    try lab.flatpak(["override", "--user", "--nosocket=wayland", Self.app])
    let data: ByteString = "home/.var/app/org.example.Hello"
    try cli.directory.write("a note", at: data.appending("data/notes/first.txt"))
    try cli.directory.write("again", at: data.appending("cache/deep/thumbnail.png"))
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --repo repo")
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: nil, back: "back")
    // Restored alone, the part equals the same part of the whole.
    _ = try cli.succeed("restore latest:apps/\(Self.app)/data --to part --repo repo")
    let whole: ByteString = "back/apps/org.example.Hello/data"
    try ChangeDetector.expectSame(cli.directory, whole, "part")
    let kept = try OddTree.listing(cli.directory, whole)
    for path: ByteString in [
      "data/db.txt", "data/notes/first.txt", "config/settings.ini", ".hellorc.d/x", ".local/state",
    ] {
      #expect(kept[path] != nil, "\(path)")
    }
    #expect(!kept.keys.contains { $0.isWithin("cache/deep") || $0.isWithin("cache/blob") })
  }

  @Test func backupNeedsNoOptionsInAnEmptyHome() throws {
    let cli = try CommandLine()
    _ = try FlatpakLab(in: cli.directory)
    #expect(Set(cli.environment.keys) == ["HOME", "PATH", "TZ"])
    let outcome = try cli.run("backup")
    #expect(outcome.code == 0, "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n").map(String.init)
    try #require(lines.count == 5, "\(outcome.output)")
    #expect(lines[0].contains(/^device  [^ ]+@[^ ]+, flatpak, ~\/\.var\/app: 1 app$/))
    #expect(lines[1].contains(/^  app +keeps  excludes$/))
    #expect(lines[2].contains(/^  org\.example\.Hello +[0-9]+ B  [0-9.]+ KiB cache/))
    #expect(lines[3].hasPrefix("first backup: ") && lines[3].contains("   snapshot "))
    #expect(
      lines[4]
        == "next: sandboxctl restore latest --app hello --to restored     sandboxctl ls latest")
    #expect(
      outcome.errors.contains("\nnote: this repository is on the same disk as the data"),
      "\(outcome.errors)")
    _ = try cli.succeed("restore latest --app hello --to restored")
    let settings: ByteString = "home/.var/app/org.example.Hello/config/settings.ini"
    #expect(
      try cli.directory.read("restored/data/config/settings.ini") == cli.directory.read(settings))
  }

  @Test func overridesBelongToTheAppsSettings() throws {
    let cli = try CommandLine()
    let lab = try FlatpakLab(in: cli.directory)
    try lab.flatpak(["override", "--user", "--nosocket=wayland", Self.app])
    let settings = try cli.containers(of: nil).filter { $0.path.isWithin("apps") }
      .filter { $0.json["kind"] as? String == "settings" }
    #expect(settings.map(\.path) == ["apps/org.example.Hello/settings"])
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --repo repo")
    _ = try cli.succeed("restore latest:apps/\(Self.app)/settings --to settings --repo repo")
    let wanted = try cli.directory.read("home/.local/share/flatpak/overrides/org.example.Hello")
    #expect(try cli.directory.read("settings/org.example.Hello") == wanted)
    #expect(String(decoding: wanted, as: UTF8.self).contains("wayland"))
  }

  @Test func restoreOnANewMachineGivesTheInstallCommands() throws {
    let cli = try CommandLine()
    let lab = try FlatpakLab(in: cli.directory)
    try lab.flatpak(["override", "--user", "--nosocket=wayland", Self.app])
    try cli.directory.write("a note", at: "home/.var/app/org.example.Hello/data/notes/first.txt")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --repo repo")
    // The snapshot lists the installed apps.
    let snapshot = try cli.json("snapshots show latest --json --repo repo")
    let app = try #require((snapshot["apps"] as? [[String: Any]])?.first)
    let installed = try #require(app["flatpak"] as? [String: Any])
    let commit = try lab.flatpak(["info", "--user", "--show-commit", Self.app])
    #expect(installed["commit"] as? String == commit.filter { !$0.isNewline })
    #expect(installed["branch"] as? String == "stable" && installed["origin"] as? String == "lab")
    // A home directory in which Flatpak was never used.
    _ = try Directory.make(path: cli.directory.path("bare"))
    let bare = cli.directory.string + "/bare"
    let outcome = try cli.run(
      ["restore", "latest", "--to-device", bare + "/.var/app", "--repo", "repo"],
      environment: ["HOME": bare])
    #expect(outcome.code == 0, "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    #expect(lines.contains { $0.hasPrefix("flatpak remote-add --if-not-exists --user lab ") })
    let architecture = try #require(installed["arch"] as? String)
    #expect(lines.contains("flatpak install --user lab \(Self.app)/\(architecture)/stable"))
    #expect(
      try cli.directory.read("bare/.var/app/org.example.Hello/data/notes/first.txt")
        == Array("a note".utf8))
    let overrides: ByteString = ".local/share/flatpak/overrides/org.example.Hello"
    #expect(
      try cli.directory.read(ByteString("bare").appending(overrides))
        == cli.directory.read(ByteString("home").appending(overrides)))
    // If the app is installed, there is nothing to install, and the device's data is kept.
    let again = try cli.run("restore latest --in-place --repo repo --json")
    #expect(again.code == 0, "\(again.errors)")
    let report = try CommandLine.object(again.output)
    #expect((report["install_commands"] as? [Any])?.isEmpty == true)
    #expect((report["restored"] as? [String: Any])?["files"] as? Int == 0)
  }
}
