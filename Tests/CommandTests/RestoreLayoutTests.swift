import SystemIO
import TestSupport
import Testing

/// Containers created on devices of other layouts.
struct RestoreLayoutTests {
  @Test func snapIsRestoredToAMachineWithoutIt() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("profile", at: "home/snap/reader/common/profile")
    try cli.directory.write("settings", at: "home/snap/reader/7/settings")
    try cli.directory.write("older", at: "home/snap/reader/6/settings")
    try Directory.open(path: cli.directory.path("home/snap/reader")).createLink("current", to: "7")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout snap --root home/snap --repo repo --quiet")
    _ = try Directory.make(path: cli.directory.path("other"))
    _ = try cli.succeed("restore latest --to-device other/snap --repo repo")
    #expect(try cli.names(in: "other/snap/reader") == ["7", "common", "current"])
    #expect(try cli.directory.read("other/snap/reader/current/settings") == Array("settings".utf8))
    #expect(try cli.directory.read("other/snap/reader/common/profile") == Array("profile".utf8))
    // It is merged into the revision in use, even if that is another one.
    try Directory.open(path: cli.directory.path("other/snap/reader")).removeTree("current")
    try Directory.open(path: cli.directory.path("other/snap/reader")).removeTree("7")
    try cli.directory.write("new", at: "other/snap/reader/9/new")
    try Directory.open(path: cli.directory.path("other/snap/reader")).createLink("current", to: "9")
    _ = try cli.succeed("restore latest --to-device other/snap --repo repo")
    #expect(try cli.names(in: "other/snap/reader/9") == ["new", "settings"])
  }

  @Test func macAppIsRestored() throws {
    let cli = try CommandLine(inMemory: true)
    let data: ByteString = "mac/Library/Containers/org.example.Editor/Data"
    try cli.directory.write("text", at: data.appending("Documents/a.txt"))
    try cli.directory.write("cache", at: data.appending("Library/Caches/b"))
    try cli.directory.write("shared", at: "mac/Library/Group Containers/group.org.example/c")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout macos --root mac --repo repo --quiet")
    _ = try Directory.make(path: cli.directory.path("other/Library/Containers"))
    _ = try cli.succeed("restore latest --to-device other --repo repo")
    let there: ByteString = "other/Library/Containers/org.example.Editor/Data"
    #expect(try cli.directory.read(there.appending("Documents/a.txt")) == Array("text".utf8))
    #expect(try cli.names(in: there.appending("Library/Caches")).isEmpty)
    #expect(
      try cli.directory.read("other/Library/Group Containers/group.org.example/c")
        == Array("shared".utf8))
  }
}
