internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl schedule status`: what is scheduled.
struct ScheduleStatusCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "status",
      abstract: "Show which backups are scheduled",
      usage: "sandboxctl schedule status [--systemd] [--cron] [<options>]",
      discussion: """
        Shows each schedule of this user that 'schedule install' made: by which program, when, \
        whether its timer runs, and the command. With --json each is a line: scheduler, name, \
        calendar, active (null where nobody tells), command.

        \(Examples.text(["sandboxctl schedule status"]))
        """)
  }

  @OptionGroup var scheduler: SchedulerOptions
  @OptionGroup var output: OutputOptions

  /// A schedule as it is shown.
  private struct Row {
    let scheduler: String
    let name: String
    let calendar: String
    let isActive: Bool?
    let command: String
  }

  func run(_ console: Console) throws -> ExitStatus {
    let rows = try self.rows()
    if output.json {
      for row in rows {
        try console.result(
          [
            "scheduler": .string(row.scheduler), "name": .string(row.name),
            "calendar": .string(row.calendar), "active": row.isActive.map { .bool($0) } ?? .null,
            "command": .string(row.command),
          ])
      }
      return .done
    }
    if rows.isEmpty {
      if !output.quiet {
        console.note("nothing is scheduled: 'sandboxctl schedule install' does it")
      }
      return .done
    }
    var table = Table([
      ("by", .left), ("name", .left), ("when", .left), ("runs", .left), ("command", .left),
    ])
    for row in rows {
      let runs = row.isActive.map { $0 ? "yes" : "no" } ?? "unknown"
      table.add([row.scheduler, row.name, row.calendar, runs, ByteString(row.command).description])
    }
    for line in table.lines { try console.result(line) }
    return .done
  }

  private func rows() throws -> [Row] {
    let isAny = !scheduler.systemd && !scheduler.cron
    var rows: [Row] = []
    if scheduler.systemd || isAny {
      rows += try SystemdFolder().schedules().map { schedule in
        Row(
          scheduler: "systemd", name: schedule.name, calendar: schedule.calendar,
          isActive: Systemctl.fails(["is-active", "--quiet", schedule.name + ".timer"]) == nil,
          command: schedule.command)
      }
    }
    if let crontab = scheduler.cron ? try Crontab.read() : isAny ? try? Crontab.read() : nil {
      rows += crontab.jobs.map { job in
        let fields = job.line.split(separator: " ", omittingEmptySubsequences: false)
        let count = job.line.hasPrefix("@") ? 1 : 5
        return Row(
          scheduler: "cron", name: job.name,
          calendar: fields.prefix(count).joined(separator: " "), isActive: nil,
          command: fields.dropFirst(count).joined(separator: " "))
      }
    }
    return rows
  }
}
