import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands on the data of Android apps.
struct AndroidTests {
  private static let device = "--layout android --root phone"

  private static func phone() throws -> CommandLine {
    let cli = try CommandLine()
    for (path, text) in [
      ("files/notes/1.txt", "a note"), ("databases/main.db", "rows"),
      ("shared_prefs/app.xml", "<map/>"), ("app_webview/Cookies", "cookies"),
      ("cache/http/0a", "fetched"), ("cache/tiles/1", "a tile"), ("cache/tiles/2", "a tile"),
      ("cache/video/part", "a part"), ("code_cache/dex", "compiled"), ("no_backup/token", "secret"),
    ] {
      try cli.directory.write(text, at: ByteString("phone/data/data/com.example.notes/" + path))
    }
    try cli.directory.write(
      "com.example.notes 10045 0 /data/user/0/com.example.notes default none 0 42\n",
      at: "phone/data/system/packages.list")
    return cli
  }

  @Test func appsAndClassifySupportTheLayout() throws {
    let cli = try Self.phone()
    let text = try cli.succeed("apps --root phone")
    #expect(text.contains("android, Android, 1 app, 1 container"))
    #expect(text.contains("(42)") && !text.contains("not installed"))
    var entries: [ByteString: [String: Any]] = [:]
    for entry in try cli.jsonLines("classify --json \(Self.device)") {
      if let path = entry.path() { entries[path] = entry }
    }
    for (path, name) in [
      ("files/notes/1.txt", "user-data"), ("databases/main.db", "user-data"),
      ("shared_prefs/app.xml", "preferences"), ("app_webview/Cookies", "user-data"),
      ("cache/http/0a", "cache"), ("code_cache/dex", "cache"), ("no_backup/token", "support"),
    ] {
      let entry = entries[ByteString("apps/com.example.notes/data/" + path)]
      #expect(entry?["class"] as? String == name, "\(path)")
    }
  }

  @Test func dataOutsideTheLayoutIsNoted() throws {
    let cli = try Self.phone()
    try cli.directory.write("x", at: "phone/data/user_de/0/com.example.notes/x")
    _ = try cli.succeed("init repo --plain")
    let report = try cli.run("backup \(Self.device) --repo repo")
    #expect(report.code == 0)
    #expect(report.errors.contains("before the first unlock"), "\(report.errors)")
  }

  @Test func restoreEqualsTheSourceWithoutExclusions() throws {
    let cli = try Self.phone()
    _ = try cli.succeed("init repo --plain")
    let report = try cli.run("backup \(Self.device) --repo repo")
    #expect(report.code == 0 && report.errors.isEmpty, "\(report.errors)")
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "phone", back: "back")
    let data: ByteString = "back/apps/com.example.notes/data"
    #expect(try cli.directory.read(data.appending("files/notes/1.txt")) == Array("a note".utf8))
    let names = try cli.names(in: data)
    #expect(!names.contains("no_backup"))
    let notes = cli.directory.path("phone/data/data/com.example.notes")
    try Directory.open(path: notes).removeTree("files")
    _ = try cli.succeed("restore latest --in-place --repo repo")
    #expect(
      try cli.directory.read("phone/data/data/com.example.notes/files/notes/1.txt")
        == Array("a note".utf8))
    _ = try Directory.make(path: cli.directory.path("other/data/data"))
    _ = try cli.succeed("restore latest --to-device other --repo repo")
    #expect(
      try cli.directory.read("other/data/data/com.example.notes/databases/main.db")
        == Array("rows".utf8))
  }

  /// A grouped directory is deleted as a unit, and a tombstone is an empty file.
  @Test func purgeObservesAndroidsMarks() throws {
    let cli = try Self.phone()
    let data = "phone/data/data/com.example.notes/"
    for (name, mark) in [
      ("cache/tiles", "user.cache_group"), ("cache/video", "user.cache_tombstone"),
    ] {
      let outcome = try Program.run(
        "setfattr", ["-n", mark, data + name], in: cli.directory.url)
      #expect(outcome.code == 0, "\(outcome.errors)")
    }
    let candidates = try cli.jsonLines("purge \(Self.device) --level critical --dry-run --json")
      .filter { $0["event"] as? String == "candidate" }
    let paths = Set(candidates.compactMap { $0.path() })
    #expect(paths.contains("apps/com.example.notes/data/cache/tiles"))
    #expect(!paths.contains("apps/com.example.notes/data/cache/tiles/1"))
    let before = try TreeRecord.all(in: cli.directory, "phone")
    _ = try cli.succeed("purge \(Self.device) --level critical --yes")
    let after = try TreeRecord.all(in: cli.directory, "phone")
    let gone = before.keys.filter { after[$0] == nil }
    #expect(gone.contains { "\($0)".hasSuffix("cache/tiles/1") })
    #expect(gone.allSatisfy { "\($0)".contains("cache/") }, "\(gone.sorted())")
    #expect(try cli.directory.read(ByteString(data + "cache/video/part")).isEmpty)
    #expect(try cli.directory.read(ByteString(data + "files/notes/1.txt")) == Array("a note".utf8))
  }

  @Test func changesOfAppsAreOnlyReported() throws {
    let cli = try Self.phone()
    let text = try cli.succeed("uninstall notes \(Self.device)")
    #expect(text.contains("simulated: Android does this itself"))
    #expect(text.contains("run: adb uninstall com.example.notes"))
  }
}
