internal import AppUpdate
internal import ArgumentParser
internal import SystemIO

/// `sandboxctl update PACKAGE --root DIR`: replaces an app with another version.
struct UpdateCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "update",
      abstract: "Replace an app with another version and keep its data",
      usage: "sandboxctl update <package> --root <dir> [<options>]",
      discussion: """
        PACKAGE is an app's directory (New.app) or an .ipa file. The new version gets a new \
        container if the platform creates one, and the data moves there by renames, as the \
        policy's 'containers' says. Data that the platform does not guarantee to keep is kept and \
        reported; --strict moves it to the trash. A snapshot (reason pre-update) is made first, \
        and data that is not in it is reported.

        On flatpak and snap, PACKAGE is an app's name, and the command only reports what the \
        platform's own program does.

        See sandboxctl-update(1) for the conditions of an update and the exit statuses.

        \(Examples.text([
          "sandboxctl update New.app --root device --repo repo --dry-run",
          "sandboxctl update New.ipa --root device --repo repo",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The new version's directory or .ipa file; on flatpak and snap, the app's name.",
      valueName: "package"), completion: .file())
  var package: ByteString

  @Flag(help: "Allow an earlier version to replace a later one.")
  var allowDowngrade = false

  @Flag(help: "Move data that the platform may drop to the trash.")
  var strict = false

  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  static var precedence: [OptionPrecedence] {
    OptionPrecedence.target(OptionPrecedence.device, dropping: ["strict"])
  }

  func run(_ console: Console) throws -> ExitStatus {
    let run = try AppChangeRun(self, console)
    return try run.exchange(package, by: .update, console) { request in
      request.allowsDowngrade = allowDowngrade
      request.isStrict = strict
    }
  }
}
