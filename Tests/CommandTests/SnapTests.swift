import Foundation
import SystemIO
import TestSupport
import Testing

/// Snaps on the command line: found, classified, explained, backed up and restored.
struct SnapTests {
  /// Makes a system with two snaps, one of them copied by a refresh.
  private static func system() throws -> CommandLine {
    let cli = try CommandLine()
    try makeSystem(in: cli)
    return cli
  }

  /// Makes such a system in the directory `disk`.
  static func makeSystem(in cli: CommandLine) throws {
    let home = "disk/home/you/snap/"
    for (name, text) in [
      ("editor/41/notes.txt", "old"), ("editor/42/notes.txt", "newer"),
      ("editor/42/.config/editor/settings", "dark"), ("editor/42/.cache/thumbs/a", "again"),
      ("editor/common/.cache/http/b", "fetched"), ("editor/common/profile/places", "bookmarks"),
      ("editor/42/.local/share/Trash/files/gone", "thrown away"), ("server/common/x", "x"),
    ] {
      try cli.directory.write(text, at: ByteString(home + name))
    }
    try cli.directory.write("rows", at: "disk/var/snap/server/common/db/table")
    try cli.directory.write("set", at: "disk/var/snap/server/7/config")
    try cli.directory.write(
      "name: editor\ntitle: Editor\nversion: '2.0'\napps: {editor: {}}\n",
      at: "disk/snap/editor/42/meta/snap.yaml")
    for (location, target) in [
      (home + "editor", "42"), ("disk/var/snap/server", "7"), ("disk/snap/editor", "42"),
    ] {
      try Directory.open(path: cli.directory.path(ByteString(location)))
        .createLink("current", to: ByteString(target))
    }
  }

  static let device = "--root disk/home/you/snap"

  @Test func appsListsRevisionsAndInstalledSnaps() throws {
    let cli = try Self.system()
    let text = try cli.succeed("apps \(Self.device)")
    #expect(text.contains("snap, 2 apps, 6 containers"))
    let words = text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
    #expect(words.contains("editor Editor 2.0 (42) data, revision 42, 1 old revision"))
    #expect(
      words.contains("server data, system-data, system-revision 7, not installed"))
    let device = try cli.json("apps --json \(Self.device)")
    #expect(device["layout"] as? String == "snap")
    let containers = try #require(device["containers"] as? [[String: Any]])
    #expect(containers.compactMap { $0["revision"] as? String } == ["41", "42", "7"])
  }

  @Test func homeWithSnapsIsADevice() throws {
    let cli = try Self.system()
    _ = try Program.run("cp", ["-a", "disk/home/you/snap", "home/snap"], in: cli.directory.url)
    let device = try cli.json("apps --json --layout snap --root home")
    #expect(device["root"] as? String == cli.directory.string + "/home/snap")
    #expect((device["apps"] as? [Any])?.count ?? 0 >= 2)
  }

  @Test func restoreEqualsTheSourceWithoutExclusions() throws {
    let cli = try Self.system()
    _ = try cli.succeed("init repo --plain")
    let report = try cli.run("backup \(Self.device) --repo repo")
    #expect(report.code == 0 && report.errors.isEmpty, "\(report.errors)")
    #expect(report.output.contains("disk/home/you/snap: 2 apps"))
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "disk/home/you/snap", back: "back")
    let kept = try OddTree.listing(cli.directory, "back")
    for path: ByteString in [
      "apps/editor/revision/notes.txt", "apps/editor/data/profile/places",
      "apps/server/system-data/db/table", "apps/server/system-revision/config",
    ] {
      #expect(kept[path] != nil, "\(path)")
    }
    #expect(!kept.keys.contains { "\($0)".contains("old-revisions") || "\($0)".contains("thumbs") })
    #expect(try cli.directory.read("back/apps/editor/revision/notes.txt") == Array("newer".utf8))
    // A part, and its real path.
    _ = try cli.succeed("restore latest:apps/editor/revision --to part --repo repo")
    try ChangeDetector.expectSame(cli.directory, "back/apps/editor/revision", "part")
    let snapshot = try cli.json("snapshots show latest --json --repo repo")
    let left = (snapshot["left_out"] as? [[String: Any]])?.compactMap { $0["rule"] as? String }
    #expect(left?.contains("old-revision") == true)
    let text = try cli.succeed("snapshots show latest --repo repo")
    #expect(text.contains("apps/editor/old-revisions/41"))
  }

  @Test func explainDescribesARevision() throws {
    let cli = try Self.system()
    for path in [
      "apps/editor/old-revisions/41/notes.txt",
      cli.directory.string
        + "/disk/home/you/snap/editor/41/notes.txt",
    ] {
      let outcome = try cli.run(["explain", "--root", "disk/home/you/snap", path])
      #expect(outcome.code == 0, "\(outcome.errors)")
      #expect(outcome.output.hasPrefix("apps/editor/old-revisions/41/notes.txt: a file"))
      #expect(outcome.output.contains("rule old-revision"))
      #expect(outcome.output.contains("backup never"))
    }
    let cache = try cli.succeed("explain \(Self.device) editor/.cache/http/b")
    #expect(cache.contains("platform: cache, backup always"))
  }

  @Test func overlayIncludesOldRevisions() throws {
    let cli = try Self.system()
    try cli.directory.write(
      "overlay: [snap]\nschema: 1\nrules:\n"
        + "  - {id: keep-old, in: [old-revision], match: \"**\", backup: always, restore: restore}\n",
      at: "keep.yaml")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup \(Self.device) --policy ./keep.yaml --repo repo --quiet")
    let old = try cli.run("dump latest:apps/editor/old-revisions/41/notes.txt --repo repo")
    #expect(old.output == "old", "\(old.errors)")
  }

  @Test func unknownFactsAreReported() throws {
    let cli = try Self.system()
    try Directory.open(path: cli.directory.path("disk/home/you/snap/editor")).remove("current")
    try cli.directory.write("mine", at: "disk/home/you/snap/editor/by hand/x")
    _ = try cli.succeed("init repo --plain")
    let report = try cli.run("backup \(Self.device) --repo repo")
    #expect(report.code == 0)
    #expect(report.errors.contains("editor/by hand"))
    #expect(report.errors.contains("both are included"))
    let listing = try cli.succeed("ls latest:apps --repo repo")
    #expect(listing.contains("apps/editor~42/"))
  }

  @Test func policyCommandsSupportBothLayouts() throws {
    let cli = try CommandLine()
    let list = try cli.succeed("policy list")
    for name in ["snap", "macos"] {
      #expect(list.contains(name))
      #expect(try cli.succeed("policy show \(name)").contains("layout: \(name)"))
      #expect(try cli.run("policy lint \(name)").code == 0)
      #expect(try cli.run("policy test \(name)").code == 0)
    }
  }
}
