internal import ArchiveStore
internal import ArgumentParser
internal import SandboxModel
internal import SystemIO

/// Which apps of a device a backup is of.
struct BackupAppOptions: ParsableArguments {
  @Option(
    name: .customLong("app"),
    help: ArgumentHelp(
      "Back up only this app, with the groups that it shares: an identifier, its last component or "
        + "the name that is shown; may be repeated.", valueName: "app"))
  var apps: [ByteString] = []

  @Flag(
    help:
      "Read the bundles that have new UUIDs, though version, names, sizes and times are as stored.")
  var verifyBundles = false

  var names: AppNames { AppNames(apps) }

  /// What of a device is meant.
  ///
  /// - Throws: where the device has none of the apps, and for a name that several have.
  func selection(of device: Device) throws -> AppSelection {
    AppSelection(device, try names.apps(of: device))
  }
}

/// The containers of some apps and of the groups that they may share; with no app all of a device.
struct AppSelection {
  private let paths: Set<ByteString>
  private let identifiers: [String]

  init(_ device: Device, _ apps: [App]) {
    identifiers = Set(apps.map(\.identifier.description)).sorted()
    paths = Set(
      apps.flatMap { app in
        device.containers(of: app).map(\.logicalPrefix)
          + device.groups(of: app).map(\.container.logicalPrefix)
      })
  }

  /// Whether it is only a part of the device.
  var isPart: Bool { !identifiers.isEmpty }

  /// What a snapshot says that it is of.
  var scope: Scope { isPart ? .apps(identifiers) : .device }

  func has(_ container: Container) -> Bool { !isPart || paths.contains(container.logicalPrefix) }
}
