internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import RemoteStorage
internal import Retention
internal import SystemIO

extension ScheduleCommand {
  /// `sandboxctl schedule install`: installs a schedule for backups or purges.
  struct Install: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "install",
        abstract: "Install a schedule for backups or purges",
        usage:
          "sandboxctl schedule install (--systemd | --cron) [--purge] [<options>] "
          + "[-- <its options>]",
        discussion: """
          With --systemd, a service and a timer of this user are written and started; with --cron, \
          a line is added to the user's crontab. They run 'sandboxctl backup --quiet' with low \
          priority and the options after --. An existing schedule is replaced; each --profile has \
          its own.

          Backups run once a day by default. systemd runs a missed backup at the next start, cron \
          does not. With --keep rules, old snapshots are also removed once a week, after a backup. \
          With --purge, systemd runs 'purge --watch' permanently, and cron 'purge --yes --quiet' \
          hourly.

          \(Examples.text([
            "sandboxctl schedule install --systemd --dry-run",
            "sandboxctl schedule install --cron --hourly --dry-run -- --tag hourly",
            "sandboxctl schedule install --systemd --purge --dry-run -- --until-free 10",
          ]))
          """)
    }

    @OptionGroup var scheduler: SchedulerOptions

    @Flag(help: "Schedule purges instead of backups.")
    var purge = false

    @Flag(help: "Run every hour (default for purges by cron).")
    var hourly = false

    @Flag(help: "Run every day (default for backups).")
    var daily = false

    @Flag(help: "Run every week.")
    var weekly = false

    @Option(
      help: ArgumentHelp(
        "The times to run at: 'Mon..Fri 12:30' for systemd, '30 12 * * 1-5' for cron.",
        valueName: "time"))
    var calendar: String?

    @OptionGroup var keep: RetentionOptions

    @Option(
      help: ArgumentHelp(
        "How often to remove the snapshots that no rule keeps (default: weekly).",
        valueName: "interval"))
    var forgetEvery: RunInterval?

    @Option(
      help: ArgumentHelp(
        "The maximum of a random delay, for example 30m (default: no delay).", valueName: "time"))
    var randomDelay: TimeSpan?

    @Option(
      help: ArgumentHelp(
        "Run only if these conditions hold, separated by commas: on-ac, the machine has mains "
          + "power; unmetered; idle; may be repeated.", valueName: "states"),
      completion: .list(BackupCommand.Condition.allCases.map(\.rawValue)))
    var when: [BackupCommand.ConditionList] = []

    @Option(
      help: ArgumentHelp(
        "A shell command to run if a run fails.", valueName: "command"))
    var onFailure: String?

    @Option(
      help: ArgumentHelp(
        "Write metrics of each run to this file, for Prometheus' textfile collector.",
        valueName: "file"))
    var metrics: String?

    @Flag(name: .shortAndLong, help: "Print what would be written, without writing.")
    var dryRun = false

    @Argument(
      parsing: .postTerminator,
      help: ArgumentHelp(
        "Options of 'sandboxctl backup' or 'purge'.", valueName: "its options"))
    var options: [String] = []

    @OptionGroup var output: OutputOptions

    static var precedence: [OptionPrecedence] {
      let ofBackups = RetentionOptions.names.union(["forget-every", "metrics", "when"])
      // Other options may be set for several commands, or be meant for purges by cron.
      let ofRemovals = RetentionOptions.names.union(["forget-every"])
      return OptionPrecedence.oneOf(["systemd"], ["cron"])
        + OptionPrecedence.oneOf(["hourly"], ["daily"], ["weekly"], ["calendar"])
        + OptionPrecedence.choosing(["purge"], replaces: ofBackups)
        + OptionPrecedence.choosing(ofRemovals, replaces: ["purge"])
        + [
          // systemd runs the purges permanently.
          OptionPrecedence(
            chosen: ["purge"],
            replaced: ["calendar", "daily", "hourly", "random-delay", "weekly"],
            beside: ["systemd"]),
          OptionPrecedence(
            chosen: [], replaced: ["forget-every", "keep-oldest"],
            without: RetentionOptions.names.subtracting(["keep-oldest"])),
        ]
    }

    func run(_ console: Console) throws -> ExitStatus {
      guard scheduler.systemd != scheduler.cron else {
        throw UsageError(
          .optionRequired, "exactly one scheduler is required",
          hint: "give '--systemd' or '--cron'")
      }
      let job = try job(of: console.root, console)
      if job.showsPassphraseCommand(byCron: scheduler.cron) {
        console.warning(
          "other users can see the passphrase command in the list of processes while the schedule "
            + "runs: if it contains a secret, use '--passphrase-file'")
      }
      return try scheduler.systemd ? installUnits(job, console) : installJob(job, console)
    }

    // MARK: - The job

    private var work: ScheduledJob.Work { purge ? .purge : .backup }

    /// Whether it runs permanently.
    private var isWatch: Bool { purge && scheduler.systemd }

    private func job(
      of root: any ParsableCommand.Type, _ console: Console
    ) throws -> ScheduledJob {
      try checkPurge()
      if let onFailure { try ScheduledJob.requireShellSyntax(onFailure, of: "'--on-failure'") }
      let words = try words(of: root)
      let environment = try ScheduledJob.Environment(for: try location(words, root))
      if let warning = environment.warning { console.warning(warning) }
      guard let program = try Host.programPath().utf8 else {
        throw UsageError(
          .invalidInput, "the path of this program is not UTF-8", hint: "move the program")
      }
      let forgetting = try forgetting(words, root)
      if !forgetting.isEmpty { try requireKey(of: forgetting, in: environment, root) }
      return ScheduledJob(
        work: work, name: try work.name(profile: output.profile), program: program,
        words: words, forgetting: forgetting,
        environment: environment.variables, calendar: isWatch ? nil : try time(),
        randomDelay: Int(randomDelay?.seconds ?? 0), isOnMainsOnly: when.all.contains(.onMains),
        onFailure: onFailure)
    }

    /// Returns the repository of the job, even if the configuration names it; nil for a purge.
    private func location(
      _ words: [String], _ root: any ParsableCommand.Type
    ) throws -> RepositoryLocation? {
      let line = try ConfiguredCommandLine.read(words, of: root)
      let backup = try KnownCommand(root).parse(line.words) as? BackupCommand
      return try backup?.repository.choice().location
    }

    /// Refuses options that have no effect on a purge.
    private func checkPurge() throws {
      guard purge else { return }
      let hasTime = hourly || daily || weekly || calendar != nil
      let options: [(name: String, isGiven: Bool)] = [
        ("--metrics", metrics != nil), ("--when", !when.isEmpty),
        ("--keep-…", !keep.words.isEmpty), ("--forget-every", forgetEvery != nil),
        ("--random-delay", isWatch && randomDelay != nil), ("a time", isWatch && hasTime),
      ]
      let misplaced = options.filter(\.isGiven).map(\.name)
      guard misplaced.isEmpty else {
        throw UsageError(
          .optionsConflict, "\(misplaced.joined(separator: " and ")) cannot be used with '--purge'",
          hint: isWatch
            ? "'-- --interval 5m' sets the interval of the watch" : "remove it")
      }
    }

    private func words(of root: any ParsableCommand.Type) throws -> [String] {
      var words =
        !purge
        ? ScheduledJob.backupWords
        : isWatch ? ["purge", "--watch", "--yes"] : ScheduledJob.purgeWords
      if let profile = output.profile { words += ["--profile", profile] }
      if let metrics {
        guard metrics.hasPrefix("/") else {
          throw UsageError(
            .invalidValue, "'\(ByteString(metrics))' is not an absolute path",
            hint: "give an absolute path to '--metrics'")
        }
        words += ["--metrics", metrics]
      }
      // systemd checks the power itself (`ConditionACPower=`); a crontab line has its own option.
      let others = when.all.filter { $0 != .onMains }.map(\.rawValue)
      if !others.isEmpty { words += ["--when", others.joined(separator: ",")] }
      let program = KnownCommand(root)
      words += try program[words[0]].map { try ScheduledJob.absolute(options, of: $0) } ?? options
      let parsed = try program.parse(words)
      try program.requireOnce(words)
      try requireWork(parsed)
      try (parsed as? any SandboxCommand)?.requireEffect(of: words, in: words)
      try (parsed as? PurgeCommand)?.check()
      return words
    }

    /// Refuses options that would prevent every run from doing anything.
    private func requireWork(_ command: any ParsableCommand) throws(UsageError) {
      let idle: String? =
        switch command {
        case let backup as BackupCommand: backup.dryRun ? "--dry-run" : nil
        case let purge as PurgeCommand:
          purge.query ? "--query" : purge.dryRun ? "--dry-run" : nil
        default: "--help"
        }
      guard let idle else { return }
      throw UsageError(
        .optionsConflict, "'\(idle)' cannot be an option of a schedule: no run would do anything",
        hint: "omit it; before '--', '--dry-run' shows the schedule")
    }

    /// Returns the arguments with which the job removes snapshots of this host: with the
    /// repository, key and profile of the backup; empty without rules.
    private func forgetting(_ words: [String], _ root: any ParsableCommand.Type) throws -> [String]
    {
      if keep.words.isEmpty, forgetEvery == nil { return [] }
      guard !keep.rules.isEmpty else {
        throw UsageError(
          .optionRequired, "no rule says which snapshots to keep",
          hint: "give a rule, for example '--keep-daily 7', or omit '--forget-every'")
      }
      var forget = ["forget"] + keep.words + ["--this-host"]
      if let profile = output.profile { forget += ["--profile", profile] }
      let backup = try KnownCommand(root).parse(words) as? BackupCommand
      if let repo = backup?.repository.repo?.utf8 { forget += ["--repo", repo] }
      forget += backup?.repository.remote.words ?? []
      let keys = backup?.repository.keys
      for (option, value) in [
        ("--passphrase-file", keys?.passphraseFile),
        ("--passphrase-command", keys?.passphraseCommand), ("--identity", keys?.identity),
      ] {
        if let text = value?.utf8 { forget += [option, text] }
      }
      _ = try KnownCommand(root).parse(forget)
      let interval = forgetEvery ?? .weekly
      return forget + ["--at-most", interval.rawValue, "--prune", "--quiet"]
    }

    /// Refuses to remove snapshots of an encrypted repository without a key: each backup would
    /// succeed, because it only writes, and each removal would fail. A repository on another host
    /// is known from this host's record of it, without a connection.
    ///
    /// - Throws: `StoreError`: `keyRequired`.
    private func requireKey(
      of forget: [String], in environment: ScheduledJob.Environment,
      _ root: any ParsableCommand.Type
    ) throws {
      if environment.namesKey { return }
      let line = try ConfiguredCommandLine.read(forget, of: root)
      guard let command = try KnownCommand(root).parse(line.words) as? ForgetCommand,
        !command.repository.keys.isGiven
      else { return }
      let choice = try command.repository.choice()
      guard choice.isKnownAsEncrypted else { return }
      throw StoreError(
        .keyRequired, "schedule the removal of snapshots in", subject: "\(choice.location.text)",
        reason: "it is encrypted, and without a key the job could only write to it",
        hint: "give the key of the job after '--': '--passphrase-file FILE', '--passphrase-command "
          + "COMMAND' or '--identity FILE'; without the --keep rules it needs none")
    }

    private func time() throws -> ScheduledJob.Calendar {
      let chosen = [hourly, daily, weekly, calendar != nil].count { $0 }
      guard chosen <= 1 else {
        throw UsageError(
          .optionsConflict, "several schedule times given",
          hint: "give one of --hourly, --daily, --weekly and --calendar")
      }
      if let calendar { return .custom(calendar) }
      return hourly ? .hourly : weekly ? .weekly : daily || !purge ? .daily : .hourly
    }

    // MARK: - systemd

    private func installUnits(_ job: ScheduledJob, _ console: Console) throws -> ExitStatus {
      let units = try Systemd.Units(job)
      if let calendar { try Systemd.requireCalendar(calendar) }
      let directory = try Systemd.UnitDirectory()
      let unit = job.unit
      let location = directory.path.appending(ByteString(unit))
      if dryRun {
        let texts = units.files.map { file in
          "# \(directory.path.appending(ByteString(file.name)))\n\(file.text)"
        }
        try preview(
          texts.joined(separator: "\n"), of: job, scheduler: "systemd", location: location, console)
        return .done
      }
      let former = try directory.command(of: job.name)
      try directory.write(units)
      note(former, replacedBy: try directory.command(of: job.name), of: job, console)
      let failure = Systemd.fails(["daemon-reload"]) ?? start(unit)
      try show(
        job, scheduler: "systemd", location: location, isActive: failure == nil, console)
      guard let failure else {
        if Systemd.isLingeringOff {
          console.warning(
            "it runs only while this user is logged in, because lingering is off: "
              + "'loginctl enable-linger' turns it on")
        }
        return .done
      }
      console.warning(
        "the unit is written but not started: \(failure); when this user's systemd is running, "
          + "run: systemctl --user daemon-reload; systemctl --user enable --now \(unit)")
      return .doneInPart
    }

    /// Starts and enables a unit. Returns nil if that succeeded, otherwise the reason. A running
    /// service is stopped first: otherwise it would keep its previous options until the next login.
    private func start(_ unit: String) -> String? {
      if isWatch, let failure = Systemd.fails(["try-restart", unit]) { return failure }
      return Systemd.fails(["enable", "--now", unit])
    }

    // MARK: - cron

    private func installJob(_ job: ScheduledJob, _ console: Console) throws -> ExitStatus {
      let line = try job.cronLine(host: ScheduledJob.host)
      if dryRun {
        try preview(line, of: job, scheduler: "cron", location: Self.crontab, console)
        return .done
      }
      var crontab = try Crontab.read()
      let former = crontab.jobs.first { $0.name == job.name }.map { Crontab.parts($0.line).command }
      crontab.set(job.name, line)
      try crontab.write()
      note(former, replacedBy: Crontab.parts(line).command, of: job, console)
      try show(job, scheduler: "cron", location: Self.crontab, isActive: true, console)
      return .done
    }

    /// The location of a schedule of cron, whose file only crontab(1) knows.
    private static let crontab: ByteString = "the crontab"

    // MARK: - Output

    /// Shows the command that is replaced: it may have backed up another device.
    private func note(
      _ former: String?, replacedBy command: String?, of job: ScheduledJob, _ console: Console
    ) {
      guard let former, former != command, !output.quiet else { return }
      console.note("the schedule \(job.name) no longer runs: \(ByteString(former))")
      console.hint("to run both, give this one a profile of the configuration: '--profile NAME'")
    }

    /// Prints the text that would be written.
    private func preview(
      _ text: String, of job: ScheduledJob, scheduler kind: String, location: ByteString,
      _ console: Console
    ) throws {
      guard output.json else { return try console.result(text) }
      try console.result(
        members(of: job, scheduler: kind, location: location, isActive: false, text: text))
    }

    private func show(
      _ job: ScheduledJob, scheduler kind: String, location: ByteString, isActive: Bool,
      _ console: Console
    ) throws {
      if output.json {
        try console.result(
          members(of: job, scheduler: kind, location: location, isActive: isActive, text: nil))
      } else if !output.quiet {
        try console.result("\(job.name) is scheduled by \(kind): \(Paths.text(location))")
      }
    }

    private func members(
      of job: ScheduledJob, scheduler kind: String, location: ByteString, isActive: Bool,
      text: String?
    ) -> JSON {
      [
        "scheduler": .string(kind), "name": .string(job.name),
        "place": .string(location.description), "active": .bool(isActive),
        "dry_run": .bool(dryRun), "text": text.map { .string($0) } ?? .null,
      ]
    }
  }
}
