internal import ArgumentParser
internal import Lifecycle

/// `sandboxctl offload APP --root DIR`: removes an app's bundle and keeps its data.
struct OffloadCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "offload",
      abstract: "Remove an app and keep its data",
      usage: "sandboxctl offload <app> --root <dir> [<options>]",
      discussion: """
        Moves the app's bundle to the trash and leaves its data, its extensions' and its groups \
        where they are, as the policy's 'containers' says. 'sandboxctl reinstall' puts a bundle \
        back on the data. First a snapshot is made of what is there (reason uninstall).

        While an app is offloaded nobody can read which groups it shares; so uninstalling another \
        app leaves groups alone.

        On flatpak and snap it only tells what the platform's own program does with the data. \
        sandboxctl-lifecycle(7) has the tables.

        \(Examples.text(["sandboxctl offload notebook --root device --repo repo"]))
        """)
  }

  @OptionGroup var named: AppArgument
  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try AppChangeRun(self, console).remove(.offload, named, console)
  }
}

extension AppChangeRun {
  /// Does what takes an app away, as a whole or but for its data.
  func remove(_ change: AppChange, _ named: AppArgument, _ console: Console) throws -> ExitStatus {
    let request = AppChangeRequest(change, of: try named.find(on: device))
    return try finish(try plan(request), console) { try $0.run() }
  }
}
