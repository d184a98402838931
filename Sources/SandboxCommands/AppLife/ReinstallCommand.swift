internal import ArgumentParser
internal import Lifecycle

/// `sandboxctl reinstall PACKAGE --root DIR`: puts a bundle back on the data of an offloaded app.
struct ReinstallCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "reinstall",
      abstract: "Put an app back on the data that an offload left",
      usage: "sandboxctl reinstall <package> --root <dir> [<options>]",
      discussion: """
        The package is an app's directory (New.app) or an .ipa file; its identifier says whose data it \
        is put on. The data stays where it is, untouched. Refused where the app is installed, or \
        nothing of it is there.

        On flatpak and snap, where PACKAGE is an app's name, it only tells what the platform's own \
        program does. sandboxctl-lifecycle(7) has the tables.

        \(Examples.text(["sandboxctl reinstall New.ipa --root device"]))
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
    try AppChangeRun(self, console).exchange(.reinstall, named.package, console) { _ in }
  }
}
