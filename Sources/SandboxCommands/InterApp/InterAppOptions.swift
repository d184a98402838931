internal import ArgumentParser
internal import BuiltinPolicies
internal import DeviceDiscovery
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// The device and the version of its system, for commands about its apps' declarations.
struct InterAppOptions: ParsableArguments {
  @OptionGroup var device: DeviceOptions

  @Option(
    help: ArgumentHelp(
      "The version of the device's system, for example 4.2 (default: as found, or the newest).",
      valueName: "version"))
  var osVersion: ByteString?

  /// Finds the device and reads the declarations of its apps.
  ///
  /// - Throws: `UsageError` for an invalid version, and for a layout without Apple's bundles.
  func load() throws -> (device: Device, model: InterAppModel) {
    let version = try osVersion.map(Self.version)
    let found = try Self.checked(try device.find())
    return (found, try InterAppModel(reading: found, version: version))
  }

  /// Returns a device if its layout has Apple's bundles.
  ///
  /// - Throws: `UsageError` for another layout.
  static func checked(_ found: Device) throws -> Device {
    guard found.layout == .coreSimulator || found.layout == .macOS else {
      throw UsageError(
        .layoutUnsupported,
        "the layout '\(found.layout.rawValue)' has no inter-app declarations",
        hint: "these commands need a device of the layout coresimulator or macos")
    }
    return found
  }

  /// Reads the extension points of the system.
  static func points() throws -> ExtensionPoints {
    try ExtensionPoints(
      reading: BuiltinPolicies.interAppExtensions, name: "interapp/extensions.yaml")
  }

  private static func version(_ text: ByteString) throws -> SystemVersion {
    guard let version = SystemVersion(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a version of a system",
        hint: "a version is numbers with dots, for example 4.2.1")
    }
    return version
  }
}

extension InterAppModel {
  /// Reads the declarations of a device's apps, and the rules of the system that come with the
  /// program.
  ///
  /// - Parameter version: The version of the system, if not that of the device.
  init(reading device: Device, version: SystemVersion? = nil) throws {
    self.init(
      AppCatalog(reading: device),
      types: try TypeTable.ofTheSystem(),
      schemes: try SystemSchemes(
        reading: BuiltinPolicies.interAppSchemes, name: "interapp/schemes.yaml"),
      version: version ?? device.osVersion.flatMap { SystemVersion($0) })
  }
}
