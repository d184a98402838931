internal import ArgumentParser
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
      subcommands: [
        ScheduleInstallCommand.self, ScheduleRemoveCommand.self, ScheduleStatusCommand.self,
      ])
  }
}

/// The scheduler to use.
struct SchedulerOptions: ParsableArguments {
  @Flag(help: "Use this user's systemd: a service and a timer.")
  var systemd = false

  @Flag(help: "Use cron: a line in this user's crontab.")
  var cron = false
}

/// The names of schedules.
enum ScheduleName {
  /// Returns the name of a profile's schedule, or of the schedule without a profile.
  static func of(_ work: ScheduledJob.Work, profile: String?) throws -> String {
    guard let profile else { return work.prefix }
    guard profile.wholeMatch(of: /[A-Za-z0-9_.-]+/) != nil else {
      throw UsageError(
        "the profile '\(ByteString(profile))' cannot name a schedule",
        hint: "use letters, digits, '_', '.' and '-'")
    }
    return "\(work.prefix)-\(profile)"
  }
}
