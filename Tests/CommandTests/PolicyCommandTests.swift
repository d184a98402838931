import Foundation
import SystemIO
import TestSupport
import Testing

/// The built-in policies as shown by the commands, and the effect of the user's own policies.
struct PolicyCommandTests {
  private static let names = [
    "common", "apple", "ios", "flatpak", "macos", "snap", "android", "systemd", "xdg", "everything",
  ]

  private static func file(_ name: String) throws -> String {
    try String(
      contentsOf: Shared.packageRoot.appendingPathComponent("policies/\(name)"), encoding: .utf8)
  }

  @Test func builtInPoliciesAreShownUnchanged() throws {
    let cli = try CommandLine()
    for name in Self.names {
      let file = try Self.file(name + ".yaml")
      #expect(try cli.succeed("policy show \(name)") == file)
      let shown = try cli.json("policy show \(name) --json")
      #expect(shown["text"] as? String == file)
      #expect(shown["policy"] as? String == name)
    }
    #expect(try cli.succeed("policy schema") == Self.file("policy.schema.json"))
  }

  @Test func builtInAndUserPoliciesAreListed() throws {
    let cli = try CommandLine()
    #expect(try cli.jsonLines("policy list --json").map { $0["policy"] as? String } == Self.names)
    try cli.directory.write(
      "overlay: all\nschema: 1\nrules:\n  - {id: a, match: '**/x', restore: skip}\n",
      at: "home/.config/sandboxctl/policies/site.yaml")
    let listed = try cli.jsonLines("policy list --json")
    #expect(listed.count == Self.names.count + 1)
    #expect(listed.last?["overlay"] as? Bool == true)
    #expect(listed.last?["origin"] as? String == "user")
    #expect(listed.last?["rules"] as? Int == 1)
    let text = try cli.succeed("policy list").split(separator: "\n")
    #expect(text.count == Self.names.count + 2)
    let tables = try FileManager.default.contentsOfDirectory(
      atPath: Shared.packageRoot.appendingPathComponent("policies/migrations").path)
    let count = Self.names.count + 1 + tables.count
    #expect(try cli.succeed("policy lint").contains("\(count) files: no mistakes"))
    #expect(try cli.succeed("policy test").contains(", 0 failed"))
  }

  @Test func migrationTablesAreCheckedAndTested() throws {
    let cli = try CommandLine()
    #expect(try cli.succeed("policy schema --migration") == Self.file("migration.schema.json"))
    let table = try Self.file("migrations/krita.yaml")
    try cli.directory.write(table, at: "own.yaml")
    #expect(try cli.succeed("policy lint own.yaml") == "1 file: no mistakes\n")
    #expect(try cli.succeed("policy test own.yaml").hasSuffix("examples, 0 failed\n"))
    try cli.directory.write(
      table.replacingOccurrences(of: "becomes: config/kritarc", with: "becomes: config/other"),
      at: "wrong.yaml")
    let lint = try cli.run("policy lint wrong.yaml")
    #expect(lint.code == 5)
    #expect(lint.output.contains("wrong.yaml:") && lint.output.contains("config/other"))
    #expect(try cli.run("policy test wrong.yaml").code == 5)
    // A user's table is among those that are checked by default.
    try cli.directory.write(
      "migration: bad\nschema: 1\n",
      at: "home/.config/sandboxctl/policies/migrations/bad.yaml")
    #expect(try cli.run("policy lint").code == 5)
  }

  @Test func laterLayerIncludesDespiteAMark() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let path = "apps/org.example.darkroom/data/Documents/Originals/IMG_0001.DNG"
    #expect(!(try cli.succeed("explain --root device \(path)").contains("despite")))
    try cli.directory.write(
      "overlay: [coresimulator]\nschema: 1\nrules:\n"
        + "  - {id: originals, match: Documents/Originals/**, backup: always}\n", at: "site.yaml")
    let explained = try cli.succeed("explain --root device --policy site.yaml \(path)")
    let kept = "kept despite the mark excluded-from-backup, by originals, site.yaml:4:5\n"
    #expect(explained.hasSuffix(kept), "\(explained)")
    #expect(explained.contains("\nplatform: "))
    let included = try cli.succeed(
      "explain --root device --include Documents/Originals/** \(path)")
    #expect(included.contains("kept despite the mark excluded-from-backup, by include-1"))
    let entry = try cli.jsonLines("classify --root device --policy site.yaml --json \(path)")
    #expect(entry.map { $0["stored"] as? String } == ["kept"])
  }

  @Test func policySeesTheMembersOfAGroup() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    #expect(try cli.succeed("apps --root device").contains("group.com.example.podcast (guessed)"))
    try cli.directory.write(
      "overlay: all\nschema: 1\ngroups:\n"
        + "  group.com.example.podcast: {members: [com.example.podcast, org.example.reader]}\n",
      at: "groups.yaml")
    let text = try cli.succeed("apps --root device --policy groups.yaml")
    #expect(!text.contains("guessed"))
    #expect(text.contains("group.com.example.podcast  com.example.podcast, org.example.reader\n"))
    let device = try cli.json("apps --root device --policy groups.yaml --json")
    let apps = try #require(device["apps"] as? [[String: Any]])
    let podcast = try #require(apps.first { $0["id"] as? String == "com.example.podcast" })
    let groups = podcast["groups"] as? [[String: Any]] ?? []
    #expect(groups.map { $0["source"] as? String } == ["policy"])
    #expect(groups.map { $0["known"] as? Bool } == [true])
    try cli.directory.write("overlay: all\nschema: 1\ngrups: {}\n", at: "wrong.yaml")
    #expect(try cli.run("apps --root device --policy wrong.yaml").code == 1)
  }
}
