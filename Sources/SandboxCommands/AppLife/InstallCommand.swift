internal import ArgumentParser
internal import Lifecycle
internal import SystemIO

/// `sandboxctl install PACKAGE --root DIR`: installs an app that is not there.
struct InstallCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "install",
      abstract: "Install an app, with the data that waits for it",
      usage: "sandboxctl install <package> --root <dir> [<options>]",
      discussion: """
        The package is an app's directory (New.app) or an .ipa file. Its bundle gets a container, and \
        the containers are made that its platform makes. Data that was restored before the app and \
        waits in the safe harbor becomes the app's own; data that stayed when the app was offloaded \
        stays where it is. On macOS the app's container-migration.plist is followed where its \
        container is first made.

        On flatpak and snap, where PACKAGE is an app's name, it only tells what the platform's own \
        program does.

        \(Examples.text(["sandboxctl install New.ipa --root device --repo repo"]))
        """)
  }

  @OptionGroup var named: PackageArgument
  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try AppChangeRun(self, console).exchange(.install, named.package, console) { _ in }
  }
}
