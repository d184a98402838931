internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl schedule`: schedules backups and purges.
struct ScheduleCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "schedule",
      abstract: "Schedule recurring backups or purges",
      discussion: """
        \(Examples.text([
          "sandboxctl schedule install --systemd --dry-run",
          "sandboxctl schedule install --systemd --purge --dry-run", "sandboxctl schedule status",
        ]))
        """,
      subcommands: [Install.self, Remove.self, Status.self])
  }
}

extension ScheduleCommand {
  /// The scheduler to use.
  struct SchedulerOptions: ParsableArguments {
    @Flag(help: "Use this user's systemd: a service and a timer.")
    var systemd = false

    @Flag(help: "Use cron: a line in this user's crontab.")
    var cron = false
  }

  /// `sandboxctl schedule remove`: removes a schedule.
  struct Remove: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a schedule for backups or purges",
        usage: "sandboxctl schedule remove [--systemd] [--cron] [--purge] [<options>]",
        discussion: """
          Removes what 'schedule install' wrote, and nothing else: the units, the line of the \
          crontab, or both if no scheduler is given. With --purge the schedule of purges is \
          removed, otherwise that of backups. Snapshots are kept.

          \(Examples.text(["sandboxctl schedule remove --systemd"]))
          """)
    }

    @OptionGroup var scheduler: SchedulerOptions

    @Flag(help: "Remove the schedule of purges instead of that of backups.")
    var purge = false

    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let name = try (purge ? ScheduledJob.Work.purge : .backup).name(profile: output.profile)
      let isAny = !scheduler.systemd && !scheduler.cron
      var removed: [String] = []
      if scheduler.systemd || isAny {
        let directory = try Systemd.UnitDirectory()
        for schedule in try directory.schedules() where schedule.name == name {
          // Fails if systemd is not running. There is nothing to stop then.
          _ = Systemd.fails(["disable", "--now", schedule.unit])
        }
        if try directory.remove(name) {
          _ = Systemd.fails(["daemon-reload"])
          removed.append("systemd")
        }
      }
      if scheduler.cron || isAny, try isRemovedFromCrontab(name, isWanted: scheduler.cron) {
        removed.append("cron")
      }
      if output.json {
        try console.result(
          ["name": .string(name), "removed": .array(removed.map { .string($0) })])
      } else if !output.quiet {
        try console.result(
          removed.isEmpty
            ? "nothing is scheduled as \(name)"
            : "\(name) is no longer scheduled by \(removed.joined(separator: " and "))")
      }
      return .done
    }

    /// Removes the job from the crontab and returns whether there was one. A machine without cron
    /// has none, unless `isWanted`.
    private func isRemovedFromCrontab(_ name: String, isWanted: Bool) throws -> Bool {
      guard var crontab = isWanted ? try Crontab.read() : try? Crontab.read() else { return false }
      guard crontab.remove(name) else { return false }
      try crontab.write()
      return true
    }
  }

  /// `sandboxctl schedule status`: shows the installed schedules.
  struct Status: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "status",
        abstract: "Show the installed schedules",
        usage: "sandboxctl schedule status [--systemd] [--cron] [<options>]",
        discussion: """
          Shows each schedule of this user that 'schedule install' made: scheduler, times, whether \
          the timer or service is active, last and next run, and command. If systemd does not know \
          the last run, it is the time of the newest snapshot in the repository that a schedule of \
          this user made on this host. Unknown values are shown as 'unknown'.

          With --json each schedule is a line: scheduler, name, calendar (empty for a permanent \
          service), active, last, next (each null if unknown), command.

          \(Examples.text(["sandboxctl schedule status"]))
          """)
    }

    @OptionGroup var scheduler: SchedulerOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    /// A row of the output.
    private struct Row {
      let scheduler: String
      let name: String
      let calendar: String
      let isActive: Bool?
      var last: Timestamp?
      let next: Timestamp?
      let command: String

      /// The command in shell syntax, with control characters escaped.
      var shownCommand: String {
        let isPlain = command.unicodeScalars.allSatisfy {
          $0.properties.generalCategory != .control
        }
        return isPlain ? command : ByteString(command).description
      }
    }

    func run(_ console: Console) throws -> ExitStatus {
      let rows = try self.rows()
      if output.json {
        for row in rows {
          try console.result(
            [
              "scheduler": .string(row.scheduler), "name": .string(row.name),
              "calendar": .string(row.calendar), "active": row.isActive.map { .bool($0) } ?? .null,
              "last": row.last.map { .string($0.rfc3339) } ?? .null,
              "next": row.next.map { .string($0.rfc3339) } ?? .null,
              "command": .string(row.command),
            ])
        }
        return .done
      }
      if rows.isEmpty {
        if !output.quiet {
          console.note("nothing is scheduled: 'sandboxctl schedule install' schedules backups")
        }
        return .done
      }
      var table = Table([
        ("by", .left), ("name", .left), ("when", .left), ("runs", .left), ("last", .left),
        ("next", .left), ("command", .left),
      ])
      for row in rows {
        let runs = row.isActive.map { $0 ? "yes" : "no" } ?? "unknown"
        let isWatch = row.calendar.isEmpty
        let next =
          row.next.map(Times.text)
          ?? (row.isActive == false ? "never" : isWatch ? "all the time" : "unknown")
        table.add([
          row.scheduler, row.name, isWatch ? "when space is short" : row.calendar, runs,
          row.last.map(Times.text) ?? "unknown", next,
          row.shownCommand,
        ])
      }
      try console.result(table)
      return .done
    }

    private func rows() throws -> [Row] {
      var rows = try installed()
      guard !rows.isEmpty, let made = lastScheduled() else { return rows }
      let ours = try ScheduledJob.Work.backup.name(profile: output.profile)
      for index in rows.indices where rows[index].name == ours {
        // A schedule with its own '--repo' may use another repository.
        let isElsewhere = repository.repo == nil && rows[index].command.contains("--repo")
        if !isElsewhere { rows[index].last = max(made, rows[index].last ?? made) }
      }
      return rows
    }

    /// Returns the time of the newest snapshot that a schedule of this user made on this host. One
    /// dated in the future, by a clock that was ahead, is ignored. No key is used or asked for: the
    /// heads of this host's own snapshots are in its cache.
    private func lastScheduled() -> Timestamp? {
      let user = Host.userName(Host.userID) ?? String(Host.userID)
      let opened = try? repository.open().repository
      let all = try? opened?.knownHeads(cache: opened?.hostHeadCache).heads
      let now = Host.now()
      return all?.last {
        $0.reason == .scheduled && $0.host == Host.name && $0.user == user && $0.time <= now
      }?.time
    }

    private func installed() throws -> [Row] {
      let isAny = !scheduler.systemd && !scheduler.cron
      var rows: [Row] = []
      if scheduler.systemd || isAny {
        rows += try Systemd.UnitDirectory().schedules().map { schedule in
          let times =
            schedule.calendar.isEmpty ? (nil, nil) : Systemd.times(ofTimer: schedule.name)
          return Row(
            scheduler: "systemd", name: schedule.name, calendar: schedule.calendar,
            isActive: Systemd.fails(["is-active", "--quiet", schedule.unit]) == nil,
            last: times.0, next: times.1, command: schedule.command)
        }
      }
      if let crontab = scheduler.cron ? try Crontab.read() : isAny ? try? Crontab.read() : nil {
        rows += crontab.jobs.map { job in
          let (calendar, command) = Crontab.parts(job.line)
          return Row(
            scheduler: "cron", name: job.name, calendar: calendar, isActive: nil, last: nil,
            next: CronTime(calendar)?.next(after: Host.now()), command: command)
        }
      }
      return rows
    }
  }
}
