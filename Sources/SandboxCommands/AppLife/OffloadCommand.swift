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
        Moves the app's bundle to the trash. The data of the app, of its extensions and of its \
        groups stays where it is, as the policy's 'containers' says. 'sandboxctl reinstall' \
        installs the app on this data again. A snapshot (reason uninstall) is made first.

        The groups of an offloaded app are not known. For this reason, uninstalling another app \
        keeps all groups while an app is offloaded.

        On flatpak and snap the command only reports what the platform's own program does. See \
        sandboxctl-lifecycle(7).

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
    try AppChangeRun(self, console).remove(named, by: .offload, console)
  }
}

extension AppChangeRun {
  /// Removes an app, with or without its data.
  func remove(_ named: AppArgument, by change: AppChange, _ console: Console) throws -> ExitStatus {
    let request = AppChangeRequest(change, of: try named.find(on: device))
    return try finish(try plan(request), console) { try $0.run() }
  }
}
