internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl schedule install`: begins to make backups again and again.
struct ScheduleInstallCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "install",
      abstract: "Begin to back up again and again",
      usage: "sandboxctl schedule install (--systemd | --cron) [<options>] [-- <backup options>]",
      discussion: """
        With --systemd a service and a timer of this user are written and started; with --cron a \
        line of this user's crontab is. They run 'sandboxctl backup --quiet', which says nothing \
        when all went well, with little claim to processor and disk, and with what stands behind --. \
        A schedule that is there already is replaced; with --profile each profile has its own.

        Every day unless another time is given. --calendar takes systemd's words (systemd.time(7)) \
        or cron's five fields. What a missed timer of systemd should have run is run at the next \
        start; cron's is not.

        \(Examples.text([
          "sandboxctl schedule install --systemd --dry-run",
          "sandboxctl schedule install --cron --hourly --dry-run -- --tag hourly",
        ]))
        """)
  }

  @OptionGroup var scheduler: SchedulerOptions

  @Flag(help: "Every hour.")
  var hourly = false

  @Flag(help: "Every day, which is usual.")
  var daily = false

  @Flag(help: "Every week.")
  var weekly = false

  @Option(
    help: ArgumentHelp(
      "When: 'Mon..Fri 12:30' for systemd, '30 12 * * 1-5' for cron.", valueName: "time"))
  var calendar: String?

  @Option(
    help: ArgumentHelp("Begin later by chance, at most by so much, as 30m.", valueName: "time"))
  var randomDelay: TimeSpan?

  @Option(
    help: ArgumentHelp("Only then: on-ac, while the machine has mains power.", valueName: "state"))
  var when: PowerState?

  @Option(
    help: ArgumentHelp(
      "A line for the shell that is run when a backup fails.", valueName: "command"))
  var onFailure: String?

  @Option(
    help: ArgumentHelp(
      "A file for Prometheus' textfile collector that each run writes.", valueName: "file"))
  var metrics: String?

  @Flag(name: .shortAndLong, help: "Print what would be written and write nothing.")
  var dryRun = false

  @Argument(
    parsing: .postTerminator,
    help: ArgumentHelp("What 'sandboxctl backup' gets besides.", valueName: "backup options"))
  var options: [String] = []

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    guard scheduler.systemd != scheduler.cron else {
      throw UsageError(
        "it is not clear by which program backups are to be made",
        hint: "give '--systemd' or '--cron', one of them")
    }
    let backup = try backup()
    return try scheduler.systemd ? installUnits(backup, console) : installJob(backup, console)
  }

  // MARK: - What is run

  private func backup() throws -> ScheduledBackup {
    let words = try words()
    var environment: [(name: String, value: String)] = []
    for name in ScheduledBackup.variables {
      guard let named = Host.environment(name) else { continue }
      // A schedule runs in another folder.
      let value = named.isAbsolute ? named : (try? Host.realPath(named)) ?? named
      guard let text = value.utf8 else {
        throw UsageError("'\(name)' is not UTF-8", hint: "a schedule cannot hold it: change it")
      }
      environment.append((name, text))
    }
    guard let program = try Host.programPath().utf8 else {
      throw UsageError("the path of this program is not UTF-8", hint: "move it")
    }
    return ScheduledBackup(
      name: try ScheduleName.of(profile: output.profile), program: program, words: words,
      environment: environment, calendar: try time(),
      randomDelay: Int(randomDelay?.seconds ?? 0), isOnMainsOnly: when == .onMains,
      onFailure: onFailure)
  }

  private func words() throws -> [String] {
    var words = ["backup", "--quiet", "--scheduled"]
    if let profile = output.profile { words += ["--profile", profile] }
    if let metrics {
      guard metrics.hasPrefix("/") else {
        throw UsageError(
          "'\(ByteString(metrics))' depends on where the program is run",
          hint: "give an absolute path to '--metrics'")
      }
      words += ["--metrics", metrics]
    }
    words += options
    do {
      _ = try SandboxctlCommand.parseAsRoot(words)
    } catch {
      throw UsageError(
        parser: SandboxctlCommand.message(for: error), SandboxctlCommand.fullMessage(for: error))
    }
    return words
  }

  private func time() throws -> ScheduleCalendar {
    let chosen = [hourly, daily, weekly, calendar != nil].count { $0 }
    guard chosen <= 1 else {
      throw UsageError(
        "several times are given", hint: "give one of --hourly, --daily, --weekly and --calendar")
    }
    if let calendar { return .custom(calendar) }
    return hourly ? .hourly : weekly ? .weekly : .daily
  }

  // MARK: - systemd

  private func installUnits(_ backup: ScheduledBackup, _ console: Console) throws -> ExitStatus {
    let units = try SystemdUnits(backup)
    let folder = try SystemdFolder()
    let timer = backup.name + ".timer"
    if dryRun {
      for unit in units.files {
        try console.result("# \(folder.path.appending(ByteString(unit.name)))\n\(unit.text)")
      }
      return .done
    }
    try folder.write(units)
    let failure =
      Systemctl.fails(["daemon-reload"]) ?? Systemctl.fails(["enable", "--now", timer])
    try tell(backup, "systemd", folder.path.appending(ByteString(timer)), failure == nil, console)
    guard let failure else { return .done }
    console.warning(
      "the timer is written but not started: \(failure); when this user's systemd runs: "
        + "systemctl --user daemon-reload; systemctl --user enable --now \(timer)")
    return .doneInPart
  }

  // MARK: - cron

  private func installJob(_ backup: ScheduledBackup, _ console: Console) throws -> ExitStatus {
    let line = try backup.cronLine(host: Host.machineID ?? Host.name)
    if dryRun {
      try console.result(line)
      return .done
    }
    var crontab = try Crontab.read()
    crontab.put(backup.name, line)
    try crontab.write()
    try tell(backup, "cron", "the crontab", true, console)
    return .done
  }

  private func tell(
    _ backup: ScheduledBackup, _ kind: String, _ place: ByteString, _ isActive: Bool,
    _ console: Console
  ) throws {
    if output.json {
      try console.result(
        [
          "scheduler": .string(kind), "name": .string(backup.name),
          "place": .string(place.description), "active": .bool(isActive),
        ])
    } else if !output.quiet {
      try console.result("\(backup.name) is scheduled by \(kind): \(Paths.text(place))")
    }
  }
}
