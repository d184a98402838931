import Foundation
import SystemIO
import TestSupport
import Testing

/// Names that could corrupt output: a line break, an escape sequence, invalid UTF-8.
struct NameTests {
  private static let names: [ByteString] = [
    "two\nlines", "red \u{1b}[31m", "right-to-left \u{202e}txt", "tab\there", "back\\slash",
    ByteString("scan ".utf8 + [0xff, 0xfe]), ByteString([0xc3]), "caf\u{e9}", "cafe\u{301}",
  ]

  private static func device() throws -> CommandLine {
    let cli = try CommandLine()
    for name in names {
      let app = ByteString("home/.var/app/org.example.Names/data")
      try cli.directory.write("x", at: app.appending(name).appending(name))
    }
    let odd = ByteString("home/.var/app/org.example.".utf8 + [0xff, 0x0a] + "Odd".utf8)
    try cli.directory.write("x", at: odd.appending("data/file"))
    return cli
  }

  /// Expects an output to contain only line breaks and printable characters.
  private static func expectReadable(_ text: [UInt8], _ what: String) {
    let string = String(validating: text, as: UTF8.self)
    #expect(string != nil, "\(what) is UTF-8")
    let controls = (string ?? "").unicodeScalars.filter { scalar in
      scalar != "\n" && [.control, .format].contains(scalar.properties.generalCategory)
    }
    #expect(controls.isEmpty, "\(what)")
  }

  @Test func oddNamesAreEscapedInText() throws {
    let cli = try Self.device()
    _ = try cli.succeed("init repo --plain")
    let backup = try cli.run("backup --repo repo")
    #expect(backup.code == 0)
    Self.expectReadable(backup.standardOutput, "backup")
    for line in [
      "apps", "classify --all", "ls latest --recursive --repo repo", "snapshots --repo repo",
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 0)
      Self.expectReadable(outcome.standardOutput, line)
      Self.expectReadable(outcome.standardError, line)
    }
    for line in ["classify --all", "ls latest --recursive --repo repo"] {
      let text = try cli.succeed(line)
      let lines = text.split(separator: "\n")
      #expect(lines.count == (try cli.jsonLines(line + " --json")).count, "one line each")
      for shown in [#"two\nlines/two\nlines"#, #"scan \xff\xfe"#, #"red \x1b[31m"#, #"\u{202e}"#] {
        #expect(text.contains(shown), "\(line): \(shown)")
      }
      #expect(text.contains(#"org.example.\xff\nOdd"#))
    }
  }

  @Test func jsonContainsTheBytesOfNames() throws {
    let cli = try Self.device()
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --repo repo")
    let data: ByteString = "apps/org.example.Names/data/data"
    let wanted = Set(Self.names.map { data.appending($0).appending($0) })
    for line in ["classify --json", "ls latest --recursive --json --repo repo"] {
      let entries = try cli.jsonLines(line)
      #expect(Set(entries.compactMap { $0.path() }).isSuperset(of: wanted), "\(line)")
      for entry in entries {
        let path = try #require(entry.path())
        #expect((entry["path_b64"] != nil) == (path.utf8 == nil), "\(path)")
        #expect(entry["path"] as? String == path.utf8 ?? path.description)
      }
    }
    let odd = ByteString("org.example.".utf8 + [0xff, 0x0a] + "Odd".utf8)
    let containers = try cli.containers(of: nil)
    #expect(containers.map(\.realPath.lastComponent).contains(odd))
    #expect(containers.map(\.path).contains(ByteString("apps").appending(odd).appending("data")))
  }

  @Test func oddNamesAreRestored() throws {
    let cli = try Self.device()
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --repo repo")
    _ = try cli.succeed("restore latest:apps/org.example.Names/data --to back --repo repo")
    try ChangeDetector.expectSame(cli.directory, "home/.var/app/org.example.Names", "back")
    let path = "latest:apps/org.example.Names/data/data/two\nlines"
    let outcome = try cli.run(["restore", path, "--to", "part", "--repo", "repo"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.names(in: "part") == ["two\nlines"])
  }
}
