import Foundation
import SystemIO
import TestSupport
import Testing

/// `interapp share`, `interapp extensions` and `interapp groups` on the sample device.
struct ShareTests {
  private func sample() throws -> CommandLine {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    return cli
  }

  private func list(_ object: [String: Any], _ key: String) -> [[String: Any]] {
    object[key] as? [[String: Any]] ?? []
  }

  @Test func shareExplainsEachExtension() throws {
    let cli = try sample()
    try cli.directory.write("text\n", at: "note.pdf")
    let text = try cli.succeed("interapp share text:Hello --root device")
    #expect(text.contains("offered: org.example.notebook.share"), "\(text)")
    #expect(text.contains("all attachments are accepted"))
    let refused = try cli.run("interapp share note.pdf --root device")
    #expect(refused.code == 5 && refused.output.contains("not offered: org.example.notebook.share"))
    #expect(refused.output.contains("the file 'note.pdf' is of no accepted kind"))
    for number in 0..<5 { try cli.directory.write("", at: ByteString("p\(number).png")) }
    let many = try cli.run("interapp share p0.png p1.png p2.png p3.png p4.png --root device")
    #expect(many.code == 5 && many.output.contains("5 images, and at most 4 is accepted"))
    let excluded = try cli.run(
      "interapp share text:x --exclude org.example.notebook.share --root device --json")
    #expect(excluded.code == 5 && excluded.output.contains("\"verdict\":\"excluded\""))
    #expect(try cli.run("interapp share text:x --os-version 7 --root device").code == 5)
    #expect(try cli.run("interapp share url:a:%0 --root device").code == 2)
    #expect(try cli.run("interapp share nowhere.png --root device").code == 1)
    #expect(try cli.run("interapp share --root device").code == 2)
  }

  @Test func predicatesAreEvaluatedOrRefusedWithTheirColumn() throws {
    let cli = try sample()
    let share = try #require(
      try cli.json("interapp extensions --root device --json")["extensions"] as? [[String: Any]])
    #expect(share.count == 1)
    let info = try infoPlist(cli)
    func rule(_ text: String) throws {
      try cli.directory.write(
        """
        <plist><dict><key>CFBundleIdentifier</key><string>org.example.notebook.share</string>
        <key>NSExtension</key><dict><key>NSExtensionPointIdentifier</key>
        <string>com.apple.share-services</string><key>NSExtensionAttributes</key><dict>
        <key>NSExtensionActivationRule</key><string>\(text)</string></dict></dict></dict></plist>
        """, at: info)
    }
    try rule(
      "SUBQUERY(extensionItems, $i, SUBQUERY($i.attachments, $a, ANY $a.registeredTypeIdentifiers "
        + "UTI-CONFORMS-TO 'public.text').@count == $i.attachments.@count).@count == 1")
    #expect(try cli.run("interapp share text:x --root device").code == 0)
    let mixed = try cli.run("interapp share text:x url:http://a/ --root device")
    #expect(mixed.code == 5 && mixed.output.contains("the URL 'http://a/' matches no subquery"))
    try rule("extensionItems MATCHES 'x'")
    let refused = try cli.run("interapp share text:x --root device")
    #expect(refused.code == 5 && refused.output.contains("not evaluated: "), "\(refused.output)")
    #expect(refused.output.contains("column 16"))
    try rule(String(repeating: "(", count: 10_000))
    let nested = try cli.run("interapp share text:x --root device")
    #expect(nested.code == 5 && nested.output.contains("more than 100 levels deep"))
    try cli.directory.write("<plist><array/></plist>", at: info)
    #expect(try cli.run("interapp share text:x --root device").code == 5)
  }

  @Test func actionsAreShownApartFromShareExtensions() throws {
    let cli = try sample()
    let share = try infoPlist(cli)
    let action = share.parent.parent.appending("Action.appex/Info.plist")
    try cli.directory.write(
      """
      <plist><dict><key>CFBundleIdentifier</key><string>org.example.notebook.action</string>
      <key>NSExtension</key><dict><key>NSExtensionPointIdentifier</key>
      <string>com.apple.ui-services</string><key>NSExtensionAttributes</key><dict>
      <key>NSExtensionActivationRule</key><dict>
      <key>NSExtensionActivationSupportsWebURLWithMaxCount</key><integer>1</integer>
      </dict></dict></dict></dict></plist>
      """, at: action)
    let text = try cli.succeed("interapp share url:http://a/ --root device")
    let parts = text.components(separatedBy: "Action extensions\n")
    #expect(parts.count == 2 && parts[0].contains("Share extensions\nnot offered: "), "\(text)")
    #expect(parts[1].hasPrefix("offered: org.example.notebook.action"), "\(text)")
    let both = try cli.json("interapp share text:x --root device --json")
    #expect(both["offered"] as? Int == 1 && both["actions_offered"] as? Int == 0)
    #expect(list(both, "extensions").count == 1 && list(both, "actions").count == 1)
    for excluded in ["com.apple.ui-services", "org.example.notebook.action"] {
      let outcome = try cli.run(
        "interapp share url:http://a/ --exclude \(excluded) --root device --json")
      let actions = list(try CommandLine.object(outcome.output), "actions")
      #expect(outcome.code == 5 && actions.first?["verdict"] as? String == "excluded")
    }
    let old = try cli.run("interapp share url:http://a/ --os-version 7 --root device")
    #expect(old.code == 5 && old.output.contains("the system has Action extensions from version 8"))
  }

  @Test func patternsOfTheConfigurationDoNotExcludeActivities() throws {
    let cli = try sample()
    let file: ByteString = "home/.config/sandboxctl/config.yaml"
    try cli.directory.write("exclude: ['*.iso', org.example.notebook.share]\n", at: file)
    let answer = try cli.json("interapp share text:x --root device --json")
    #expect(answer["offered"] as? Int == 1 && list(answer, "exclusions").isEmpty)
    try cli.directory.write(
      "interapp: {share: {exclude: org.example.notebook.share}}\n", at: file)
    #expect(try cli.run("interapp share text:x --root device").code == 5)
    // Nor do the apps of backups select an inbox.
    try cli.directory.write("app: [darkroom, notebook]\nto: /nowhere\n", at: file)
    _ = try cli.succeed("interapp inbox list --root device")
  }

  @Test func extensionsAreListedWithTheirPoints() throws {
    let cli = try sample()
    let text = try cli.succeed("interapp extensions --root device")
    #expect(text.contains("org.example.notebook.share") && text.contains("Share"), "\(text)")
    let all = try cli.json("interapp extensions --root device --json")
    #expect(list(all, "points").count >= 50 && list(all, "extensions").count == 1)
    #expect(list(all, "extensions").first?["point"] as? String == "com.apple.share-services")
    let none = try cli.json("interapp extensions --point com.none --root device --json")
    #expect(list(none, "extensions").isEmpty)
    #expect(list(none, "points").first?["known"] as? Bool == false)
    #expect(try cli.run("interapp extensions --app nobody --root device").code == 1)
    #expect(try cli.run("interapp extensions --layout folder --root device").code == 2)
  }

  @Test func groupsAreListedWithMembersAndTheAppThatRemovesThem() throws {
    let cli = try sample()
    let all = try cli.json("interapp groups --root device --json")
    let notebook = try #require(
      list(all, "groups").first { ($0["id"] as? String)?.contains("library") == true })
    #expect((notebook["bytes"] as? Int ?? 0) > 0 && notebook["orphan"] as? Bool == false)
    let members = list(notebook, "members")
    #expect(members.contains { $0["app"] as? String == "org.example.notebook" })
    let own = try cli.json("interapp groups --app notebook --root device --json")
    #expect(own["app"] as? String == "org.example.notebook")
    let removed = list(own, "groups").filter {
      $0["removed_with"] as? String == "org.example.notebook"
    }
    #expect(own["removed_groups"] as? Int == removed.count)
    #expect(own["removed_bytes"] as? Int == removed.reduce(0) { $0 + ($1["bytes"] as? Int ?? 0) })
    let text = try cli.succeed("interapp groups --root device")
    #expect(text.contains("2 apps may share it") && text.contains("orphan: "), "\(text)")
    #expect(try cli.run("interapp groups --layout folder --root device").code == 2)
  }

  /// Returns the path of the Info.plist of the sample's Share extension.
  private func infoPlist(_ cli: CommandLine) throws -> ByteString {
    let bundles: ByteString = "device/data/Containers/Bundle/Application"
    for name in try Directory.open(path: cli.directory.path(bundles)).names() {
      let path = bundles.appending(name)
        .appending("Notebook.app/PlugIns/Share.appex/Info.plist")
      let full = cli.directory.path(path)
      if FileManager.default.fileExists(atPath: String(decoding: full.bytes, as: UTF8.self)) {
        return path
      }
    }
    throw Program.Failure(description: "the sample has no Share extension")
  }
}
