internal import ArgumentParser
internal import SystemIO

/// `sandboxctl schedule`: what is done again and again.
struct ScheduleCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "schedule",
      abstract: "Make backups, or purge, again and again",
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

/// By which program something is done again and again.
struct SchedulerOptions: ParsableArguments {
  @Flag(help: "By this user's systemd: a service and a timer.")
  var systemd = false

  @Flag(help: "By cron: a line in this user's crontab.")
  var cron = false
}

/// Which schedule is meant.
enum ScheduleName {
  /// The name of a profile's schedule, or of the one without a profile.
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
