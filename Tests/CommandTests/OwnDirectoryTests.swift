import SystemIO
import TestSupport
import Testing

/// The program's own directories are excluded from backups, which is reported.
struct OwnDirectoryTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("kept", at: "tree/file")
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private let backup = "backup --layout folder --repo repo"

  @Test func anotherRepositoryIsReported() throws {
    _ = try cli.succeed("init tree/other --plain --no-default")
    let reported =
      "note: folders/tree/other (\(cli.directory.path("tree/other"))): "
      + "it is a sandboxctl repository, which is never backed up"
    for options in ["", " --dry-run"] {
      let outcome = try cli.run(backup + " --root tree" + options)
      #expect(outcome.code == 0 && outcome.errors.contains(reported), "\(outcome.errors)")
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

  /// The content of a plain directory may include another device with its journal: as the root of a
  /// target it would be this user's own journal.
  @Test func journalOfASnapshotIsNotRestoredToTheRootOfATarget() throws {
    try cli.directory.write("kept", at: "tree/dev/file")
    try cli.directory.write("{}", at: "tree/dev/.sandboxctl/journal/20260101-00000000.json")
    try cli.directory.write("x", at: "tree/dev/.sandboxctl-restore-1/x")
    _ = try cli.succeed(backup + " --root tree")
    let restore = "restore latest:folders/tree/dev --repo repo --to "
    for (target, options) in [("new", ""), ("present", " --overwrite always --delete")] {
      if target == "present" {
        try cli.directory.write("own", at: "present/.sandboxctl/trash/item")
        try cli.directory.write("stray", at: "present/stray")
      }
      let outcome = try cli.run(restore + target + options)
      #expect(outcome.code == 3, "\(outcome.errors)")
      for name in [".sandboxctl", ".sandboxctl-restore-1"] {
        #expect(
          outcome.errors.contains("not restored: \(name): its name is reserved for this program"),
          "\(outcome.errors)")
      }
    }
    #expect(try cli.names(in: "new") == ["file"])
    #expect(try cli.names(in: "present").sorted() == [".sandboxctl", "file"])
    #expect(try cli.directory.read("present/.sandboxctl/trash/item") == Array("own".utf8))
    #expect(try cli.names(in: "present/.sandboxctl") == ["trash"])
  }
}
