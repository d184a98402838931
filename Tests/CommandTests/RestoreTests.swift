import Foundation
import SystemIO
import TestSupport
import Testing

/// Restores into existing directories.
struct RestoreTests {
  /// Directories that can be listed but not entered, or not opened at all: nothing in them can be
  /// deleted, which is reported, and everything else is restored.
  @Test func unlistableDirectoriesAreNamed() throws {
    let cli = try CommandLine()
    try cli.directory.write("a", at: "tree/a")
    for path: ByteString in ["tree/bare", "tree/closed"] {
      _ = try Directory.make(path: cli.directory.path(path))
    }
    _ = try Program.run("cp", ["-a", "tree", "into"], in: cli.directory.url)
    let extras: [ByteString] = ["gone", "bare/stays", "closed/stays", "more/stays"]
    for path in extras { try cli.directory.write("extra", at: ByteString("into").appending(path)) }
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    let into = cli.directory.string + "/into"
    for (name, mode) in [("bare", "400"), ("closed", "300"), ("more", "300")] {
      _ = try Program.run("chmod", [mode, "\(into)/\(name)"])
    }
    defer { cli.open() }
    #expect(try cli.runAsNobody("init repo --plain").code == 0)
    let backup = try cli.runAsNobody("backup --layout folder --root tree --repo repo")
    #expect(backup.code == 0, "\(backup.errors)")
    let line = "restore latest:folders/tree --to into --repo repo --overwrite never --delete"
    let plan = try cli.runAsNobody(line + " --dry-run")
    #expect(plan.code == 3, "\(plan.errors)")
    let outcome = try cli.runAsNobody(line + " --quiet")
    #expect(outcome.code == 3, "\(outcome.errors)")
    for text in [plan.errors, outcome.errors] {
      #expect(text.contains("bare: it cannot be listed, so nothing in it is removed: permission"))
      #expect(text.contains("not restored: closed: permission denied"), "\(text)")
      #expect(text.contains("more: its contents cannot be read, so it is not removed: permission"))
    }
    let left = try extras.filter {
      try cli.directory.directory.statusIfPresent(ByteString("into").appending($0)) != nil
    }
    #expect(left == ["bare/stays", "closed/stays", "more/stays"])
  }
}
