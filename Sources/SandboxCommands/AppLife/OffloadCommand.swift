internal import ArgumentParser
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// `sandboxctl offload APP --root DIR`: removes an app's bundle and keeps its data.
struct OffloadCommand: SandboxCommand {
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

  @Argument(
    help: ArgumentHelp(
      "The app: an identifier, its last component or the name that is shown.", valueName: "app"))
  var app: String

  @OptionGroup var options: AppChangeOptions

  func run(_ console: Console) throws -> ExitStatus {
    try AppChangeRun(options, console).remove(.offload, app, console)
  }
}

extension AppChangeRun {
  /// Does what takes an app away, as a whole or but for its data.
  func remove(_ change: AppChange, _ app: String, _ console: Console) throws -> ExitStatus {
    let request = AppChangeRequest(change, of: try device.app(ByteString(app)).identifier)
    return try finish(try plan(request), console) { try $0.run() }
  }
}
