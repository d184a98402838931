internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl schedule remove`: ends what `install` began.
struct ScheduleRemoveCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "remove",
      abstract: "Back up, or purge, no more by schedule",
      usage: "sandboxctl schedule remove [--systemd] [--cron] [--purge] [<options>]",
      discussion: """
        Takes out what 'schedule install' wrote, and nothing else: the units, or the line of the \
        crontab; both unless one is named. With --purge it is that of purges, else that of backups. \
        Snapshots stay.

        \(Examples.text(["sandboxctl schedule remove --systemd"]))
        """)
  }

  @OptionGroup var scheduler: SchedulerOptions

  @Flag(help: "The schedule of purges, not of backups.")
  var purge = false

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let name = try ScheduleName.of(purge ? .purge : .backup, profile: output.profile)
    let isAny = !scheduler.systemd && !scheduler.cron
    var removed: [String] = []
    if scheduler.systemd || isAny {
      let directory = try SystemdDirectory()
      for schedule in try directory.schedules() where schedule.name == name {
        // Where systemd does not run there is nothing to stop.
        _ = Systemctl.fails(["disable", "--now", schedule.unit])
      }
      if try directory.remove(name) {
        _ = Systemctl.fails(["daemon-reload"])
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

  /// A machine without cron has nothing to remove, unless cron was named.
  private func isRemovedFromCrontab(_ name: String, isWanted: Bool) throws -> Bool {
    guard var crontab = isWanted ? try Crontab.read() : try? Crontab.read() else { return false }
    guard crontab.remove(name) else { return false }
    try crontab.write()
    return true
  }
}
