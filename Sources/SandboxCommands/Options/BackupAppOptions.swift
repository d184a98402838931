internal import ArchiveStore
internal import ArgumentParser
internal import SandboxModel
internal import SystemIO

/// The apps to back up.
struct BackupAppOptions: ParsableArguments {
  @Option(
    name: .customLong("app"),
    help: ArgumentHelp(
      "Back up only this app and the groups it shares: its identifier, the last component "
        + "of it, or its display name; may be repeated.", valueName: "app"))
  var apps: [ByteString] = []

  @Flag(
    help:
      "Read bundles with new UUIDs even if version, names, sizes and times did not change.")
  var verifyBundles = false

  var names: AppNames { AppNames(apps) }

  /// Returns the part of a device to back up.
  ///
  /// - Throws: `ModelError` if the device has none of the apps, or for an ambiguous name.
  func selection(of device: Device) throws -> AppSelection {
    AppSelection(device, try names.apps(of: device))
  }
}

/// The containers of some apps and of the groups they may share; without apps, all containers of a
/// device.
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

  /// The scope to record in the snapshot.
  var scope: Scope { isPart ? .apps(identifiers) : .device }

  func has(_ container: Container) -> Bool { !isPart || paths.contains(container.logicalPrefix) }
}
