import Foundation
import SystemIO
import TestSupport
import Testing

/// The user's configuration file: its settings, their precedence, and mistakes in it.
struct ConfigurationTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("kept", at: "tree/kept")
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private static let file: ByteString = "home/.config/sandboxctl/config.yaml"
  private static let backup = "backup --layout folder --root tree"

  private func configure(_ text: String) throws { try cli.directory.write(text, at: Self.file) }

  private func configured() throws -> String {
    String(decoding: try cli.directory.read(Self.file), as: UTF8.self)
  }

  private var repository: String { cli.directory.string + "/repo" }

  private func snapshots(of repository: String = "repo") throws -> [[String: Any]] {
    try cli.jsonLines("snapshots --json --repo \(repository)")
  }

  // MARK: - Settings

  @Test func settingAppliesToAllCommandsWithTheOption() throws {
    try configure("repo: \(repository)\n")
    _ = try cli.succeed(Self.backup)
    #expect(try cli.jsonLines("snapshots --json").count == 1)
    #expect(try cli.succeed("ls latest:folders/tree").contains("kept"))
    // A command without this option still works.
    #expect(try cli.run("policy list").code == 0)
  }

  @Test func commandLinePrecedesEnvironmentAndFile() throws {
    for name in ["named", "of-the-environment"] {
      _ = try cli.succeed("init \(name) --plain --no-default")
    }
    try configure("repo: \(repository)\n")
    let words = Self.backup.split(separator: " ").map(String.init)
    let environment = ["SANDBOXCTL_REPOSITORY": cli.directory.string + "/of-the-environment"]
    #expect(try cli.run(words + ["--repo", "named"], environment: environment).code == 0)
    #expect(try cli.run(words, environment: environment).code == 0)
    #expect(try cli.run(words).code == 0)
    for location in ["named", "of-the-environment", "repo"] {
      #expect(try snapshots(of: location).count == 1, "\(location)")
    }
  }

  @Test func commandOptionsApplyToThatCommandOnly() throws {
    try configure(
      """
      repo: \(repository)
      backup:
        tag: [nightly, laptop]
        quiet: true
      snapshots:
        list: {last: 1}
      """)
    #expect(try cli.succeed(Self.backup).isEmpty)
    #expect(try cli.succeed(Self.backup).isEmpty)
    let shown = try cli.jsonLines("snapshots --json")
    #expect(shown.count == 1)
    #expect(shown.first?["tags"] as? [String] == ["nightly", "laptop"])
    // An option of the command line replaces the whole list, and a flag can be negated.
    #expect(try cli.succeed(Self.backup + " --tag by-hand --no-quiet").contains("snapshot"))
    #expect(try cli.jsonLines("snapshots --json").last?["tags"] as? [String] == ["by-hand"])
    #expect(try cli.jsonLines("snapshots list --json --last 5").count == 3)
  }

  @Test func settingForAllCommandsIsReadAsTheRunningCommandDeclaresIt() throws {
    try configure("repo: \(repository)\nhost: [one, two]\n")
    // `forget` takes several hosts, `snapshots` one.
    #expect(try cli.run("forget --keep-last 1 --dry-run").code == 0)
    // `check` has no such option, but an option that any command accepts is valid.
    let checked = try cli.run("check")
    #expect(checked.code == 0, "\(checked)")
    let refused = try cli.run("snapshots")
    #expect(refused.code != 0)
    #expect(refused.errors.contains(":2:7: 'host' is a list; expected one <host>"), "\(refused)")
  }

  /// `to` is a repository for `copy`, and a directory for `restore`.
  @Test func settingForAllCommandsSuitsOneOfThem() throws {
    try configure("repo: \(repository)\nto: s3://bucket/second\n")
    for line in ["snapshots", "check", Self.backup] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    }
    let refused = try cli.run("restore latest")
    #expect(refused.code == 1)
    #expect(refused.errors.contains(":2:5: 'to' is 's3://bucket/second'; expected a path"))
    let copied = try cli.run("copy")
    #expect(copied.code != 0)
    #expect(copied.errors.contains("s3://bucket/second"), "\(copied.errors)")
  }

  @Test func profilePrecedesFileAndEnvironment() throws {
    _ = try cli.succeed("init stick --plain --no-default")
    try configure(
      """
      repo: \(repository)
      backup: {tag: [disk], quiet: true}
      profiles:
        usb:
          repo: \(cli.directory.string)/stick
          backup:
            tag: stick
      """)
    let words = Self.backup.split(separator: " ").map(String.init) + ["--profile", "usb"]
    let outcome = try cli.run(words, environment: ["SANDBOXCTL_REPOSITORY": repository])
    #expect(outcome.code == 0 && outcome.output.isEmpty, "\(outcome.errors)")
    #expect(try snapshots(of: "stick").map { $0["tags"] as? [String] } == [["stick"]])
    #expect(try snapshots().isEmpty)
    #expect(try cli.succeed("dump latest:folders/tree/kept --profile usb") == "kept")
    let unknown = try cli.run(Self.backup + " --profile ubs")
    #expect(unknown.code == 2)
    #expect(unknown.errors.contains("there is no profile 'ubs'"))
    #expect(unknown.errors.contains("hint: its profiles are 'usb'"))
  }

  /// Options that cannot be used together are a mistake only if they are set in the same place.
  @Test func commandLinePrecedesOtherOptionsOfTheFile() throws {
    _ = try cli.succeed(Self.backup + " --repo repo --quiet")
    for (setting, option) in [
      ("read-data-subset: 1/7", "--read-data"), ("read-data: true", "--read-data-subset 1/1"),
      ("read-data: true, read-data-subset: 1/7", "--read-data"),
    ] {
      try configure("check: {\(setting)}\n")
      let checked = try cli.succeed("check \(option) --repo repo")
      #expect(checked.contains(" in 2 packs read; "), "\(setting): \(checked)")
    }
    let both = try cli.run("check --repo repo")
    #expect(both.code == 2 && both.errors.contains("cannot be used together"), "\(both)")
  }

  @Test func everyOptionCanBeSet() throws {
    let options = try HelpTree.options(cli)
    #expect(options.count > 60)
    // The options of a profile that is not selected are checked but not used.
    var lines = ["profiles:", "  all:"]
    var last: [String] = []
    for (command, option) in options {
      for depth in command.indices where Array(last.prefix(depth + 1)) != Array(command[...depth]) {
        lines.append(String(repeating: "  ", count: depth + 2) + command[depth] + ":")
      }
      last = command
      let value = option.isFlag ? "true" : "/x"
      lines.append(
        String(repeating: "  ", count: command.count + 2) + option.name + ": " + value)
    }
    try configure(lines.joined(separator: "\n"))
    let outcome = try cli.run("policy list")
    #expect(outcome.code == 0, "\(outcome.errors)")
  }

  @Test func emptyFileSetsNothing() throws {
    for text in ["", "\n", "# only a remark\n", "---\n", "{}\n", "profiles: {}\n"] {
      try configure(text)
      #expect(try cli.run("policy list").code == 0, "\(text)")
    }
  }

  // MARK: - Mistakes

  /// Files with one mistake each, the position and the text of the error.
  private static let mistakes: [(text: String, location: String, says: String)] = [
    ("repo: /a\nrpo: /b\n", "2:1", "there is no option or command 'rpo'"),
    ("backup:\n  qiet: true\n", "2:3", "the command 'backup' has no option 'qiet'"),
    ("backup:\n  quiet: maybe\n", "2:10", "'quiet' is text; expected true or false"),
    ("backup:\n  tag: []\n  strict: 1\n", "3:11", "'strict' is a number"),
    ("keep-free: [1G]\n", "1:12", "'keep-free' is a list"),
    ("repo:\n", "1:6", "'repo' is nothing; expected a <repo>"),
    ("repo: backups\n", "1:7", "'repo' is 'backups'; expected a path that begins with / or ~/"),
    ("profile: usb\n", "1:1", "there is no option or command 'profile'"),
    ("help: true\n", "1:1", "there is no option or command 'help'"),
    ("configured-repo: /x\n", "1:1", "there is no option or command 'configured-repo'"),
    ("backup: quick\n", "1:9", "the command 'backup' is text; expected a mapping"),
    ("profiles:\n  a: 3\n", "2:6", "the profile 'a' is a number; expected a mapping"),
    ("- repo\n", "1:1", "the file is a list; expected a mapping"),
    ("repo: /a\nrepo: /b\n", "2:1", "duplicate key 'repo'"),
    ("repo: &a /a\n", "1:7", "anchor"),
    ("a: b: c\n", "1:5", "mapping values are not allowed"),
    ("quiet: true\nbackup:\n  keep-free: much\n", "3:14", "the value 'much' is invalid"),
    ("backup: {jobs: 0}\n", "1:16", "'0' is not a valid number of jobs"),
    ("layout: flatpack\n", "1:9", "there is no layout 'flatpack'"),
    ("repo: /no/where\n", "1:7", "cannot open the repository '/no/where'"),
    ("caf\u{301}: 1\n", "1:1", "there is no option or command"),
  ]

  @Test(arguments: mistakes.indices)
  func mistakeIsReportedWithItsPosition(_ index: Int) throws {
    let (text, location, says) = Self.mistakes[index]
    try configure(text)
    let line = text.contains("layout") ? "backup --root tree" : Self.backup
    let outcome = try cli.run(line)
    let path = "\(cli.directory.string)/\(Self.file):\(location)"
    #expect(outcome.errors.contains(path), "\(outcome.errors)")
    #expect(outcome.errors.contains(says), "\(outcome.errors)")
    #expect(outcome.errors.contains("sandboxctl: hint: "))
    #expect([1, 2, 10].contains(outcome.code))
    #expect(try cli.packs().isEmpty)
    // Help works nevertheless.
    #expect(try cli.run("backup --help").code == 0)
  }

  @Test func fileThatIsTooLargeOrUnreadableIsRefused() throws {
    try configure("# " + String(repeating: "x", count: 2 << 20) + "\n")
    let large = try cli.run("policy list")
    #expect(large.code == 1 && large.errors.contains("larger than"), "\(large.errors)")
    try cli.directory.write("", at: "other/sandboxctl/config.yaml/in-the-way")
    let directory = try cli.run(
      ["policy", "list"], environment: ["XDG_CONFIG_HOME": cli.directory.string + "/other"])
    #expect(directory.code == 1 && directory.errors.contains("config.yaml"), "\(directory.errors)")
  }

  // MARK: - Configuration written by init

  @Test func backupNeedsNoOptionsAfterInit() throws {
    _ = try cli.succeed("init elsewhere --plain")
    let text = try configured()
    #expect(text.hasSuffix("repo: \(cli.directory.string)/elsewhere\n"), "\(text)")
    #expect(text.hasPrefix("#"))
    _ = try cli.succeed(Self.backup)
    #expect(try snapshots(of: "elsewhere").count == 1)
    let permissions = try cli.directory.directory.directory("home").directory(".config").directory(
      "sandboxctl"
    )
    .status("config.yaml").permissions
    #expect(permissions == 0o600)
  }

  @Test func initKeepsEveryByteOfTheFile() throws {
    let before = "# mine, with care\r\n\n"
    let after = "backup:   # daily\n    tag: [ a,  b ]   # two\n# end without a newline"
    try configure(before + after)
    _ = try cli.succeed("init new --plain")
    #expect(try configured() == before + "repo: \(cli.directory.string)/new\n" + after)
    try configure("# only a remark")
    _ = try cli.succeed("init newer --plain")
    #expect(try configured() == "# only a remark\nrepo: \(cli.directory.string)/newer\n")
  }

  @Test func initQuotesValuesForYAML() throws {
    _ = try cli.run(["init", "a: \"b\" # ü", "--plain"])
    _ = try cli.succeed(Self.backup)
    #expect(try cli.run(["snapshots", "--json", "--repo", "a: \"b\" # ü"]).output.contains("id"))
  }

  @Test(arguments: [
    "repo: /somewhere/else   # that one\n", "{exclude: ['*.iso']}\n",
    "# none\nrepo: '/somewhere/else'\nquiet: false\n",
  ])
  func initKeepsAnExistingSetting(_ text: String) throws {
    try configure(text)
    let outcome = try cli.run("init new --plain")
    #expect(outcome.code == 0)
    #expect(outcome.errors.hasPrefix("note: "), "\(outcome.errors)")
    #expect(outcome.errors.contains("write 'repo: \(cli.directory.string)/new'"))
    #expect(try configured() == text)
  }

  @Test func initFollowsALinkToTheFile() throws {
    try cli.directory.write("quiet: true\n", at: "dotfiles/settings")
    _ = try Directory.make(path: cli.directory.path("home/.config/sandboxctl"))
      .createLink("config.yaml", to: cli.directory.path("dotfiles/settings"))
    _ = try cli.succeed("init new --plain")
    let text = String(decoding: try cli.directory.read("dotfiles/settings"), as: UTF8.self)
    #expect(text == "repo: \(cli.directory.string)/new\nquiet: true\n")
    let link = try Directory.open(path: cli.directory.path("home/.config/sandboxctl"))
    #expect(try link.status("config.yaml").kind == .symlink)
  }

  @Test func initSucceedsWithoutAConfigurationDirectory() throws {
    let outcome = try cli.run(
      ["init", "new", "--plain"],
      environment: ["XDG_CONFIG_HOME": "/dev/null/none"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.errors.contains("cannot change the configuration"))
    #expect(outcome.errors.contains("write 'repo: "))
  }
}
