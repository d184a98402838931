import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands on a plain home directory.
struct XDGTests {
  private static let device = "--layout xdg --root desk"

  private static func desk() throws -> CommandLine {
    let cli = try CommandLine()
    for (path, text) in [
      (".config/editor/settings.ini", "dark"), (".config/kdeglobals", "[General]"),
      (".config/chat/Local State", "{}"), (".config/chat/Default/Bookmarks", "mine"),
      (".config/chat/Default/Preferences", "{}"), (".config/chat/Default/Code Cache/js/x", "again"),
      (".local/share/editor/notes.txt", "a note"), (".local/share/Trash/files/old", "thrown away"),
      (".local/share/user-places.xbel", "<xbel/>"), (".local/state/editor/history", "undo"),
      (".cache/editor/http/0a", "fetched"), (".cache/thumbnails/large/a.png", "picture"),
      (".local/share/Steam/steamapps/common/Game/pak", "game"),
      (".local/share/builder/out/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
      (".local/share/builder/out/o", "made"), ("Documents/letter.txt", "beside the apps"),
    ] {
      try cli.directory.write(text, at: ByteString("desk/" + path))
    }
    return cli
  }

  @Test func appsAndClassifySupportTheLayout() throws {
    let cli = try Self.desk()
    let device = try cli.json("apps --json \(Self.device)")
    #expect(device["layout"] as? String == "xdg")
    let containers = device["containers"] as? [[String: Any]] ?? []
    let kinds = containers.compactMap { $0["kind"] as? String }
    #expect(Set(kinds) == ["config", "data", "state", "cache", "file"])
    #expect(try !cli.succeed("apps \(Self.device)").contains("not installed"))
    var classes: [ByteString: String] = [:]
    for entry in try cli.jsonLines("classify --json \(Self.device)") {
      if let path = entry.path() { classes[path] = entry["class"] as? String }
    }
    for (path, name) in [
      ("apps/editor/config/settings.ini", "preferences"),
      ("apps/editor/data/notes.txt", "user-data"),
      ("apps/editor/state/history", "support"), ("apps/editor/cache/http/0a", "cache"),
      ("apps/kdeglobals/files/config/kdeglobals", "preferences"),
      ("apps/chat/config/Default/Bookmarks", "user-data"),
      ("apps/chat/config/Default/Code Cache/js/x", "cache"),
      ("apps/Steam/data/steamapps/common/Game/pak", "downloaded"),
      ("apps/builder/data/out/o", "user-data"),
    ] {
      #expect(classes[ByteString(path)] == name, "\(path)")
    }
    #expect(classes.keys.allSatisfy { !"\($0)".contains("letter.txt") })
    let explained = try cli.succeed("explain \(Self.device) editor/notes.txt")
    #expect(explained.contains("rule data") && explained.contains("a data container"))
  }

  /// A single file is looked up by its name: its directory, which has many, is not listed for each.
  @Test(.enabled(if: Strace.isPermitted)) func singleFilesCostNoListing() throws {
    let cli = try CommandLine()
    for number in 0..<60 {
      try cli.directory.write("x", at: ByteString("desk/.config/file\(number)rc"))
    }
    let outcome = try cli.run(
      "classify --json \(Self.device)",
      under: ["strace", "-f", "-y", "-o", "trace", "-e", "trace=getdents64"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("file59rc"), "\(outcome.output)")
    let trace = String(decoding: try cli.directory.read("trace"), as: UTF8.self)
    let listings = trace.split(separator: "\n").filter { $0.contains("/desk/.config>") }
    #expect((1..<30).contains(listings.count), "\(listings.count)")
  }

  @Test func restoreEqualsTheSourceWithoutExclusions() throws {
    let cli = try Self.desk()
    _ = try cli.succeed("init repo --plain")
    let report = try cli.run("backup \(Self.device) --repo repo")
    #expect(report.code == 0 && report.errors.isEmpty, "\(report.errors)")
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "desk --layout xdg", back: "back")
    let kept = try OddTree.listing(cli.directory, "back")
    for path: ByteString in [
      "apps/editor/config/settings.ini", "apps/editor/data/notes.txt",
      "apps/user-places.xbel/files/data/user-places.xbel", "apps/builder/data/out/o",
    ] {
      #expect(kept[path] != nil, "\(path)")
    }
    for part in ["/cache", "Code Cache", "Trash/", "steamapps/common"] {
      #expect(!kept.keys.contains { "\($0)".contains(part) }, "\(part)")
    }
  }

  @Test func lostDirectoriesAndFilesAreRestoredInPlace() throws {
    let cli = try Self.desk()
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup \(Self.device) --repo repo --quiet")
    let config = try Directory.open(path: cli.directory.path("desk/.config"))
    try config.removeTree("editor")
    try config.remove("kdeglobals")
    try Directory.open(path: cli.directory.path("desk/.local")).removeTree("state")
    try cli.directory.write("changed", at: "desk/.local/share/user-places.xbel")
    try cli.directory.write("new", at: "desk/.config/new-file")
    _ = try cli.succeed("restore latest --in-place --overwrite always --repo repo")
    for (path, text) in [
      (".config/editor/settings.ini", "dark"), (".config/kdeglobals", "[General]"),
      (".local/state/editor/history", "undo"), (".local/share/user-places.xbel", "<xbel/>"),
      (".config/new-file", "new"), (".cache/editor/http/0a", "fetched"),
    ] {
      #expect(try cli.directory.read(ByteString("desk/" + path)) == Array(text.utf8), "\(path)")
    }
    // To the home directory of another machine.
    _ = try Directory.make(path: cli.directory.path("other/.config"))
    _ = try cli.succeed("restore latest --to-device other --repo repo")
    #expect(try cli.directory.read("other/.config/kdeglobals") == Array("[General]".utf8))
    #expect(try cli.directory.read("other/.local/state/editor/history") == Array("undo".utf8))
    #expect(try cli.names(in: "other").sorted().contains(".local"))
  }

  /// The files of a database beside the directories of apps are captured and restored together.
  @Test func databasesInSingleFilesAreRestoredWithTheirLogs() throws {
    let cli = try Self.desk()
    let database: ByteString = "desk/.local/share/notes.db"
    let log: ByteString = "desk/.local/share/notes.db-wal"
    try cli.directory.write("SQLite format 3\u{0} old", at: database)
    try cli.directory.write("log of old", at: log)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup \(Self.device) --repo repo --quiet")
    _ = try cli.succeed("restore latest --to back --repo repo")
    let kept = try OddTree.listing(cli.directory, "back")
    #expect(kept["apps/notes.db/files/data/notes.db-wal"] != nil)
    #expect(!kept.keys.contains { "\($0)".contains("apps/notes.db-wal") })
    try cli.directory.write("SQLite format 3\u{0} later than that", at: database)
    try Directory.open(path: cli.directory.path("desk/.local/share")).remove("notes.db-wal")
    _ = try cli.succeed("restore latest --in-place --overwrite always --repo repo")
    #expect(try cli.directory.read(database) == Array("SQLite format 3\u{0} old".utf8))
    #expect(try cli.directory.read(log) == Array("log of old".utf8))
  }

  @Test func longNamesAreBackedUp() throws {
    let cli = try Self.desk()
    let file = ByteString("desk/.config/" + String(repeating: "n", count: 255) + "/x")
    try cli.directory.write("mine", at: file)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup \(Self.device) --repo repo --quiet")
    try cli.directory.write("changed", at: file)
    _ = try cli.succeed("restore latest --in-place --overwrite always --repo repo")
    #expect(try cli.directory.read(file) == Array("mine".utf8))
  }

  @Test func purgeDeletesOnlyCaches() throws {
    let cli = try Self.desk()
    let before = try TreeRecord.all(in: cli.directory, "desk")
    _ = try cli.succeed("purge \(Self.device) --level critical --yes")
    let after = try TreeRecord.all(in: cli.directory, "desk")
    let gone = before.keys.filter { after[$0] == nil }
    #expect(gone.contains { "\($0)".hasSuffix("http/0a") })
    #expect(gone.contains { "\($0)".contains("Code Cache") })
    let isCache = { (path: ByteString) in
      "\(path)".contains(".cache/") || "\(path)".contains("Code Cache")
    }
    #expect(gone.allSatisfy(isCache), "\(gone.sorted())")
  }

  @Test func purgeKeepsOnlyCopiesInCaches() throws {
    let cli = try Self.desk()
    let only: [ByteString] = [
      "simple-scan/autosaves/autosave.book", "obexd/photo.jpg", "ibus/libpinyin/user_bigram.db",
      "sessions/xfce4-session-host:0", "zsh/history", "vim/undo/letter", "huggingface/token",
    ]
    let pending: [ByteString] = [
      "evolution/calendar/1/cache.db", "rclone/vfs/remote/report", "rclone/bisync/a.lst",
      "onedriver/drive/content/1",
    ]
    for path in only + pending + ["zsh/zcompdump"] {
      try cli.directory.write("written once", at: ByteString("desk/.cache").appending(path))
    }
    let kept = try cli.succeed("classify \(Self.device) --all")
      .split(separator: "\n").filter { $0.contains(" kept ") }
    for path in only {
      let name = "\(path)".split(separator: "/").last ?? ""
      #expect(kept.contains { $0.hasSuffix("/\(name)") }, "\(path)")
    }
    _ = try cli.succeed("purge \(Self.device) --level critical --yes")
    let left = Set(try TreeRecord.all(in: cli.directory, "desk/.cache").keys)
    #expect(left.isSuperset(of: only + pending))
    #expect(!left.contains("zsh/zcompdump"))
  }

  /// A repository that is a whole container stays because its files cannot be deleted in one step.
  @Test func purgeKeepsAContainerThatIsARepository() throws {
    let cli = try Self.desk()
    for path: ByteString in [".git/HEAD", "recipe"] {
      try cli.directory.write("x", at: ByteString("desk/.cache/builds").appending(path))
      try cli.directory.write("x", at: ByteString("desk/.cache/several/one").appending(path))
    }
    let path = "apps/builds/cache/recipe"
    let explained = try cli.succeed("explain \(Self.device) --purge \(path)")
    #expect(explained.contains("not a candidate: it, or its container, is a repository"))
    _ = try cli.succeed("purge \(Self.device) --level critical --yes")
    let left = Set(try TreeRecord.all(in: cli.directory, "desk/.cache").keys)
    #expect(left.isSuperset(of: ["builds/.git/HEAD", "builds/recipe", "several"]))
    #expect(!left.contains("several/one"))
  }

  @Test func changesOfAppsAreOnlyReported() throws {
    let cli = try Self.desk()
    let text = try cli.succeed("uninstall editor \(Self.device)")
    #expect(text.contains("simulated: the system's package manager does this itself"))
    #expect(try cli.directory.read("desk/.config/editor/settings.ini") == Array("dark".utf8))
  }

  @Test func theHomeDirectoryIsTheDefaultOfTheLayout() throws {
    let cli = try CommandLine()
    try cli.directory.write("x", at: "home/.config/editor/x")
    let device = try cli.json("apps --json --layout xdg")
    #expect(device["root"] as? String == cli.directory.string + "/home")
  }
}
