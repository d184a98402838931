internal import AppUpdate
internal import ArgumentParser

/// `sandboxctl uninstall APP --root DIR`: removes an app as its platform does.
struct UninstallCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "uninstall",
      abstract: "Remove an app and the data that its platform removes",
      usage: "sandboxctl uninstall <app> --root <dir> [<options>]",
      discussion: """
        Moves to the trash what the policy's 'containers' lists for an app: on iOS its bundle, its \
        data and the data of its extensions, on macOS the bundle only. Also removes the data of an \
        offloaded app. A group is removed with the last app known to share it, by entitlements or \
        by 'groups' in a policy; it is kept if another app is guessed to share it or is offloaded. \
        A snapshot of the removed data (reason uninstall) is made first, and data that is not in \
        it is reported.

        On flatpak and snap the command only reports what the platform's own program does. See \
        sandboxctl-lifecycle(7).

        \(Examples.text([
          "sandboxctl uninstall notebook --root device --repo repo --dry-run",
          "sandboxctl uninstall notebook --root device --repo repo",
        ]))
        """)
  }

  @OptionGroup var named: AppArgument
  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try AppChangeRun(self, console).remove(named, by: .uninstall, console)
  }
}

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
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try AppChangeRun(self, console).remove(named, by: .offload, console)
  }
}
