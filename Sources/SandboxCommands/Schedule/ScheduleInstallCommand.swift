internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl schedule install`: begins to do something again and again.
struct ScheduleInstallCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "install",
      abstract: "Begin to back up, or to purge, again and again",
      usage:
        "sandboxctl schedule install (--systemd | --cron) [--purge] [<options>] [-- <its options>]",
      discussion: """
        With --systemd a service and a timer of this user are written and started; with --cron a \
        line of this user's crontab is. They run 'sandboxctl backup --quiet', which says nothing \
        when all went well, with little claim to processor and disk, and with what stands behind --. \
        A schedule that is there already is replaced; with --profile each profile has its own.

        Every day unless another time is given. --calendar takes systemd's words (systemd.time(7)) \
        or cron's five fields. What a missed timer of systemd should have run is run at the next \
        start; cron's is not.

        With --purge it is 'sandboxctl purge' that is scheduled, besides the backups. systemd runs \
        'purge --watch --yes' all the time, as a service that needs no timer; cron runs 'purge --yes \
        --quiet', which does nothing where space is not short, every hour unless another time is given.

        \(Examples.text([
          "sandboxctl schedule install --systemd --dry-run",
          "sandboxctl schedule install --cron --hourly --dry-run -- --tag hourly",
          "sandboxctl schedule install --systemd --purge --dry-run -- --until-free 10",
        ]))
        """)
  }

  @OptionGroup var scheduler: SchedulerOptions

  @Flag(help: "Purge when space is short, instead of backing up.")
  var purge = false

  @Flag(help: "Every hour.")
  var hourly = false

  @Flag(help: "Every day, which is usual for backups.")
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
      "A line for the shell that is run when it fails.", valueName: "command"))
  var onFailure: String?

  @Option(
    help: ArgumentHelp(
      "A file for Prometheus' textfile collector that each run writes.", valueName: "file"))
  var metrics: String?

  @Flag(name: .shortAndLong, help: "Print what would be written and write nothing.")
  var dryRun = false

  @Argument(
    parsing: .postTerminator,
    help: ArgumentHelp(
      "What 'sandboxctl backup', or 'purge', gets besides.", valueName: "its options"))
  var options: [String] = []

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    guard scheduler.systemd != scheduler.cron else {
      throw UsageError(
        "it is not clear by which program it is to be done",
        hint: "give '--systemd' or '--cron', one of them")
    }
    let job = try job()
    return try scheduler.systemd ? installUnits(job, console) : installJob(job, console)
  }

  // MARK: - What is run

  private var work: ScheduledJob.Work { purge ? .purge : .backup }

  /// Whether it runs all the time.
  private var isWatch: Bool { purge && scheduler.systemd }

  private func job() throws -> ScheduledJob {
    try checkPurge()
    if let onFailure { try ShellSyntax.require(onFailure, of: "'--on-failure'") }
    let words = try words()
    var environment: [(name: String, value: String)] = []
    for name in ScheduledJob.variables {
      guard let named = Host.environment(name) else { continue }
      // A schedule runs in another directory.
      let value = named.isAbsolute ? named : (try? Host.realPath(named)) ?? named
      guard let text = value.utf8 else {
        throw UsageError("'\(name)' is not UTF-8", hint: "a schedule cannot hold it: change it")
      }
      environment.append((name, text))
    }
    guard let program = try Host.programPath().utf8 else {
      throw UsageError("the path of this program is not UTF-8", hint: "move it")
    }
    return ScheduledJob(
      work: work, name: try ScheduleName.of(work, profile: output.profile), program: program,
      words: words,
      environment: environment, calendar: isWatch ? nil : try time(),
      randomDelay: Int(randomDelay?.seconds ?? 0), isOnMainsOnly: when == .onMains,
      onFailure: onFailure)
  }

  /// What has no meaning for a purge is refused rather than passed over.
  private func checkPurge() throws {
    guard purge else { return }
    let misplaced =
      (metrics != nil ? ["--metrics"] : []) + (when != nil ? ["--when"] : [])
      + (isWatch && randomDelay != nil ? ["--random-delay"] : [])
      + (isWatch && (hourly || daily || weekly || calendar != nil) ? ["a time"] : [])
    guard misplaced.isEmpty else {
      throw UsageError(
        "\(misplaced.joined(separator: " and ")) does not go with '--purge'",
        hint: isWatch
          ? "the watch looks by itself: '-- --interval 5m' says how often" : "leave it out")
    }
  }

  private func words() throws -> [String] {
    var words =
      !purge
      ? ["backup", "--quiet", "--scheduled"]
      : isWatch ? ["purge", "--watch", "--yes"] : ["purge", "--yes", "--quiet"]
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
    let parsed: any ParsableCommand
    do {
      parsed = try SandboxctlCommand.parseAsRoot(words)
    } catch {
      throw UsageError(
        parser: SandboxctlCommand.message(for: error), SandboxctlCommand.fullMessage(for: error))
    }
    try WordChecks.requireOnce(words)
    try (parsed as? PurgeCommand)?.check()
    return words
  }

  private func time() throws -> ScheduleCalendar {
    let chosen = [hourly, daily, weekly, calendar != nil].count { $0 }
    guard chosen <= 1 else {
      throw UsageError(
        "several times are given", hint: "give one of --hourly, --daily, --weekly and --calendar")
    }
    if let calendar { return .custom(calendar) }
    return hourly ? .hourly : weekly ? .weekly : daily || !purge ? .daily : .hourly
  }

  // MARK: - systemd

  private func installUnits(_ job: ScheduledJob, _ console: Console) throws -> ExitStatus {
    let units = try SystemdUnits(job)
    let directory = try SystemdDirectory()
    let unit = job.unit
    if dryRun {
      for file in units.files {
        try console.result("# \(directory.path.appending(ByteString(file.name)))\n\(file.text)")
      }
      return .done
    }
    try directory.write(units)
    let failure =
      Systemctl.fails(["daemon-reload"]) ?? Systemctl.fails(["enable", "--now", unit])
    try tell(job, "systemd", directory.path.appending(ByteString(unit)), failure == nil, console)
    guard let failure else {
      if Lingering.isOff {
        console.warning(
          "it runs only while this user is logged in, as lingering is off: "
            + "'loginctl enable-linger' lets it run always")
      }
      return .done
    }
    console.warning(
      "the unit is written but not started: \(failure); when this user's systemd runs: "
        + "systemctl --user daemon-reload; systemctl --user enable --now \(unit)")
    return .doneInPart
  }

  // MARK: - cron

  private func installJob(_ job: ScheduledJob, _ console: Console) throws -> ExitStatus {
    let line = try job.cronLine(host: Host.machineID ?? Host.name)
    if dryRun {
      try console.result(line)
      return .done
    }
    var crontab = try Crontab.read()
    crontab.put(job.name, line)
    try crontab.write()
    try tell(job, "cron", "the crontab", true, console)
    return .done
  }

  private func tell(
    _ job: ScheduledJob, _ kind: String, _ place: ByteString, _ isActive: Bool,
    _ console: Console
  ) throws {
    if output.json {
      try console.result(
        [
          "scheduler": .string(kind), "name": .string(job.name),
          "place": .string(place.description), "active": .bool(isActive),
        ])
    } else if !output.quiet {
      try console.result("\(job.name) is scheduled by \(kind): \(Paths.text(place))")
    }
  }
}
