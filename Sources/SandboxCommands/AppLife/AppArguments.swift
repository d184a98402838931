internal import ArgumentParser
internal import SandboxModel
internal import SystemIO

/// The app argument of the commands that take no package.
struct AppArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The app: its identifier, the last component of it, or its display name.", valueName: "app"))
  var app: ByteString

  /// Returns the identifier of the app on a device.
  func find(on device: Device) throws -> BundleIdentifier {
    try device.app(app).identifier
  }
}

/// The package argument of `install` and `reinstall`.
struct PackageArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The app's directory or .ipa file; on flatpak and snap, the app's name.", valueName: "package"
    ),
    completion: .file())
  var package: ByteString
}
