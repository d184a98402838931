internal import ArgumentParser

/// The program: what it is for, and its commands by group.
struct SandboxctlCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "sandboxctl",
      abstract: "Back up, restore and understand the data of sandboxed apps",
      discussion: """
        sandboxctl knows what in an app's sandbox is precious and what is disposable: it \
        classifies by policy, backs up what matters into ordinary archives, and restores it.

        \(Examples.text([
          "sandboxctl sample device",
          "sandboxctl apps --root device",
          "sandboxctl init repo --plain",
          "sandboxctl backup --root device --repo repo",
          "sandboxctl restore latest --to back --repo repo",
        ]))
        """,
      version: Version.text,
      groupedSubcommands: [
        CommandGroup(
          name: "Everyday",
          subcommands: [BackupCommand.self, RestoreCommand.self, ScheduleCommand.self]),
        CommandGroup(
          name: "Repository",
          subcommands: [
            InitCommand.self, SnapshotsCommand.self, ListCommand.self, DiffCommand.self,
            FindCommand.self, VersionsCommand.self, DumpCommand.self, StatsCommand.self,
            CheckCommand.self, RepairCommand.self,
          ]),
        CommandGroup(
          name: "App life",
          subcommands: [
            InstallCommand.self, UpdateCommand.self, RollbackCommand.self, OffloadCommand.self,
            ReinstallCommand.self, UninstallCommand.self, PurgeCommand.self, RecoverCommand.self,
            TrashCommand.self,
          ]),
        CommandGroup(
          name: "Device and policy",
          subcommands: [
            AppsCommand.self, ClassifyCommand.self, ExplainCommand.self, PolicyCommand.self,
          ]),
        CommandGroup(name: "Try it out", subcommands: [SampleCommand.self]),
      ]
    )
  }
}

/// The program's version.
enum Version {
  static let number = "0.1.0"
  static let text = "sandboxctl \(number) (repository format 1)"
}
