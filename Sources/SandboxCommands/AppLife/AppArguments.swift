internal import ArgumentParser
internal import SandboxModel
internal import SystemIO

/// The app of a command that needs no package.
struct AppArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The app: an identifier, its last component or the name that is shown.", valueName: "app"))
  var app: ByteString

  /// The identifier of the app that is meant.
  func find(on device: Device) throws -> BundleIdentifier {
    try device.app(app).identifier
  }
}

/// What a command installs that finds no app there.
struct PackageArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The app: its directory or an .ipa file; on flatpak and snap its name.", valueName: "package"),
    completion: .file())
  var package: ByteString
}
