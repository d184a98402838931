internal import ArgumentParser
internal import Lifecycle

/// `sandboxctl uninstall APP --root DIR`: removes an app as its platform does.
struct UninstallCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "uninstall",
      abstract: "Remove an app with what its platform removes",
      usage: "sandboxctl uninstall <app> --root <dir> [<options>]",
      discussion: """
        Moves to the trash what the policy's 'containers' says goes with an app: on iOS its bundle, \
        its data and its extensions', on macOS the bundle alone. A group goes only with the last app \
        that is known to share it, by entitlements or by 'groups' of a policy; it stays where another \
        app is guessed to share it, or is offloaded. First a snapshot is made of all that goes \
        (reason uninstall), and what it does not hold is said.

        The data of an app that was offloaded is removed, too.

        On flatpak and snap it only tells what the platform's own program does with the data. \
        sandboxctl-lifecycle(7) has the tables.

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
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try AppChangeRun(self, console).remove(.uninstall, named, console)
  }
}
