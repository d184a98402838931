import Foundation
import SystemIO
import TestSupport
import Testing

/// `migrate` between iOS devices, simulators, `.xcappdata` bundles and the containers of macOS.
struct MigrateAppleTests {
  private let cli: CommandLine
  private static let app = "org.example.notebook"
  private static let note: ByteString = "Documents/Notes/Recipes.md"

  /// Makes two simulators, of which the second lacks a note.
  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("sample other")
    _ = try cli.succeed("init repo --plain --no-default")
    let note = try data(of: "other").appending(Self.note)
    try Directory.open(path: note.parent).remove(note.lastComponent ?? "")
  }

  /// The real path of the app's data on a device.
  private func data(of device: String) throws -> ByteString {
    let found = try cli.containers(of: device).first { $0.path == "apps/org.example.notebook/data" }
    return try #require(found).realPath
  }

  private func note(in data: ByteString) throws -> [UInt8]? {
    let path = data.appending(Self.note)
    guard let file = try? Descriptor.open(path: path) else { return nil }
    return try file.readAll(limit: 1 << 20)
  }

  /// The line about the app's data among those of a dry run.
  private func container(_ lines: [[String: Any]]) throws -> [String: Any] {
    try #require(lines.first { $0["path"] as? String == "apps/\(Self.app)/data" })
  }

  private func migrate(_ source: String, _ target: String) throws {
    _ = try cli.succeed("migrate --from \(source) --to \(target) --app notebook --repo repo")
  }

  /// Turns the second simulator into the file system of an iOS device.
  private func makePhone() throws {
    for (name, place) in [
      ("Data", "phone/private/var/mobile/Containers"),
      ("Shared", "phone/private/var/mobile/Containers"),
      ("Bundle", "phone/private/var/containers"),
    ] {
      _ = try Directory.make(path: cli.directory.path(ByteString(place)))
      try cli.directory.copy(
        "other/data/Containers/\(name)", of: cli.directory, to: "\(place)/\(name)")
    }
  }

  @Test func aSimulatorsAppMovesToADevice() throws {
    try makePhone()
    let before = try TreeRecord.all(in: cli.directory, "device")
    try migrate("simulator:device", "ios:phone")
    let moved = try note(in: data(of: "phone"))
    #expect(try moved != nil && moved == note(in: data(of: "device")))
    #expect(try TreeRecord.all(in: cli.directory, "device") == before)
  }

  @Test func anIOSDevicesAppMovesToAnotherOne() throws {
    try makePhone()
    try migrate("ios:phone", "ios:device")
    // The phone lacks the note, and everything else is there already.
    let line = "migrate --from ios:phone --to ios:device --app notebook --dry-run --json"
    let found = try container(cli.jsonLines(line))
    #expect((found["copy"] as? [String: Any])?["files"] as? Int == 0)
    #expect(found["present"] as? Int ?? 0 > 10)
  }

  @Test func theDryRunCountsWhatMoves() throws {
    let line = "migrate --from device --to other --app notebook --dry-run"
    let found = try container(cli.jsonLines(line + " --json"))
    let copied = try #require(found["copy"] as? [String: Any])
    #expect(copied["files"] as? Int == 1)
    #expect(try copied["bytes"] as? Int == note(in: data(of: "device"))?.count)
    #expect((found["excluded"] as? [String: Any])?["files"] as? Int ?? 0 > 0)
    #expect(try cli.succeed(line).contains(" in 1 file, already there "))
    #expect(try note(in: data(of: "other")) == nil)
  }

  @Test func whatConflictsStaysAndIsReported() throws {
    let path = try data(of: "other").appending(Self.note)
    try Directory.open(path: path.parent).openOrCreate("Recipes.md").write(Array("mine".utf8))
    let line = "migrate --from device --to other --app notebook --repo repo"
    let preview = try cli.run(line + " --dry-run")
    #expect(preview.code == 3 && preview.output.contains("1 conflict"), "\(preview.output)")
    let outcome = try cli.run(line)
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.errors.contains("Recipes.md: the target has another entry"))
    #expect(try note(in: data(of: "other")) == Array("mine".utf8))
  }

  @Test func anAppMovesIntoABundleAndFromIt() throws {
    let preview = try cli.succeed(
      "migrate --from device --to Notebook.xcappdata --app notebook --dry-run")
    #expect(preview.contains("Notebook.xcappdata/AppData"), "\(preview)")
    #expect(preview.contains("no-place  apps/\(Self.app)/extensions/"), "\(preview)")
    try migrate("device", "Notebook.xcappdata")
    let names = try Directory.open(path: cli.directory.path("Notebook.xcappdata")).names()
    #expect(Set(names) == ["AppData", "AppDataInfo.plist"])
    let wanted = try note(in: data(of: "device"))
    #expect(try note(in: cli.directory.path("Notebook.xcappdata/AppData")) == wanted)
    let apps = try cli.json("apps --root Notebook.xcappdata --json")["apps"] as? [[String: Any]]
    #expect(apps?.map { $0["id"] as? String } == [Self.app])
    // An absolute link into the container is the device's own in the bundle, and again on a device.
    let other = try data(of: "other")
    let link = try latest(in: data(of: "device"))
    #expect(try latest(in: cli.directory.path("Notebook.xcappdata/AppData")) == link)
    try Directory.open(path: other.appending("Documents")).remove("Latest.md")
    try migrate("Notebook.xcappdata", "other")
    #expect(try note(in: other) == wanted)
    #expect(try latest(in: other) == link)
    // Once more: everything is there.
    try migrate("device", "Notebook.xcappdata")
  }

  /// A link with a different target is a conflict, like a file with different content.
  @Test func aLinkWithAnotherTargetIsAConflict() throws {
    let documents = try data(of: "other").appending("Documents")
    let before = try Directory.open(path: documents)
    let line = "migrate --from device --to other --app notebook --dry-run"
    let same = try container(cli.jsonLines(line + " --json"))
    #expect((same["conflicts"] as? [Any])?.isEmpty == true, "\(same)")
    try before.remove("Latest.md")
    try before.createLink("Latest.md", to: "elsewhere")
    let outcome = try cli.run(line)
    #expect(outcome.code == 3 && outcome.output.contains("1 conflict"), "\(outcome.output)")
  }

  /// The target of a link of the app into its own container.
  private func latest(in data: ByteString) throws -> ByteString {
    try Directory.open(path: data.appending("Documents")).target(of: "Latest.md")
  }

  @Test func aBundleHasTheDataOfOneApp() throws {
    let all = try cli.run("migrate --from device --to x.xcappdata --all --repo repo")
    #expect(all.code == 2 && all.errors.contains("the data of one app"), "\(all.errors)")
    try migrate("device", "x.xcappdata")
    let other = try cli.run("migrate --from device --to x.xcappdata --app reader --repo repo")
    #expect(other.code == 1 && other.errors.contains(Self.app), "\(other.errors)")
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    let snapshot = try cli.run("migrate --from latest --to y.xcappdata --app reader --repo repo")
    #expect(snapshot.code == 1 && snapshot.errors.contains("plain directory"), "\(snapshot.errors)")
    #expect(try !cli.directory.directory.names().contains("y.xcappdata"))
  }

  @Test func containersOfMacOSMoveToAnotherMac() throws {
    for (path, text) in [
      ("mac/Library/Containers/com.example.notes/Data/Documents/letter.txt", "dear"),
      ("mac/Library/Containers/com.example.notes/Data/Library/Caches/x", "cache"),
      ("new/Library/Containers/com.example.other/Data/Documents/x", "x"),
    ] {
      try cli.directory.write(text, at: ByteString(path))
    }
    let line = "migrate --from macos:mac --to macos:new --app notes --repo repo"
    _ = try cli.succeed(line)
    let moved: ByteString = "new/Library/Containers/com.example.notes/Data"
    #expect(try cli.directory.read(moved.appending("Documents/letter.txt")) == Array("dear".utf8))
    #expect(throws: (any Error).self) {
      try cli.directory.read(moved.appending("Library/Caches/x"))
    }
  }

  /// An app's data has the same directories on iOS and macOS.
  @Test func anIOSAppMovesIntoAContainerOfMacOS() throws {
    try cli.directory.write("x", at: "mac/Library/Containers/com.example.other/Data/x")
    let wanted = try note(in: data(of: "device"))
    try migrate("device", "macos:mac")
    let moved: ByteString = "mac/Library/Containers/org.example.notebook/Data"
    #expect(try note(in: cli.directory.path(moved)) == wanted)
    try migrate("macos:mac", "other")
    #expect(try note(in: data(of: "other")) == wanted)
  }

  @Test func dataOfBeforeTheSandboxMovesIntoTheContainer() throws {
    for (path, text) in [
      (
        "disk/Applications/Ledger.app/Contents/Info.plist",
        "<plist><dict><key>CFBundleIdentifier</key><string>com.example.ledger</string></dict></plist>"
      ),
      (
        "disk/Applications/Ledger.app/Contents/Resources/container-migration.plist",
        "<plist><dict><key>Move</key><array><string>${Library}/Ledger</string></array></dict></plist>"
      ), ("disk/Users/you/Library/Ledger/book", "book"),
    ] {
      try cli.directory.write(text, at: ByteString(path))
    }
    let line =
      "migrate --from host:disk/Users/you --to macos:disk/Users/you --app com.example.ledger"
    let output = try cli.succeed(line)
    #expect(output.contains("copied 4 B in 1 file"), "\(output)")
    let path = "disk/Users/you/Library/Containers/com.example.ledger/Data/Library/Ledger/book"
    #expect(try cli.directory.read(ByteString(path)) == Array("book".utf8))
    let unknown = try cli.run(line + ".x")
    #expect(unknown.code == 1, "\(unknown.errors)")
  }
}
