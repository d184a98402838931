internal import ArgumentParser
internal import Interchange
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// `sandboxctl update PACKAGE --root DIR`: puts another version of an app in its place.
struct UpdateCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "update",
      abstract: "Put another version of an app in its place, with its data",
      usage: "sandboxctl update <package> --root <dir> [<options>]",
      discussion: """
        The package is an app's directory (New.app) or an .ipa file. The new version gets a new \
        container where the platform does so, and the data moves along as the policy's table of \
        containers says: by renames, so that no byte is copied. What the platform does not promise \
        to carry over stays here, too, and is named; with --strict it goes to the trash, as if the \
        platform had dropped it. Before that a snapshot is made of what is there (reason \
        pre-update): what it does not hold is told.

        It is refused for an earlier version, for extensions of another build than the app's, while \
        the app runs, and for an archive that is not safe to unpack. On flatpak and snap, where \
        PACKAGE is an app's name, it only tells what the platform's own program does with the data.

        What was interrupted is finished or taken back by 'recover', or by the next command that \
        changes the device. Exit status 3 says that something was written meanwhile that the plan \
        did not know: it is named and in the trash.

        \(Examples.text([
          "sandboxctl update New.app --root device --repo repo --dry-run",
          "sandboxctl update New.ipa --root device --repo repo",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The new version: an app's directory or an .ipa file; on flatpak and snap the app's name.",
      valueName: "package"), completion: .file())
  var package: ByteString

  @Flag(help: "Let an earlier version follow a later one.")
  var allowDowngrade = false

  @Flag(help: "Put what the platform may drop into the trash.")
  var strict = false

  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let run = try AppChangeRun(self, console)
    return try run.exchange(.update, package, console) { request in
      request.allowsDowngrade = allowDowngrade
      request.isStrict = strict
    }
  }
}

extension AppChangeRun {
  /// Does what takes a package, from the path that names it; or tells it, where the platform's own
  /// program does it and a name is given.
  func exchange(
    _ change: AppChange, _ name: ByteString, _ console: Console,
    _ adapt: (inout AppChangeRequest) -> Void
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

  /// The app that a name, and no package, means; for an installation one that need not be there.
  private func identifier(of name: ByteString, for change: AppChange) throws -> BundleIdentifier {
    if name.hasSuffix(".app") || name.hasSuffix(".ipa") {
      throw UsageError(
        "'\(name)' is a package, and apps of \(device.layout.rawValue) are installed by its own program",
        hint: "give the app's name, and what would become of its data is told")
    }
    if change == .install, let given = BundleIdentifier(name) {
      return (try? device.app(given.bytes))?.identifier ?? given
    }
    return try device.app(name).identifier
  }
}
