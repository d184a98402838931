import Foundation
import SystemIO
import TestSupport
import Testing

/// `schedule`: its output for systemd and cron, which leaves everything else unchanged. The user's
/// systemd and crontab are replaced by stubs that record their input.
struct ScheduleTests {
  private let cli: CommandLine

  /// Installs a crontab(1) that keeps the table in a file, and a systemctl(1) that records its
  /// arguments.
  init() throws {
    cli = try CommandLine()
    try program(
      "crontab",
      """
      case "$1" in
        -l) [ -f "$HOME/crontab" ] || { echo "no crontab for $USER" >&2; exit 1; }
            cat "$HOME/crontab" ;;
        -r) rm "$HOME/crontab" ;;
        -) cat > "$HOME/crontab" ;;
      esac
      """)
    try program("systemctl", "echo \"$*\" >> \"$HOME/systemctl\"; [ ! -f \"$HOME/no-bus\" ]")
  }

  private func program(_ name: ByteString, _ script: String) throws {
    try cli.directory.write("#!/bin/sh\n\(script)\n", at: ByteString("bin").appending(name))
    let path = cli.directory.string + "/bin/" + String(decoding: name.bytes, as: UTF8.self)
    _ = try Program.run("chmod", ["755", path])
  }

  private func run(_ words: String..., environment: [String: String] = [:]) throws
    -> Program.Outcome
  {
    let path = ["PATH": cli.directory.string + "/bin:/usr/bin:/bin"]
    return try cli.run(words, environment: path.merging(environment) { $1 })
  }

  private func text(_ path: ByteString) throws -> String {
    String(decoding: try cli.directory.read(path), as: UTF8.self)
  }

  private static let units: ByteString = "home/.config/systemd/user"
  private static let crontab: ByteString = "home/crontab"

  // MARK: - systemd

  /// Expects systemd to accept the units of a directory; prints a note if it is not installed.
  private func verify(_ directory: String) throws {
    guard Program.exists("systemd-analyze") else {
      print("skipped: there is no systemd-analyze")
      return
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    #expect(!names.isEmpty)
    let outcome = try Program.run(
      "systemd-analyze", ["--man=no", "verify"] + names.map { directory + "/" + $0 })
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
  }

  @Test func unitsAreWrittenStartedAndRemoved() throws {
    let outcome = try run("schedule", "install", "--systemd")
    #expect(outcome.code == 0, "\(outcome.errors)")
    let service = try text(Self.units.appending("sandboxctl-backup.service"))
    let program = ByteString(CommandLine.program)
    #expect(service.contains("\nExecStart=\(program) backup --quiet --scheduled\n"))
    #expect(service.contains("\nIOSchedulingClass=idle\n") && service.contains("\nNice=10\n"))
    let timer = try text(Self.units.appending("sandboxctl-backup.timer"))
    #expect(timer.contains("\nOnCalendar=daily\n") && timer.contains("\nPersistent=true\n"))
    try verify(cli.directory.string + "/home/.config/systemd/user")
    #expect(
      try text("home/systemctl")
        == "--user daemon-reload\n--user enable --now sandboxctl-backup.timer\n")
    let shown = try run("schedule", "status", "--json").output
    let status = try CommandLine.object(shown.split(separator: "\n").first ?? "")
    #expect(status["scheduler"] as? String == "systemd")
    #expect(status["calendar"] as? String == "daily")
    #expect(status["active"] as? Bool == true)
    #expect(try run("schedule", "remove").code == 0)
    #expect(try Directory.open(path: cli.directory.path(Self.units)).names().isEmpty)
    #expect(try text("home/systemctl").contains("--user disable --now sandboxctl-backup.timer\n"))
    #expect(try run("schedule", "status", "--json").output.isEmpty)
  }

  /// The command that prints a passphrase may contain a secret.
  @Test func passphraseCommandIsNotShownToOtherUsers() throws {
    let variable = "SANDBOXCTL_PASSPHRASE_COMMAND"
    // A file with this name is not the command.
    try cli.directory.write("#!/bin/sh\n", at: "lookup")
    let command = [variable: "lookup"]
    let outcome = try run("schedule", "install", "--systemd", environment: command)
    let shown = "can see the passphrase command"
    #expect(outcome.code == 0 && !outcome.errors.contains(shown), "\(outcome.errors)")
    let units = try Directory.open(path: cli.directory.path(Self.units))
    for name in try units.names() { #expect(try units.status(name).permissions == 0o600) }
    let service = try text(Self.units.appending("sandboxctl-backup.service"))
    #expect(service.contains("\(variable)=lookup") && !service.contains("/lookup"), "\(service)")
    #expect(
      try run("schedule", "install", "--cron", environment: command).errors.contains(shown))
    for kind in ["--systemd", "--cron"] {
      for option in [["--passphrase-command", "lookup"], ["--passphrase-command=lookup"]] {
        let words = ["schedule", "install", kind, "--dry-run", "--"] + option
        #expect(try cli.run(words).errors.contains(shown), "\(words)")
      }
      #expect(try !run("schedule", "install", kind, "--dry-run").errors.contains(shown))
    }
  }

  /// The removal of snapshots reads an encrypted repository with the key of the backup.
  @Test(arguments: ["--passphrase-file", "--passphrase-command", "--identity"])
  func scheduledRemovalHasTheKeyOfTheBackup(_ option: String) throws {
    for kind in ["--systemd", "--cron"] {
      let outcome = try run(
        "schedule", "install", kind, "--keep-last", "3", "--dry-run", "--", option, "/key")
      #expect(outcome.code == 0, "\(outcome.errors)")
      let words = outcome.output.components(separatedBy: " forget ")
      #expect(words.count == 2 && words[1].contains(" \(option) /key "), "\(outcome.output)")
    }
  }

  /// A backup of an encrypted repository needs no key, but the removal of snapshots does.
  @Test func scheduledRemovalWithoutAKeyIsRefused() throws {
    try cli.directory.write("secret", at: "passphrase")
    let made = try cli.run([
      "init", "enc", "--no-default", "--passphrase-file", "passphrase", "--recovery-key", "key",
    ])
    #expect(made.code == 0, "\(made.errors)")
    let config: ByteString = "home/.config/sandboxctl/config.yaml"
    for kind in ["--systemd", "--cron"] {
      func install(
        _ own: [String] = ["--keep-last", "3"], _ options: [String] = [],
        environment: [String: String] = [:]
      ) throws -> Program.Outcome {
        // The key in the environment of a test of encrypted repositories is not passed on.
        let unset = ["-u", "SANDBOXCTL_PASSPHRASE_FILE", "-u", "SANDBOXCTL_IDENTITY_FILE"]
        return try cli.run(
          ["schedule", "install", kind, "--dry-run"] + own + ["--", "--repo", "enc"] + options,
          under: ["env"] + unset + environment.map { "\($0.key)=\($0.value)" })
      }
      let refused = try install()
      #expect(refused.code == 12 && refused.output.isEmpty, "\(refused.output)")
      #expect(refused.errors.contains("cannot schedule the removal of snapshots in"))
      #expect(refused.errors.contains("after '--': '--passphrase-file FILE'"))
      #expect(try install([]).code == 0)
      #expect(try install(["--keep-last", "3"], ["--identity", "key"]).code == 0)
      let variable = try install(environment: ["SANDBOXCTL_PASSPHRASE_FILE": "passphrase"])
      #expect(variable.code == 0, "\(variable.errors)")
      // The configuration may name the key for both commands, or only for backups.
      try cli.directory.write("passphrase-file: /pass\n", at: config)
      #expect(try install().code == 0)
      try cli.directory.write("backup:\n  passphrase-file: /pass\n", at: config)
      #expect(try install().code == 12)
      try cli.directory.write("", at: config)
    }
  }

  /// A link to the current version stays in the schedule: the next version replaces its target.
  @Test func linkToTheProgramIsScheduledAsALink() throws {
    let home = try Directory.open(path: cli.directory.path("bin"))
    try home.createLink("sandboxctl", to: ByteString(CommandLine.program))
    let link = cli.directory.string + "/bin/sandboxctl"
    for script in ["shift; exec \(link) \"$@\"", "shift; exec sandboxctl \"$@\""] {
      let outcome = try cli.run(
        ["schedule", "install", "--systemd"], under: ["sh", "-c", script, "sh"],
        environment: ["PATH": cli.directory.string + "/bin:/usr/bin:/bin"])
      #expect(outcome.code == 0, "\(outcome.errors)")
      let service = try text(Self.units.appending("sandboxctl-backup.service"))
      #expect(service.contains("\nExecStart=\(link) backup --quiet --scheduled\n"), "\(service)")
      #expect(!service.contains("Documentation="), "no man page is installed beside it")
      _ = try run("schedule", "remove")
    }
    try cli.directory.write("page", at: "share/man/man1/sandboxctl-backup.1")
    let outcome = try cli.run(
      ["schedule", "install", "--systemd"],
      under: ["sh", "-c", "shift; exec \(link) \"$@\"", "sh"],
      environment: ["PATH": cli.directory.string + "/bin:/usr/bin:/bin"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    let service = try text(Self.units.appending("sandboxctl-backup.service"))
    #expect(service.contains("\nDocumentation=man:sandboxctl-backup(1)\n"))
  }

  /// The command is shown in shell form, whatever quotes systemd and cron need.
  @Test func statusShowsTheCommandInShellForm() throws {
    for kind in ["--systemd", "--cron"] {
      #expect(
        try run("schedule", "install", kind, "--", "--tag", #"50 % \ "$x""#).code == 0)
      let shown = try run("schedule", "status", kind).output
      #expect(shown.contains(#"--tag '50 % \ "$x"'"#), "\(shown)")
      _ = try run("schedule", "remove", kind)
    }
  }

  /// A job on a bucket gets the variables that choose the store; keys stay where they are.
  @Test func aJobOnABucketReachesTheSameStore() throws {
    let environment = [
      "AWS_ENDPOINT_URL": "https://store.example:9000", "AWS_PROFILE": "nas",
      "AWS_SECRET_ACCESS_KEY": "verysecret", "https_proxy": "http://u:verysecret@proxy:3128",
      "no_proxy": "store.example",
    ]
    let outcome = try run(
      "schedule", "install", "--systemd", "--", "--repo", "s3://bucket/place",
      environment: environment)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let warning = "the schedule does not contain https_proxy, AWS_SECRET_ACCESS_KEY"
    #expect(outcome.errors.contains(warning), "\(outcome.errors)")
    let service = try text(Self.units.appending("sandboxctl-backup.service"))
    for name in ["AWS_ENDPOINT_URL", "AWS_PROFILE", "no_proxy"] {
      let value = try #require(environment[name])
      #expect(service.contains("\(name)=\(value)"), "\(service)")
    }
    #expect(!service.contains("verysecret"))
    // The configuration can also choose the repository; a directory needs none of the variables.
    for (repository, isBucket) in [("s3://bucket/place", true), ("/nowhere", false)] {
      try cli.directory.write(
        "repo: \(repository)\n", at: "home/.config/sandboxctl/config.yaml")
      #expect(try run("schedule", "install", "--systemd", environment: environment).code == 0)
      let service = try text(Self.units.appending("sandboxctl-backup.service"))
      #expect(service.contains("AWS_ENDPOINT_URL") == isBucket)
    }
    let typo = try run("schedule", "install", "--systemd", "--", "--repo", "s3:/bucket")
    #expect(typo.code == 2 && typo.errors.contains("s3://bucket"), "\(typo.errors)")
  }

  /// A scheduler starts the job in another directory.
  @Test func relativePathsBecomeAbsolute() throws {
    let here = try Host.realPath(ByteString(cli.directory.string))
    let outcome = try run(
      "schedule", "install", "--cron", "--dry-run", "--keep-last", "3", "--", "--root", "device",
      "--repo=repo", "--passphrase-file", "key/pass", "--metrics", "/m.prom", "--policy", "ios",
      "--policy", "site.yaml", "--exclude", "x/y", "--tag", "repo")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(
      outcome.output.contains(
        " --root \(here)/device --repo=\(here)/repo --passphrase-file \(here)/key/pass "
          + "--metrics /m.prom --policy ios --policy \(here)/site.yaml --exclude x/y --tag repo"),
      "\(outcome.output)")
    let forget = try #require(outcome.output.components(separatedBy: " forget ").last)
    #expect(
      forget.contains("--repo \(here)/repo --passphrase-file \(here)/key/pass"), "\(forget)")
    for place in ["sftp:host/path", "s3://bucket/place", "/my"] {
      let other = try run("schedule", "install", "--cron", "--dry-run", "--", "--repo", place)
      #expect(other.output.contains(" --repo \(place)"), "\(other)")
    }
  }

  @Test func specialCharactersInAUnitAreQuoted() throws {
    let command = #"echo "50 % of $HOME" 'it''s' \ > "$HOME/failed""#
    let outcome = try run(
      "schedule", "install", "--systemd", "--calendar", "Mon..Fri 12:30", "--random-delay", "30m",
      "--when", "on-ac", "--on-failure", command, "--metrics", "/tmp/100 % \"$x\".prom", "--",
      "--tag", "two words", "--exclude", "*.iso",
      environment: ["XDG_CACHE_HOME": cli.directory.string + "/a cache %h"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    try verify(cli.directory.string + "/home/.config/systemd/user")
    let service = try text(Self.units.appending("sandboxctl-backup.service"))
    #expect(service.contains("\nConditionACPower=true\n"))
    #expect(service.contains("\nOnFailure=sandboxctl-backup-failed.service\n"))
    #expect(service.contains(#" --metrics "/tmp/100 %% \"$$x\".prom" --tag "two words" "#))
    #expect(
      service.contains("\nEnvironment=\"XDG_CACHE_HOME=\(cli.directory.string)/a cache %%h\"\n"))
    let timer = try text(Self.units.appending("sandboxctl-backup.timer"))
    #expect(timer.contains("\nRandomizedDelaySec=1800\n"))
    let failed = try text(Self.units.appending("sandboxctl-backup-failed.service"))
    #expect(failed.contains(#"-c "echo \"50 %% of $$HOME\" 'it''s' \\ > \"$$HOME/failed\"""#))
    #expect(try run("schedule", "remove", "--systemd").code == 0)
    #expect(try Directory.open(path: cli.directory.path(Self.units)).names().isEmpty)
  }

  @Test func programWithADollarInItsPathIsFound() throws {
    let bin = try Directory.open(path: cli.directory.path("bin"))
    try bin.createLink("sand$box", to: ByteString(CommandLine.program))
    let link = cli.directory.string + "/bin/sand$box"
    let outcome = try cli.run(
      ["schedule", "install", "--systemd", "--dry-run", "--", "--tag", "a$b"],
      under: ["sh", "-c", "shift; exec '\(link)' \"$@\"", "sh"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    let line = #"ExecStart="\#(link)" backup --quiet --scheduled --tag "a$$b""#
    #expect(outcome.output.contains(line), "\(outcome.output)")
  }

  /// systemd refuses such a path, so the shell starts the program.
  @Test func programWithAQuoteInItsPathIsStartedByTheShell() throws {
    let bin = try Directory.open(path: cli.directory.path("bin"))
    try bin.createLink("o'box", to: ByteString(CommandLine.program))
    let link = cli.directory.string + "/bin/o'box"
    let outcome = try cli.run(
      ["schedule", "install", "--systemd", "--dry-run", "--", "--tag", "a"],
      under: ["sh", "-c", "shift; exec \"\(link)\" \"$@\"", "sh"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    let path = link.replacingOccurrences(of: "'", with: #"'\\''"#)
    let line = "ExecStart=/bin/sh -c \"'\(path)' backup --quiet --scheduled --tag a\""
    #expect(outcome.output.contains(line), "\(outcome.output)")
  }

  /// A wrong time would replace the timer of a schedule that runs.
  @Test func timeThatSystemdDoesNotKnowIsRefused() throws {
    guard Program.exists("systemd-analyze") else { return }
    #expect(try run("schedule", "install", "--systemd").code == 0)
    let timer = try text(Self.units.appending("sandboxctl-backup.timer"))
    let outcome = try run("schedule", "install", "--systemd", "--calendar", "every day")
    #expect(outcome.code == 2, "\(outcome)")
    #expect(outcome.errors.contains("'every day' is not a time for systemd"), "\(outcome)")
    #expect(try text(Self.units.appending("sandboxctl-backup.timer")) == timer)
  }

  @Test(arguments: ["a\nb", "a\r\nb", "a\rb"])
  func variablesOfUnitsHaveOneLine(value: String) throws {
    let environment = ["SANDBOXCTL_PASSPHRASE_COMMAND": value]
    let outcome = try run("schedule", "install", "--systemd", environment: environment)
    #expect(outcome.code == 2, "\(outcome)")
    #expect(outcome.errors.contains("a unit line cannot contain a newline"), "\(outcome)")
    #expect(try !cli.isThere(Self.units))
  }

  @Test func serviceForFailuresIsThatOfTheSchedule() throws {
    let failed = Self.units.appending("sandboxctl-backup-failed.service")
    #expect(try run("schedule", "install", "--systemd", "--on-failure", "true").code == 0)
    #expect(try cli.isThere(failed))
    #expect(try run("schedule", "install", "--systemd").code == 0)
    #expect(try !cli.isThere(failed))
    try cli.directory.write(
      "profiles: {failed: {backup: {tag: x}}}\n", at: "home/.config/sandboxctl/config.yaml")
    let outcome = try run("schedule", "install", "--systemd", "--profile", "failed")
    #expect(outcome.code == 2, "\(outcome)")
    #expect(outcome.errors.contains("'failed' cannot name a schedule"), "\(outcome)")
  }

  @Test func foreignUnitsAreNotChanged() throws {
    try cli.directory.write("[Unit]\n", at: Self.units.appending("sandboxctl-backup.service"))
    for words in [["install", "--systemd"], ["remove", "--systemd"]] {
      let outcome = try cli.run(
        ["schedule"] + words, environment: ["PATH": cli.directory.string + "/bin:/usr/bin:/bin"])
      #expect(outcome.code == 1)
      #expect(outcome.errors.contains("was not written by this program"), "\(outcome.errors)")
    }
    #expect(try text(Self.units.appending("sandboxctl-backup.service")) == "[Unit]\n")
    #expect(
      try Directory.open(path: cli.directory.path(Self.units)).names() == [
        "sandboxctl-backup.service"
      ])
  }

  @Test func unitsAreNotStartedWithoutARunningSystemd() throws {
    try cli.directory.write("", at: "home/no-bus")
    let outcome = try run("schedule", "install", "--systemd", "--weekly")
    #expect(outcome.code == 3)
    #expect(outcome.errors.contains("written but not started"), "\(outcome.errors)")
    #expect(try text(Self.units.appending("sandboxctl-backup.timer")).contains("weekly"))
  }

  /// The former command may back up another device, which nobody would notice.
  @Test(arguments: ["--cron", "--systemd"])
  func replacedCommandIsShown(scheduler: String) throws {
    let first = try run("schedule", "install", scheduler, "--", "--tag", "one")
    #expect(first.code == 0 && !first.errors.contains("no longer runs"), "\(first.errors)")
    let second = try run("schedule", "install", scheduler, "--", "--tag", "two")
    #expect(second.code == 0)
    #expect(
      second.errors.contains("note: the schedule sandboxctl-backup no longer runs: ")
        && second.errors.contains("--tag one\n") && second.errors.contains("'--profile NAME'"),
      "\(second.errors)")
    let third = try run("schedule", "install", scheduler, "--weekly", "--", "--tag", "two")
    #expect(third.code == 0 && !third.errors.contains("no longer runs"), "\(third.errors)")
  }

  @Test func eachProfileHasItsOwnUnits() throws {
    try cli.directory.write(
      "profiles: {usb: {backup: {tag: stick}}}\n", at: "home/.config/sandboxctl/config.yaml")
    #expect(try run("schedule", "install", "--systemd").code == 0)
    #expect(try run("schedule", "install", "--systemd", "--profile", "usb").code == 0)
    #expect(
      try text(Self.units.appending("sandboxctl-backup-usb.service"))
        .contains("backup --quiet --scheduled --profile usb\n"))
    try verify(cli.directory.string + "/home/.config/systemd/user")
    #expect(try run("schedule", "remove", "--profile", "usb").code == 0)
    #expect(
      try Directory.open(path: cli.directory.path(Self.units)).names().sorted()
        == ["sandboxctl-backup.service", "sandboxctl-backup.timer"])
  }

  // MARK: - Purges

  @Test func purgeIsAWatchingService() throws {
    #expect(try run("schedule", "install", "--systemd").code == 0)
    let outcome = try run(
      "schedule", "install", "--systemd", "--purge", "--on-failure", "logger failed", "--",
      "--until-free", "10", "--interval", "5m")
    #expect(outcome.code == 0, "\(outcome.errors)")
    let program = try Host.realPath(ByteString(CommandLine.program))
    #expect(
      try text(Self.units.appending("sandboxctl-purge.service")) == """
        # Written by 'sandboxctl schedule install'.
        [Unit]
        Description=Purge this user's apps when space is short
        OnFailure=sandboxctl-purge-failed.service

        [Service]
        Type=exec
        ExecStart=\(program) purge --watch --yes --until-free 10 --interval 5m
        Nice=10
        CPUSchedulingPolicy=batch
        IOSchedulingClass=idle
        Restart=on-failure
        RestartSec=60
        RestartPreventExitStatus=2

        [Install]
        WantedBy=default.target

        """)
    try verify(cli.directory.string + "/home/.config/systemd/user")
    // One that runs takes the new options.
    #expect(
      try text("home/systemctl").hasSuffix(
        "--user try-restart sandboxctl-purge.service\n"
          + "--user enable --now sandboxctl-purge.service\n"))
    let reported = try status()
    #expect(
      reported.map { $0["name"] as? String } == ["sandboxctl-backup", "sandboxctl-purge"],
      "\(reported)")
    let purge = try #require(reported.last)
    #expect(purge["calendar"] as? String == "" && purge["active"] as? Bool == true)
    #expect(purge["next"] is NSNull)
    #expect(
      try run("schedule", "status").output.contains("sandboxctl-purge   when space is short  yes"))
    // Each is removed separately.
    #expect(try run("schedule", "remove", "--purge").code == 0)
    #expect(try text("home/systemctl").contains("disable --now sandboxctl-purge.service\n"))
    #expect(
      try Directory.open(path: cli.directory.path(Self.units)).names().sorted()
        == ["sandboxctl-backup.service", "sandboxctl-backup.timer"])
    #expect(
      try run("schedule", "remove", "--purge").output
        == "nothing is scheduled as sandboxctl-purge\n")
  }

  @Test func cronPurgesEveryHour() throws {
    #expect(try run("schedule", "install", "--cron").code == 0)
    #expect(try run("schedule", "install", "--cron", "--purge").code == 0)
    let line = /[0-9]{1,2} \* \* \* \* nice -n 10 ionice -c 3 .*sandboxctl purge --yes --quiet/
    let lines = try text(Self.crontab).split(separator: "\n")
    #expect(lines.count { $0.wholeMatch(of: line) != nil } == 1, "\(lines)")
    let daily = try run(
      "schedule", "install", "--cron", "--purge", "--daily", "--dry-run", "--", "--until-free",
      "20")
    #expect(daily.output.contains(/^[0-9]+ [1-4] \* \* \* nice .* --until-free 20\n$/))
    #expect(try run("schedule", "remove", "--purge").code == 0)
    let left = try text(Self.crontab)
    #expect(left.contains("sandboxctl backup") && !left.contains("sandboxctl purge"))
  }

  // MARK: - Status of the runs

  /// Returns the answers of `schedule status --json`, checked against their schema.
  private func status() throws -> [[String: Any]] {
    let output = try run("schedule", "status", "--json").output
    var fixture = try SchemaFixture(isEmpty: true)
    fixture.add("schedule-status", "schedule status --json", output)
    #expect(try fixture.validate() == [])
    return try output.split(separator: "\n").map { try CommandLine.object($0) }
  }

  @Test func timerReportsItsLastAndNextRun() throws {
    try program(
      "systemctl",
      """
      [ "$2" = show ] && [ "$3" = sandboxctl-backup.timer ] && [ ! -f "$HOME/stopped" ] || \
        { [ "$2" != is-active ] || [ ! -f "$HOME/stopped" ]; exit; }
      echo "LastTriggerUSec=@1700000000"
      echo "NextElapseUSecRealtime=@1700086400"
      """)
    #expect(try run("schedule", "install", "--systemd").code == 0)
    let reported = try #require(try status().first)
    #expect(reported["last"] as? String == "2023-11-14T22:13:20Z")
    #expect(reported["next"] as? String == "2023-11-15T22:13:20Z")
    let shown = try run("schedule", "status").output
    #expect(shown.contains("  yes   2023-11-14 22:13  2023-11-15 22:13  "), "\(shown)")
    try cli.directory.write("", at: "home/stopped")
    let stopped = try #require(try status().first)
    #expect(stopped["active"] as? Bool == false)
    #expect(stopped["last"] is NSNull && stopped["next"] is NSNull)
    #expect(try run("schedule", "status").output.contains("  no    unknown  never  "))
  }

  @Test func cronJobReportsItsLastAndNextRun() throws {
    #expect(try run("schedule", "install", "--cron", "--calendar", "5 4 * * *").code == 0)
    let before = try #require(try status().first)
    #expect(before["last"] is NSNull && before["active"] is NSNull)
    let next = try #require(before["next"] as? String)
    #expect(next.hasSuffix("T04:05:00Z"), "the host's time zone is UTC: \(next)")
    try cli.directory.write("x", at: "home/.var/app/org.example.App/data/file")
    _ = try cli.succeed("backup --quiet")
    #expect(try status().first?["last"] is NSNull, "the backup was made manually")
    _ = try cli.succeed("backup --quiet --scheduled")
    let last = try #require(try status().first?["last"] as? String)
    let made = try cli.jsonLines("snapshots --json").compactMap { $0["time"] as? String }
    #expect(made.last == last)
    // A job with a repository option may store elsewhere.
    _ = try run("schedule", "install", "--cron", "--", "--repo", "/elsewhere")
    #expect(try status().first?["last"] is NSNull)
    _ = try run("schedule", "install", "--cron", "--calendar", "@reboot")
    #expect(try run("schedule", "status").output.contains("  unknown  "))
  }

  /// No key is used, also if it is named: a wrong one is not even read.
  @Test func statusOfAnEncryptedRepositoryNeedsNoKey() throws {
    try cli.directory.write("secret", at: "passphrase")
    try cli.directory.write("x", at: "home/.var/app/org.example.App/data/file")
    let key = ["--passphrase-file", "passphrase"]
    let made = try cli.run(["init", "repo", "--recovery-key", "recovery.key"] + key)
    #expect(made.code == 0, "\(made.errors)")
    #expect(try cli.run(["backup", "--quiet", "--scheduled"] + key).code == 0)
    for kind in ["--systemd", "--cron"] { #expect(try run("schedule", "install", kind).code == 0) }
    for named in [[], ["--passphrase-file", "none"]] {
      let path = ["PATH": cli.directory.string + "/bin:/usr/bin:/bin"]
      let outcome = try cli.run(["schedule", "status", "--json"] + named, environment: path)
      #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
      for line in outcome.output.split(separator: "\n") {
        #expect(try CommandLine.object(line)["last"] is String, "\(line)")
      }
      #expect(outcome.output.split(separator: "\n").count == 2)
    }
  }

  @Test func installAndRemoveMatchTheirSchemas() throws {
    var fixture = try SchemaFixture(isEmpty: true)
    for kind in ["--systemd", "--cron"] {
      let made = try run("schedule", "install", kind, "--json")
      #expect(made.code == 0 && !made.output.isEmpty, "\(made.errors)")
      fixture.add("schedule-install", "schedule install \(kind) --json", made.output)
    }
    for _ in 1...2 {
      let gone = try run("schedule", "remove", "--json")
      #expect(gone.code == 0 && !gone.output.isEmpty, "\(gone.errors)")
      fixture.add("schedule-remove", "schedule remove --json", gone.output)
    }
    #expect(try fixture.validate() == [])
  }

  // MARK: - cron

  @Test func foreignLinesAreNotChanged() throws {
    let foreign =
      "# mine\nMAILTO=me@example.org\n\n  5 4 * * *   backup-else \\% \t\n@daily x\n#end \u{e9}\n"
    try cli.directory.write(foreign, at: Self.crontab)
    #expect(try run("schedule", "install", "--cron").code == 0)
    let first = try text(Self.crontab)
    #expect(first.hasPrefix(foreign))
    let added = first.dropFirst(foreign.count).split(separator: "\n")
    #expect(added.count == 2)
    let line = /[0-9]{1,2} [1-4] \* \* \* nice -n 10 ionice -c 3 .*sandboxctl backup --quiet .*/
    #expect(added.last?.wholeMatch(of: line) != nil, "\(added)")
    // The second time: the same position, the new time, no duplicates.
    try cli.directory.write(first + "7 7 7 7 7 after\n", at: Self.crontab)
    #expect(try run("schedule", "install", "--cron", "--calendar", "*/5 * * * *").code == 0)
    let second = try text(Self.crontab)
    #expect(second.hasPrefix(foreign) && second.hasSuffix("\n7 7 7 7 7 after\n"))
    #expect(second.split(separator: "\n").count { $0.contains("sandboxctl backup") } == 1)
    #expect(second.contains("\n*/5 * * * * nice "))
    let shown = try run("schedule", "status", "--cron", "--json").output
    #expect(try CommandLine.object(shown)["calendar"] as? String == "*/5 * * * *")
    #expect(try run("schedule", "remove").code == 0)
    #expect(try text(Self.crontab) == foreign + "7 7 7 7 7 after\n")
  }

  /// The user may have replaced or removed the job below its comment.
  @Test(arguments: ["5 4 * * * mine\n", "\n5 4 * * * mine\n", ""])
  func lineAfterTheCommentOfARemovedJobStays(rest: String) throws {
    #expect(try run("schedule", "install", "--cron").code == 0)
    let lines = try text(Self.crontab).split(separator: "\n")
    try #require(lines.count == 2)
    try cli.directory.write("\(lines[0])\n\(rest)", at: Self.crontab)
    #expect(try run("schedule", "status", "--cron", "--json").output.isEmpty)
    #expect(try run("schedule", "install", "--cron").code == 0)
    #expect(try text(Self.crontab) == lines.map { "\($0)\n" }.joined() + rest)
    try cli.directory.write("\(lines[0])\n\(rest)", at: Self.crontab)
    #expect(try run("schedule", "remove", "--cron").code == 0)
    #expect(try rest.isEmpty ? !cli.isThere("home/crontab") : text(Self.crontab) == rest)
  }

  /// The crontab exists, and would be replaced by one that has only the new job.
  @Test func crontabThatCannotBeReadStays() throws {
    try cli.directory.write("5 4 * * * mine\n", at: Self.crontab)
    try program(
      "crontab",
      """
      [ "$1" = -l ] || exec touch "$HOME/written"
      echo "crontab: can't open 'me': Permission denied" >&2; exit 1
      """)
    let outcome = try run("schedule", "install", "--cron")
    #expect(outcome.code == 1 && outcome.errors.contains("Permission denied"), "\(outcome)")
    #expect(try !cli.isThere("home/written"))
  }

  /// Returns a command as Debian's cron passes it to the shell: a backslash before a `%` or a
  /// backslash is removed, and any other `%` is the end.
  private func asCronReads(_ command: some StringProtocol) -> String {
    var (text, isEscaped) = ("", false)
    for character in command {
      if isEscaped {
        if character == "%" || character == "\\" { text.removeLast() }
        isEscaped = false
      } else if character == "%" {
        break
      } else {
        isEscaped = character == "\\"
      }
      text.append(character)
    }
    return text
  }

  @Test func backslashesReachTheProgram() throws {
    let path = #"/m/a\%b\\c%\d'\%.prom"#
    let outcome = try run(
      "schedule", "install", "--cron", "--dry-run", "--metrics", path, "--on-failure",
      #"printf 'failed \\%s\n' x"#)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let command = try #require(outcome.output.dropLast().split(separator: " ", maxSplits: 5).last)
    let script = #"nice() { printf '%s\n' "$@"; return 1; }; "# + asCronReads(command)
    let said = try Program.run("sh", ["-c", script]).output.split(separator: "\n")
    #expect(said.contains { $0 == path } && said.last == #"failed \x"#, "\(said): \(command)")
  }

  @Test func emptyCrontabIsCreatedAndRemoved() throws {
    let dry = try run("schedule", "install", "--cron", "--hourly", "--dry-run")
    #expect(dry.code == 0 && dry.output.contains(#/^[0-9]+ \* \* \* \* nice /#))
    #expect(try run("schedule", "install", "--cron", "--hourly").code == 0)
    #expect(try text(Self.crontab).hasSuffix(dry.output))
    #expect(try run("schedule", "remove", "--cron").output.contains("no longer scheduled by cron"))
    #expect(try !cli.isThere("home/crontab"))
    #expect(try run("schedule", "remove").output == "nothing is scheduled as sandboxctl-backup\n")
  }

  @Test func cronLineRunsInTheShell() throws {
    let outcome = try run(
      "schedule", "install", "--cron", "--dry-run", "--when", "on-ac", "--random-delay", "1m",
      "--on-failure", "echo 100%", "--", "--tag", "it's")
    let line = outcome.output.dropLast()
    #expect(line.contains(" sleep $(shuf -n 1 -i 0-60); nice "), "\(line)")
    #expect(line.contains(#" --tag 'it'\''s' --when on-ac || "#), "\(line)")
    #expect(line.hasSuffix(#" || { s=$?; sh -c 'echo 100\%'; exit $s; }"#), "\(line)")
  }

  // MARK: - Retention

  @Test(arguments: ["--cron", "--systemd"])
  func rulesAddARemovalAfterTheBackup(scheduler: String) throws {
    try cli.directory.write(
      "profiles: {home: {backup: {tag: stick}}}\n", at: "home/.config/sandboxctl/config.yaml")
    let plain = try run("schedule", "install", scheduler, "--dry-run").output
    #expect(!plain.contains("forget"))
    let outcome = try run(
      "schedule", "install", scheduler, "--dry-run", "--keep-daily", "7", "--keep-within-weekly",
      "1y", "--keep-tag", "a,b", "--keep-oldest", "--profile", "home", "--", "--repo", "/my repo")
    #expect(outcome.code == 0, "\(outcome.errors)")
    let words =
      " forget --keep-daily 7 --keep-within-weekly 1y --keep-tag a,b --keep-oldest "
      + "--this-host --profile home --repo '/my repo' --at-most weekly --prune --quiet"
    #expect(outcome.output.contains(words), "\(outcome.output)")
    if scheduler == "--cron" {
      #expect(outcome.output.hasSuffix("--quiet || s=$?;; esac; (exit $s); }\n"))
    } else {
      let commands = outcome.output.split(separator: "\n").filter { $0.hasPrefix("ExecStart=") }
      #expect(commands.count == 1)
      #expect(commands[0].contains(#"/bin/sh -c "{ "#) && commands[0].contains("; s=$$?; case $$s"))
    }
    let monthly = try run(
      "schedule", "install", scheduler, "--dry-run", "--keep-daily", "7", "--forget-every",
      "monthly")
    #expect(monthly.output.contains(" --at-most monthly --prune "), "\(monthly.output)")
  }

  /// Returns the shell's line of the job with rules, with the program replaced by `reported`.
  private func lineWithRules(_ scheduler: String, _ options: [String] = []) throws -> String {
    try line(scheduler, ["--keep-last", "3"] + options)
  }

  /// Returns the shell's line of a job, with the program replaced by `reported`.
  private func line(_ scheduler: String, _ options: [String]) throws -> String {
    let path = ["PATH": cli.directory.string + "/bin:/usr/bin:/bin"]
    let outcome = try cli.run(["schedule", "install", scheduler] + options, environment: path)
    #expect(outcome.code == 0, "\(outcome.errors)")
    return try #require(status().first?["command"] as? String)
      .replacing(CommandLine.program, with: "reported")
  }

  /// Snapshots are removed after each backup that made one, if that is due; the status is that of
  /// the backup, unless the removal fails after it.
  @Test(arguments: [("--cron", 5), ("--systemd", 0)])
  func removalFollowsABackupThatMadeASnapshot(scheduler: String, niceWords: Int) throws {
    let line = try lineWithRules(scheduler)
    if scheduler == "--systemd" { try verify(cli.directory.path(Self.units).description) }
    for (backup, forget, status) in [
      (0, 0, 0), (3, 0, 3), (0, 1, 1), (3, 13, 13), (0, 3, 3), (1, 0, 1), (11, 1, 11), (13, 0, 13),
      (130, 0, 130),
    ] {
      let script = """
        nice() { shift \(niceWords); "$@"; }
        reported() { echo "$1"; if [ $1 = backup ]; then return \(backup); fi; return \(forget); }
        \(line)
        """
      let outcome = try Program.run("sh", ["-c", script])
      let ran = backup == 0 || backup == 3
      #expect(outcome.output == (ran ? "backup\nforget\n" : "backup\n"), "\(backup): \(line)")
      #expect(outcome.code == Int32(status), "\(backup) and \(forget): \(line)")
      #expect(outcome.errors.isEmpty, "\(outcome.errors)")
    }
  }

  @Test(arguments: [false, true])
  func failureCommandRunsAfterAFailureAndKeepsTheStatus(hasRules: Bool) throws {
    let failing = ["--on-failure", "echo failed"]
    let line = try hasRules ? lineWithRules("--cron", failing) : line("--cron", failing)
    for status in [0, 3, 1, 11] {
      let script =
        "nice() { shift 5; \"$@\"; }; reported() { [ $1 != backup ] || return \(status); }; \(line)"
      let outcome = try Program.run("sh", ["-c", script])
      #expect(outcome.code == Int32(status), "\(script)")
      #expect(outcome.output == (status == 0 ? "" : "failed\n"), "\(script)")
    }
  }

  /// Each of these was once a syntax error in the whole line, so that the backup never ran.
  @Test(arguments: ["notify-send failed &", "mail -s x me;", "echo failed # tell me", "echo 'a' }"])
  func failureCommandNeverBreaksTheLine(command: String) throws {
    let outcome = try run("schedule", "install", "--cron", "--dry-run", "--on-failure", command)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let line = outcome.output.split(separator: " ", maxSplits: 5).last ?? ""
    let parsed = try Program.run("sh", ["-n", "-c", String(line)])
    #expect(parsed.code == 0, "\(parsed.errors)")
    let quoted = "'" + command.replacing("'", with: #"'\''"#) + "'"
    #expect(line.hasSuffix("|| { s=$?; sh -c \(quoted); exit $s; }\n"), "\(line)")
  }

  @Test(arguments: ["--cron", "--systemd"])
  func invalidShellCommandIsRefused(scheduler: String) throws {
    let outcome = try run("schedule", "install", scheduler, "--on-failure", "echo 'open")
    #expect(outcome.code == 2)
    #expect(outcome.errors.contains("the shell cannot parse '--on-failure'"), "\(outcome.errors)")
    #expect(try !cli.isThere("home/crontab") && !cli.isThere("home/systemctl"))
  }

  @Test func timerWithoutLingeringGivesAWarning() throws {
    try program("loginctl", "[ \"$1 $3\" = 'show-user --property=Linger' ] && echo Linger=no")
    let without = try run("schedule", "install", "--systemd")
    #expect(without.code == 0)
    #expect(without.errors.contains("'loginctl enable-linger'"), "\(without.errors)")
    try program("loginctl", "echo Linger=yes")
    #expect(try !run("schedule", "install", "--systemd").errors.contains("linger"))
    try program("loginctl", "exit 1")
    #expect(try !run("schedule", "install", "--systemd").errors.contains("linger"))
  }

  @Test(arguments: [
    (["install"], "exactly one scheduler is required"),
    (["install", "--cron", "--systemd"], "exactly one scheduler is required"),
    (["install", "--cron", "--daily", "--weekly"], "several schedule times given"),
    (["install", "--cron", "--calendar", "every day"], "'every day' is not a time for cron"),
    (["install", "--cron", "--calendar", "* * * * * rm"], "is not a time for cron"),
    (["install", "--cron", "--metrics", "here.prom"], "is not an absolute path"),
    (["install", "--cron", "--on-failure", "a\nb"], "cannot contain a newline"),
    (["install", "--cron", "--on-failure", "a\r\nb"], "cannot contain a newline"),
    (["install", "--systemd", "--on-failure", "a\r\nb"], "cannot contain a newline"),
    (["install", "--systemd", "--calendar", "daily\nUser=root"], "cannot contain a newline"),
    (["install", "--cron", "--", "--quick"], "unknown option '--quick'"),
    (["install", "--cron", "--when", "on-fire"], "on-fire"),
    (["install", "--cron", "--keep-last", "0"], "no rule says which snapshots to keep"),
    (["install", "--cron", "--keep-oldest"], "no rule says which snapshots to keep"),
    (["install", "--cron", "--forget-every", "daily"], "no rule says which snapshots to keep"),
    (["install", "--cron", "--keep-last", "3", "--forget-every", "yearly"], "'yearly'"),
    (["install", "--cron", "--purge", "--keep-last", "3"], "cannot be used with '--purge'"),
    (["install", "--cron", "--purge", "--forget-every", "daily"], "cannot be used with '--purge'"),
    (["install", "--systemd", "--purge", "--hourly"], "a time cannot be used with '--purge'"),
    (["install", "--systemd", "--purge", "--random-delay", "1m"], "cannot be used with '--purge'"),
    (["install", "--cron", "--purge", "--metrics", "/m"], "cannot be used with '--purge'"),
    (["install", "--cron", "--purge", "--when", "on-ac"], "cannot be used with '--purge'"),
    (["install", "--systemd", "--purge", "--", "--free", "1G"], "cannot be used with '--free'"),
    (["install", "--systemd", "--purge", "--", "--tag", "x"], "unknown option '--tag'"),
    (["install", "--cron", "--", "--dry-run"], "no run would do anything"),
    (["install", "--systemd", "--", "-d"], "'--dry-run' cannot be an option of a schedule"),
    (["install", "--cron", "--", "--help"], "'--help' cannot be an option of a schedule"),
    (["install", "--cron", "--purge", "--", "--query"], "'--query' cannot be an option"),
    (["install", "--systemd", "--purge", "--", "--dry-run"], "no run would do anything"),
  ])
  func invalidOptionsAreUsageErrors(_ words: [String], _ says: String) throws {
    let outcome = try cli.run(
      ["schedule"] + words, environment: ["PATH": cli.directory.string + "/bin:/usr/bin:/bin"])
    #expect(outcome.code == 2)
    #expect(outcome.errors.contains(says), "\(outcome.errors)")
    #expect(try !cli.isThere("home/crontab"))
    #expect(try !cli.isThere("home/.config"))
  }

  @Test func withoutCronTheHintNamesSystemd() throws {
    let outcome = try cli.run(
      ["schedule", "install", "--cron"], environment: ["PATH": cli.directory.string + "/nothing"])
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("the program 'crontab' is not installed"))
    #expect(outcome.errors.contains("hint: install cron, or use '--systemd'"))
    #expect(try cli.run(["schedule", "remove"], environment: ["PATH": "/none"]).code == 0)
  }
}
