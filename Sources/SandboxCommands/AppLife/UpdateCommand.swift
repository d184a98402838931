internal import ArgumentParser
internal import Interchange
internal import Lifecycle
internal import SandboxModel
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
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let run = try AppChangeRun(self, console)
    return try run.exchange(package, by: .update, console) { request in
      request.allowsDowngrade = allowDowngrade
      request.isStrict = strict
    }
  }
}

extension AppChangeRun {
  /// Runs an operation on a package. If the platform's own program does it and `name` is an app's
  /// name, only reports it.
  func exchange(
    _ name: ByteString, by change: AppChange, _ console: Console,
    adapting adapt: (inout AppChangeRequest) -> Void
  ) throws -> ExitStatus {
    if device.layout == .flatpak || device.layout == .snap {
      var request = AppChangeRequest(change, of: try identifier(of: name, for: change))
      adapt(&request)
      return try finish(plan(request), console) { try $0.run() }
    }
    let package = try Package(opening: name)
    for finding in package.app.findings { console.note("'\(finding.path)': \(finding.reason)") }
    var request = AppChangeRequest(change, of: package.app.identifier, package: package.app)
    adapt(&request)
    var entries = try package.entries()
    return try finish(plan(request), console) { try $0.run(&entries) }
  }

  /// Returns the identifier of the app that a name means. An app to install need not be on the
  /// device.
  private func identifier(of name: ByteString, for change: AppChange) throws -> BundleIdentifier {
    if name.hasSuffix(".app") || name.hasSuffix(".ipa") {
      throw UsageError(
        "cannot use the package '\(name)': \(device.layout.rawValue) installs apps itself",
        hint: "give the app's name to see the effect on its data")
    }
    if change == .install, let given = BundleIdentifier(name) {
      return (try? device.app(given.bytes))?.identifier ?? given
    }
    return try device.app(name).identifier
  }
}
