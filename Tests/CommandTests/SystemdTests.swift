import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands on the units of a system.
struct SystemdTests {
  private static let device = "--layout systemd --root system"

  private static func system() throws -> CommandLine {
    let cli = try CommandLine()
    for (path, text) in [
      (
        "usr/lib/systemd/system/web.service",
        "[Unit]\nDescription=Web server\n[Service]\nStateDirectory=web\nCacheDirectory=web\n"
          + "LogsDirectory=web\nConfigurationDirectory=web\nRuntimeDirectory=web\n"
      ),
      ("usr/lib/systemd/system/idle.service", "[Service]\nStateDirectory=idle\n"),
      ("etc/systemd/system/web.service.d/more.conf", "[Service]\nStateDirectory=web-extra\n"),
      ("var/lib/web/pages.db", "rows"), ("var/lib/web-extra/a", "more"),
      ("var/cache/web/page", "made"), ("var/log/web/access.log", "GET /"),
      ("etc/web/server.conf", "port 80"), ("run/web/pid", "7"), ("var/lib/other/x", "not a unit's"),
    ] {
      try cli.directory.write(text, at: ByteString("system/" + path))
    }
    return cli
  }

  @Test func appsAndClassifySupportTheLayout() throws {
    let cli = try Self.system()
    let text = try cli.succeed("apps --root system")
    #expect(text.contains("systemd, Linux, 1 app, 6 containers"))
    #expect(text.contains("Web server"))
    var classes: [ByteString: String] = [:]
    for entry in try cli.jsonLines("classify --json \(Self.device)") {
      if let path = entry.path() { classes[path] = entry["class"] as? String }
    }
    let unit = "apps/web.service/directories/"
    for (path, name) in [
      ("state/web/pages.db", "user-data"), ("state/web-extra/a", "user-data"),
      ("cache/web/page", "cache"), ("logs/web/access.log", "support"),
      ("config/web/server.conf", "preferences"), ("runtime/web/pid", "temporary"),
    ] {
      #expect(classes[ByteString(unit + path)] == name, "\(path)")
    }
    #expect(!classes.keys.contains { "\($0)".contains("other") })
    let explained = try cli.succeed("explain \(Self.device) \(unit)state/web/pages.db")
    #expect(explained.contains("rule state"))
  }

  @Test func directoriesThatAreNotUsedAreNoted() throws {
    let cli = try Self.system()
    try cli.directory.write(
      "[Service]\nStateDirectory=odd/%H\n", at: "system/usr/lib/systemd/system/odd.service")
    _ = try cli.succeed("init repo --plain")
    let report = try cli.run("backup \(Self.device) --repo repo")
    #expect(report.code == 0)
    #expect(report.errors.contains("its specifier '%H' is not expanded"), "\(report.errors)")
  }

  @Test func restoreEqualsTheSourceWithoutExclusions() throws {
    let cli = try Self.system()
    _ = try cli.succeed("init repo --plain")
    let report = try cli.run("backup \(Self.device) --repo repo")
    #expect(report.code == 0 && report.errors.isEmpty, "\(report.errors)")
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "system", back: "back")
    let kept = try OddTree.listing(cli.directory, "back")
    let unit: ByteString = "apps/web.service/directories"
    #expect(kept[unit.appending("state/web/pages.db")] != nil)
    #expect(kept[unit.appending("logs/web/access.log")] != nil)
    #expect(!kept.keys.contains { "\($0)".contains("cache/") || "\($0)".contains("runtime") })
  }

  @Test func lostDirectoriesOfInstalledUnitsAreRestored() throws {
    let cli = try Self.system()
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup \(Self.device) --repo repo --quiet")
    try Directory.open(path: cli.directory.path("system/var/lib")).removeTree("web")
    try Directory.open(path: cli.directory.path("system/etc")).removeTree("web")
    _ = try cli.succeed("restore latest --in-place --repo repo")
    #expect(try cli.directory.read("system/var/lib/web/pages.db") == Array("rows".utf8))
    #expect(try cli.directory.read("system/etc/web/server.conf") == Array("port 80".utf8))
    // Another system has the unit with only one directory.
    try cli.directory.write(
      "[Service]\nStateDirectory=web\n", at: "other/usr/lib/systemd/system/web.service")
    _ = try Directory.make(path: cli.directory.path("other/var/lib"))
    _ = try cli.run("restore latest --to-device other --repo repo")
    #expect(try cli.directory.read("other/var/lib/web/pages.db") == Array("rows".utf8))
    #expect(try cli.names(in: "other").sorted().filter { $0 == "etc" } == [])
  }

  @Test func purgeDeletesOnlyCaches() throws {
    let cli = try Self.system()
    let before = try TreeRecord.all(in: cli.directory, "system")
    _ = try cli.succeed("purge \(Self.device) --level critical --yes")
    let after = try TreeRecord.all(in: cli.directory, "system")
    let gone = before.keys.filter { after[$0] == nil }
    #expect(gone.map(\.description) == ["var/cache/web/page"])
  }

  /// A cache in use stays.
  @Test func purgeSkipsUnitsWithOpenFiles() throws {
    let cli = try Self.system()
    let page = cli.directory.path("system/var/cache/web/page")
    let holder = try OpenFileHolder(of: "\(page)")
    defer { holder.end() }
    _ = try cli.run("purge \(Self.device) --level critical --yes")
    #expect(try cli.directory.read("system/var/cache/web/page") == Array("made".utf8))
  }
}
