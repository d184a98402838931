import Foundation
import SystemIO
import TestSupport
import Testing

/// What a backup advises to do next: it has to work as it is printed.
@Suite struct NextStepsTests {
  /// The commands that a backup advises, without the program's name.
  private static func advice(_ rig: DeviceRestoreFixture, _ line: String) throws -> [String] {
    let last = try rig.cli.succeed(line).split(separator: "\n").last.map(String.init) ?? ""
    let words = try #require(last.wholeMatch(of: /next: sandboxctl (.*) {5}sandboxctl (.*)/))
    return [String(words.output.1), String(words.output.2)]
  }

  @Test func anAppIsAdvisedByItsShortestName() throws {
    let rig = try DeviceRestoreFixture()
    let advice = try Self.advice(rig, "backup --root device --repo repo")
    #expect(
      advice == ["restore latest --app podcast --to look --repo repo", "ls latest --repo repo"])
    for line in advice { _ = try rig.cli.succeed(line) }
    #expect(rig.isThere(rig.cli.directory.path("look/data/Documents/Show notes.md")))
  }

  @Test func ofTwoAppsWithOneNameTheIdentifierIsAdvised() throws {
    let rig = try DeviceRestoreFixture()
    try rig.addTwin(of: "com.example.podcast", as: "org.another.podcast", on: "device")
    let advice = try Self.advice(rig, "backup --root device --repo repo")
    #expect(advice[0] == "restore latest --app com.example.podcast --to look --repo repo")
    _ = try rig.cli.succeed(advice[0])
    #expect(rig.isThere(rig.cli.directory.path("look/data/Documents/Show notes.md")))
  }

  /// A display name may be shorter than the identifier's last part; 'latest' is another snapshot.
  @Test func aBackupOfOneAppAdvisesItsOwnSnapshot() throws {
    let rig = try DeviceRestoreFixture()
    let bundle = try rig.place("apps/org.example.notebook/bundle", of: "device")
    let list = """
      <?xml version="1.0"?><plist version="1.0"><dict>
      <key>CFBundleIdentifier</key><string>org.example.notebook</string>
      <key>CFBundleDisplayName</key><string>Pad</string></dict></plist>
      """
    let directory = try Directory.open(path: bundle).directory("Notebook.app")
    try directory.remove("Info.plist")
    try directory.create("Info.plist").write(Array(list.utf8))
    let advice = try Self.advice(rig, "backup --root device --app notebook --repo repo")
    let id = try #require(try rig.cli.snapshots().last).prefix(8)
    #expect(
      advice == ["restore \(id) --app pad --to look --repo repo", "ls \(id) --repo repo"])
    _ = try rig.cli.succeed(advice[0])
    #expect(rig.isThere(rig.cli.directory.path("look/data/Documents/Latest.md")))
    #expect(try rig.cli.succeed(advice[1]).contains("apps"))
  }
}
