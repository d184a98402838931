import SystemIO
import TestSupport
import Testing

/// An option with one value may be given once.
struct RepeatedOptionTests {
  @Test(arguments: [
    ("backup --root a --root b --repo repo", "root"),
    ("backup --root=a --repo repo --root b", "root"),
    ("snapshots --host a --repo repo --host=b", "host"),
    ("snapshots list --repo repo --repo repo", "repo"),
    ("ls latest --repo a --repo b", "repo"),
    ("trash empty --older-than 1d --older-than 2d", "older-than"),
    ("schedule install --cron --dry-run -- --repo a --repo b", "repo"),
  ])
  func repeatedOptionIsRefused(_ line: String, _ option: String) throws {
    let outcome = try CommandLine().run(line)
    #expect(outcome.code == 2, "\(outcome.output)\(outcome.errors)")
    #expect(outcome.errors.contains("'--\(option)' is given more than once"), "\(outcome.errors)")
  }

  @Test func listOptionsAndFlagsMayBeRepeated() throws {
    let cli = try CommandLine()
    try cli.directory.write("x", at: "tree/x")
    _ = try cli.succeed("init repo --plain --plain")
    let line = "backup --layout folder --root tree --repo repo --tag a --tag b --quiet --quiet"
    #expect(try cli.succeed(line).isEmpty)
    #expect(try cli.succeed("snapshots --repo repo --json").contains(#"["a","b"]"#))
  }
}
