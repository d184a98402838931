import SystemIO
import TestSupport
import Testing

/// Options that have no effect with, or without, others: a command line with them is refused, and
/// settings in a configuration that are meant for other runs are not used.
struct OptionNeedTests {
  @Test(arguments: [
    ("restore latest --to back --delete-excluded", "'--delete-excluded' requires '--delete'"),
    ("forget --keep-last 1 --max-unused 0", "'--max-unused' requires '--prune'"),
    ("forget --keep-last 1 --repack-small --dry-run", "'--repack-small' requires '--prune'"),
    ("restore latest --to back --delete", "'--delete' requires '--overwrite'"),
    ("export itunes latest phone --with-bundles", "'--with-bundles' requires '--from-device'"),
    ("export itunes latest phone --policy ios", "'--policy' requires '--from-device'"),
    ("import itunes phone --policy ios", "'--policy' requires '--to-device'"),
    ("export android a.ab --transfer", "'--transfer' requires '--rules'"),
    ("check --append-only --metrics m.prom", "'--append-only' and '--metrics' cannot be used"),
  ])
  func optionWithoutEffectIsRefused(_ line: String, _ message: String) throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    let outcome = try cli.run(line + " --repo repo")
    #expect(outcome.code == 2 && outcome.errors.contains(message), "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: "), "\(outcome.errors)")
  }

  @Test(arguments: ["--free 1M", "--until-free 10", "--level critical"])
  func queryHasNoGoal(_ goal: String) throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let outcome = try cli.run("purge --root device --query \(goal)")
    let name = goal.prefix { $0 != " " }
    #expect(
      outcome.code == 2 && outcome.errors.contains("'--query' and '\(name)' cannot be used"),
      "\(outcome.errors)")
  }

  /// Options that a file sets for runs with the other one do not fail those without it.
  @Test func configuredOptionsAreNotUsed() throws {
    let cli = try CommandLine()
    try cli.directory.write("a", at: "tree/a")
    _ = try cli.succeed("init repo --plain --no-default")
    try cli.directory.write(
      """
      repo: \(cli.directory.string)/repo
      check: {metrics: \(cli.directory.string)/m.prom}
      restore: {delete: true, delete-excluded: true}
      forget: {max-unused: 0, repack-small: true, keep-last: 1}
      purge: {level: critical, interval: 60s}
      policy: everything
      export: {itunes: {with-bundles: true}, android: {transfer: true}}
      """, at: "home/.config/sandboxctl/config.yaml")
    _ = try cli.succeed("backup --layout folder --root tree --quiet")
    _ = try cli.succeed("restore latest --to back")
    _ = try cli.succeed("forget")
    #expect(try cli.run("check --append-only").code == 5)
    _ = try cli.succeed("purge --layout folder --root tree --query")
    _ = try cli.succeed("purge --layout folder --root tree --level low --yes")
    for (kind, file) in [("itunes", "phone"), ("android", "a.ab")] {
      let outcome = try cli.run("export \(kind) latest \(file)")
      #expect(outcome.code != 2 && !outcome.errors.contains("requires"), "\(outcome.errors)")
    }
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("backup --root device --policy ios --quiet")
    for line in ["export itunes latest phone2", "import itunes phone2"] {
      let outcome = try cli.run(line)
      #expect([0, 3].contains(outcome.code), "\(outcome.errors)")
    }
  }

  /// Options that fit only restores into devices, or only files, do not fail other runs.
  @Test func configuredOptionsOfOtherTargetsAreNotUsed() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --quiet")
    try cli.directory.write(
      """
      repo: \(cli.directory.string)/repo
      restore: {app: [notebook, reader]}
      dump: {merge-log: true}
      """, at: "home/.config/sandboxctl/config.yaml")
    let restore = try cli.run("restore latest --to all")
    #expect(restore.code == 0, "\(restore.errors)")
    #expect(restore.errors.contains("the apps that the configuration names are not used"))
    #expect(try cli.names(in: "all/apps").contains("org.example.darkroom"))
    _ = try cli.succeed("restore latest --to-device device --dry-run")
    let given = try cli.run("restore latest --app notebook --app reader --to both")
    #expect(given.code == 2, "\(given.errors)")
    let directory = "latest:apps/org.example.notebook/data/Documents"
    #expect(try cli.run("dump \(directory)").code == 0)
    #expect(try cli.run("dump --merge-log \(directory)").code == 2)
    // Permission to overwrite for some apps is not permission for all.
    try cli.directory.write(
      """
      repo: \(cli.directory.string)/repo
      restore: {app: [notebook, reader], overwrite: always, delete: true}
      """, at: "home/.config/sandboxctl/config.yaml")
    try cli.directory.write("own", at: "mine/file")
    for options in ["", " --overwrite always"] {
      let refused = try cli.run("restore latest --to mine\(options)")
      #expect(refused.code == 2, "\(options): \(refused.errors)")
    }
    #expect(try cli.names(in: "mine") == ["file"])
    _ = try cli.succeed("restore latest --to mine --overwrite always --no-delete")
    #expect(try cli.names(in: "mine").contains("file"))
  }

  /// `latest` beside an app would be a snapshot other than the one that `restore latest` names.
  @Test(arguments: ["--app notes", "--host other", "--tag x"])
  func namedSnapshotsAreNotSelectedAsWell(_ filter: String) throws {
    let cli = try CommandLine()
    try cli.directory.write("a", at: "tree/a")
    _ = try cli.succeed("init repo --plain --no-default")
    for _ in 1...2 {
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    }
    for end in ["", " --dry-run", " --allow-last"] {
      let outcome = try cli.run("forget latest \(filter) --repo repo\(end)")
      #expect(outcome.code == 2, "\(outcome)")
      #expect(outcome.errors.contains("both named and selected by '--app'"), "\(outcome.errors)")
    }
    #expect(try cli.snapshots().count == 2)
    // Filters that a file sets do not select among named snapshots.
    let words = filter.dropFirst(2).split(separator: " ")
    try cli.directory.write(
      "forget: {\(words[0]): [\(words[1])]}", at: "home/.config/sandboxctl/config.yaml")
    _ = try cli.succeed("forget latest --repo repo")
    #expect(try cli.snapshots().count == 1)
  }
}
