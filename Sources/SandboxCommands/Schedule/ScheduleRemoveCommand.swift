internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl schedule remove`: removes a schedule.
struct ScheduleRemoveCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "remove",
      abstract: "Remove a schedule for backups or purges",
      usage: "sandboxctl schedule remove [--systemd] [--cron] [--purge] [<options>]",
      discussion: """
        Removes what 'schedule install' wrote, and nothing else: the units, the line of the \
        crontab, or both if no scheduler is given. With --purge the schedule of purges is removed, \
        otherwise that of backups. Snapshots are kept.

        \(Examples.text(["sandboxctl schedule remove --systemd"]))
        """)
  }

  @OptionGroup var scheduler: SchedulerOptions

  @Flag(help: "Remove the schedule of purges instead of that of backups.")
  var purge = false

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let name = try ScheduleName.of(purge ? .purge : .backup, profile: output.profile)
    let isAny = !scheduler.systemd && !scheduler.cron
    var removed: [String] = []
    if scheduler.systemd || isAny {
      let directory = try SystemdDirectory()
      for schedule in try directory.schedules() where schedule.name == name {
        // Fails if systemd is not running. There is nothing to stop then.
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

  /// Removes the job from the crontab and returns whether there was one. A machine without cron has
  /// none, unless `isWanted`.
  private func isRemovedFromCrontab(_ name: String, isWanted: Bool) throws -> Bool {
    guard var crontab = isWanted ? try Crontab.read() : try? Crontab.read() else { return false }
    guard crontab.remove(name) else { return false }
    try crontab.write()
    return true
  }
}
