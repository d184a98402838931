internal import AppUpdate
internal import ArgumentParser
internal import SystemIO

/// `sandboxctl install PACKAGE --root DIR`: installs an app that is not on the device.
struct InstallCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "install",
      abstract: "Install an app and attach the data kept for it",
      usage: "sandboxctl install <package> --root <dir> [<options>]",
      discussion: """
        PACKAGE is an app's directory (New.app) or an .ipa file. Creates the containers that the \
        platform creates and puts the bundle into its own. Data that was restored before the app \
        was installed moves from the safe harbor into its containers; data that an offload kept \
        stays where it is. On macOS a new data container is filled as the app's \
        container-migration.plist says.

        On flatpak and snap, PACKAGE is an app's name, and the command only reports what the \
        platform's own program does.

        \(Examples.text(["sandboxctl install New.ipa --root device --repo repo"]))
        """)
  }

  @OptionGroup var named: PackageArgument
  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try AppChangeRun(self, console).exchange(named.package, by: .install, console) { _ in }
  }
}

/// `sandboxctl reinstall PACKAGE --root DIR`: reinstalls an offloaded app and reattaches its data.
struct ReinstallCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "reinstall",
      abstract: "Reinstall an offloaded app and reattach its data",
      usage: "sandboxctl reinstall <package> --root <dir> [<options>]",
      discussion: """
        PACKAGE is an app's directory (New.app) or an .ipa file; its identifier names the \
        offloaded app. The data stays where it is and is not changed. Refused if the app is \
        installed, or if the device has none of its data.

        On flatpak and snap, PACKAGE is an app's name, and the command only reports what the \
        platform's own program does. See sandboxctl-lifecycle(7).

        \(Examples.text(["sandboxctl reinstall New.ipa --root device"]))
        """)
  }

  @OptionGroup var named: PackageArgument
  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try AppChangeRun(self, console).exchange(named.package, by: .reinstall, console) { _ in }
  }
}
