internal import ArgumentParser

/// The root command, with all commands by group.
struct SandboxctlCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "sandboxctl",
      abstract: "Back up, restore and understand the data of sandboxed apps",
      discussion: """
        sandboxctl classifies the files of sandboxed apps by policy, backs up the data that cannot \
        be recreated into a repository of ordinary archives, and restores it. It also installs, \
        updates and removes apps together with their data, and deletes caches.

        \(Examples.text([
          "sandboxctl sample device",
          "sandboxctl apps --root device",
          "sandboxctl init repo --plain",
          "sandboxctl backup --root device --repo repo",
          "sandboxctl restore latest --to restored --repo repo",
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
            ForgetCommand.self, PruneCommand.self, CopyCommand.self, MirrorCommand.self,
            CheckCommand.self, RepairCommand.self, LeasesCommand.self,
          ]),
        CommandGroup(
          name: "App lifecycle",
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
        CommandGroup(name: "Sample data", subcommands: [SampleCommand.self]),
      ]
    )
  }
}
