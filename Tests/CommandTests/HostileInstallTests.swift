import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands for pasting that are built from a snapshot's record of an app.
struct HostileInstallTests {
  private static let app = "org.example.App"

  /// Restores a snapshot with this record of its only app, as JSON, to a device without the app.
  private func restore(
    _ origin: String, _ url: String, _ architecture: String, _ branch: String,
    _ options: String = ""
  ) throws -> Program.Outcome {
    let flatpak =
      #"{"scope":"user","arch":"\#(architecture)","branch":"\#(branch)","commit":"c","#
      + #""origin":"\#(origin)","url":"\#(url)"}"#
    let cli = try HostileLocationTests.forge(
      ["apps", Self.app, "data"],
      members: #""apps":[{"id":"\#(Self.app)","containers":[{"path":"apps/\#(Self.app)/data"}],"#
        + #""flatpak":\#(flatpak)}],"#
    ) { _ in
      #""layout":"flatpak","root":"/nowhere","containers":"#
        + #"[{"path":"apps/\#(Self.app)/data","real_path":"/x"}]"#
    }
    _ = try Directory.make(path: cli.directory.path("home/.var/app/org.example.Other/data"))
    let outcome = try cli.run(
      "restore latest --to-device home/.var/app --no-snapshot --repo repo \(options)")
    #expect(outcome.code == 0, "\(outcome.errors)")
    let data: ByteString = "home/.var/app/org.example.App/evil.txt"
    #expect(try cli.directory.read(data) == Array("hostile".utf8))
    return outcome
  }

  @Test(arguments: [
    [#"lab\u001b[2K\rtrue"#, "https://example.org", "x86_64", "stable"],
    ["lab", #"https://example.org\u001b]52;c;eA==\u0007"#, "x86_64", "stable"],
    ["lab", "https://example.org", #"x86_64\nreboot"#, "stable"],
    ["lab", "https://example.org", "x86_64", #"sta\u202eble"#],
    ["--installation=x", "https://example.org", "x86_64", "stable"],
    ["lab", "--from=/tmp/evil", "x86_64", "stable"],
    ["", "https://example.org", "x86_64", "stable"],
  ])
  func noCommandIsShownForAHostileRecord(words: [String]) throws {
    for options in ["", "--json"] {
      let outcome = try restore(words[0], words[1], words[2], words[3], options)
      let bytes = outcome.standardOutput + Array(outcome.errors.utf8)
      #expect(bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x0a }, "\(outcome.output)")
      #expect(!outcome.output.contains("flatpak install"), "\(outcome.output)")
      #expect(!outcome.output.contains("flatpak remote-add"), "\(outcome.output)")
      #expect(
        outcome.errors.contains("apps/\(Self.app): no command to install it is shown"),
        "\(outcome.errors)")
    }
  }

  @Test func aPrintableWordIsQuoted() throws {
    let outcome = try restore("my lab", "https://example.org/$(reboot)", "x86_64", "stable")
    let lines = outcome.output.split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    #expect(
      lines.contains(
        "flatpak remote-add --if-not-exists --user 'my lab' 'https://example.org/$(reboot)'"),
      "\(outcome.output)")
    #expect(lines.contains("flatpak install --user 'my lab' \(Self.app)/x86_64/stable"))
    #expect(!outcome.errors.contains("no command"), "\(outcome.errors)")
  }
}
