import Foundation
import SystemIO
import TestSupport
import Testing

/// The commands that a backup suggests: they work as printed.
struct NextStepsTests {
  /// Returns the commands that a backup suggests, without the program's name.
  private static func advice(_ fixture: DeviceRestoreFixture, _ line: String) throws -> [String] {
    let last = try fixture.cli.succeed(line).split(separator: "\n").last.map(String.init) ?? ""
    let words = try #require(last.wholeMatch(of: /next: sandboxctl (.*) {5}sandboxctl (.*)/))
    return [String(words.output.1), String(words.output.2)]
  }

  @Test func suggestionUsesTheShortestAppName() throws {
    let fixture = try DeviceRestoreFixture()
    let advice = try Self.advice(fixture, "backup --root device --repo repo")
    #expect(
      advice == ["restore latest --app podcast --to restored --repo repo", "ls latest --repo repo"])
    for line in advice { _ = try fixture.cli.succeed(line) }
    #expect(fixture.isThere(fixture.cli.directory.path("restored/data/Documents/Show notes.md")))
  }

  @Test func suggestionUsesTheIdentifierOfAnAmbiguousApp() throws {
    let fixture = try DeviceRestoreFixture()
    try fixture.addTwin(of: "com.example.podcast", as: "org.another.podcast", on: "device")
    let advice = try Self.advice(fixture, "backup --root device --repo repo")
    #expect(advice[0] == "restore latest --app com.example.podcast --to restored --repo repo")
    _ = try fixture.cli.succeed(advice[0])
    #expect(fixture.isThere(fixture.cli.directory.path("restored/data/Documents/Show notes.md")))
  }

  /// A display name may be shorter than the last part of the identifier; 'latest' is another
  /// snapshot.
  @Test func backupOfOneAppSuggestsItsOwnSnapshot() throws {
    let fixture = try DeviceRestoreFixture()
    let bundle = try fixture.path("apps/org.example.notebook/bundle", of: "device")
    let list = """
      <?xml version="1.0"?><plist version="1.0"><dict>
      <key>CFBundleIdentifier</key><string>org.example.notebook</string>
      <key>CFBundleDisplayName</key><string>Pad</string></dict></plist>
      """
    let directory = try Directory.open(path: bundle).directory("Notebook.app")
    try directory.remove("Info.plist")
    try directory.create("Info.plist").write(Array(list.utf8))
    let advice = try Self.advice(fixture, "backup --root device --app notebook --repo repo")
    let id = try #require(try fixture.cli.snapshots().last).prefix(8)
    #expect(
      advice == ["restore \(id) --app pad --to restored --repo repo", "ls \(id) --repo repo"])
    _ = try fixture.cli.succeed(advice[0])
    #expect(fixture.isThere(fixture.cli.directory.path("restored/data/Documents/Latest.md")))
    #expect(try fixture.cli.succeed(advice[1]).contains("apps"))
  }
}
