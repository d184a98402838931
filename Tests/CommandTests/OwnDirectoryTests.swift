import SystemIO
import TestSupport
import Testing

/// The program's own directories are excluded from backups, which is reported.
@Suite struct OwnDirectoryTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("kept", at: "tree/file")
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private let backup = "backup --layout folder --repo repo"

  @Test func anotherRepositoryIsReported() throws {
    _ = try cli.succeed("init tree/other --plain --no-default")
    let told =
      "note: folders/tree/other (\(cli.directory.path("tree/other"))): "
      + "it is a sandboxctl repository, which is never backed up"
    for options in ["", " --dry-run"] {
      let outcome = try cli.run(backup + " --root tree" + options)
      #expect(outcome.code == 0 && outcome.errors.contains(told), "\(outcome.errors)")
      #expect(try cli.run(backup + " --root tree --strict" + options).code == 3)
      let named = try cli.run(backup + " --root tree --strict --exclude other" + options)
      #expect(named.code == 0 && !named.errors.contains("other"), "\(named.errors)")
    }
    #expect(try !cli.succeed("ls latest: --recursive --repo repo").contains("repository.json"))
  }

  @Test(arguments: ["repo", "tree/other"]) func repositoryIsNotBackedUp(root: String) throws {
    _ = try cli.succeed("init tree/other --plain --no-default")
    for options in ["", " --dry-run"] {
      let outcome = try cli.run(backup + " --root \(root)" + options)
      #expect(
        outcome.code == 1 && outcome.errors.contains("is a sandboxctl repository"),
        "\(outcome.errors)")
    }
    #expect(try cli.run("snapshots --repo repo").output.isEmpty)
  }

  /// A dry run counts the same entries as the backup.
  @Test func dryRunHasTheSameExclusions() throws {
    _ = try cli.succeed("init tree/mine --plain --no-default")
    let run = "backup --layout folder --root tree --repo tree/mine --json"
    func keeps(_ plan: Any?) -> [String: Int]? {
      (plan as? [String: Any])?["keeps"] as? [String: Int]
    }
    let dry = keeps(try cli.json(run + " --dry-run"))
    let kept = keeps(try cli.json(run)["plan"])
    #expect(dry?["files"] == 1 && dry == kept)
  }
}
