import Foundation
import SystemIO
import TestSupport
import Testing

/// The commands on the containers of a macOS user.
struct MacOSTests {
  private static let library = "disk/Users/you/Library/"

  private static func disk() throws -> CommandLine {
    let cli = try CommandLine()
    let data = library + "Containers/com.example.notes/Data/"
    for (path, text) in [
      (data + "Documents/letter.txt", "dear"), (data + "Library/Caches/x/Cache.db", "fetched"),
      (data + "Library/Preferences/com.example.notes.plist", "<plist/>"),
      (data + "Library/Autosave Information/Unsaved.txt", "unsaved"), (data + "tmp/y", "y"),
      (data + "Library/Application Support/store.db", "rows"),
      (library + "Group Containers/group.com.example/shared.db", "shared"),
      (library + "Group Containers/group.com.example/Library/Caches/z", "z"),
      ("disk/Users/you/Applications/Notes.app/Contents/Info.plist", Self.plist),
      ("disk/Users/you/Applications/Notes.app/Contents/Resources/icon", "icon"),
      ("disk/Users/you/Applications/Free.app/Contents/Info.plist", "<plist><dict/></plist>"),
      ("disk/Users/you/Desktop/mine.txt", "not the app's"),
    ] {
      try cli.directory.write(text, at: ByteString(path))
    }
    try Directory.open(path: cli.directory.path(ByteString(data)))
      .createLink("Desktop", to: "../../../../Desktop")
    return cli
  }

  private static let plist = """
    <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>com.example.notes</string>
    <key>CFBundleName</key><string>Notes</string><key>CFBundleShortVersionString</key>
    <string>3.1</string></dict></plist>
    """

  @Test func appsAndClassifySupportTheLayout() throws {
    let cli = try Self.disk()
    let text = try cli.succeed("apps --root disk/Users/you")
    #expect(text.contains("macos, macOS, 1 app, 3 containers"))
    #expect(text.contains("bundle, data"))
    let path = "apps/com.example.notes/data"
    let entries = try cli.jsonLines("classify --root disk/Users/you --json \(path)")
    var classes: [ByteString: String] = [:]
    for entry in entries {
      if let path = entry.path() { classes[path] = entry["class"] as? String }
    }
    for (inner, name) in [
      ("Documents/letter.txt", "user-data"), ("Library/Caches/x/Cache.db", "cache"),
      ("Library/Autosave Information/Unsaved.txt", "user-data"), ("tmp/y", "temporary"),
      ("Desktop", "user-data"), ("Library/Application Support/store.db", "support"),
    ] {
      #expect(classes[ByteString(path).appending(ByteString(inner))] == name, "\(inner)")
    }
    let explained = try cli.succeed("explain --root disk/Users/you notes/Documents/letter.txt")
    #expect(explained.contains("rule documents"))
  }

  @Test func restoreEqualsTheSourceWithoutExclusions() throws {
    let cli = try Self.disk()
    _ = try cli.succeed("init repo --plain")
    let report = try cli.run("backup --root disk/Users/you --repo repo")
    #expect(report.code == 0, "\(report.errors)")
    #expect(report.output.hasPrefix("device  ") && report.output.contains("disk/Users/you: 1 app"))
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "disk/Users/you", back: "back")
    let kept = try OddTree.listing(cli.directory, "back")
    let data: ByteString = "apps/com.example.notes/data"
    for path: ByteString in [
      "Documents/letter.txt", "Library/Autosave Information/Unsaved.txt", "Desktop",
    ] {
      #expect(kept[data.appending(path)] != nil, "\(path)")
    }
    #expect(kept["apps/com.example.notes/bundle/Notes.app/Contents/Info.plist"] != nil)
    #expect(kept["groups/group.com.example/shared.db"] != nil)
    // The link stays a link, and its target is not in a container.
    let link = try Directory.open(path: cli.directory.path("back").appending(data))
    #expect(try link.target(of: "Desktop") == "../../../../Desktop")
    #expect(!kept.keys.contains { "\($0)".contains("mine.txt") || "\($0)".contains("Free.app") })
  }
}
