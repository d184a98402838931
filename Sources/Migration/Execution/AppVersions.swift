package import AppPackages
internal import DeviceDiscovery
internal import SandboxModel
package import SystemIO

/// The versions of the apps on a side, as far as the platform records them: a Flatpak's deployment,
/// a snap's `snap.yaml`, dpkg's status file, a bundle's property list. Outside packages they are
/// unknown.
package struct AppVersions {
  /// The installed apps, with their versions if known; nil if no record shows which apps are
  /// installed.
  private let apps: [ByteString: AppVersion]?

  /// Reads the records of a side.
  package init(of side: AppPairing.Side) {
    apps =
      switch side.packaging {
      case .host: nil
      case .deb: DebianPackages(ofHome: side.home)?.versions
      case .macOS: BundleMigrations(home: side.home).versions
      case .flatpak, .snap: Self.recorded(on: side)
      }
  }

  private static func recorded(on side: AppPairing.Side) -> [ByteString: AppVersion] {
    guard let directory = side.packaging.deviceDirectory else { return [:] }
    let device = try? Device.find(
      root: side.home.appending(directory), layout: side.packaging.layout)
    // On a new machine no Flatpak has been started yet.
    let known =
      device?.apps
      ?? (side.packaging == .flatpak ? DeviceFinder().flatpaks(inNewHome: side.home) : [])
    return Dictionary(
      known.filter(\.isInstalled).map { ($0.identifier.bytes, version(of: $0, on: side)) },
      uniquingKeysWith: { first, _ in first })
  }

  /// Returns the version of an app. That of a snap often ends with a revision of the packaging, as
  /// that of a Debian package does: `130.0-2`; `1.0-beta1` is a stage before a release.
  private static func version(of app: App, on side: AppPairing.Side) -> AppVersion {
    if side.packaging != .snap { return AppVersion(app) }
    return AppVersion(version: app.version.flatMap(DebianPackages.numbers), build: nil)
  }

  /// The identifiers of the installed apps.
  package var installed: Set<ByteString> { apps.map { Set($0.keys) } ?? [] }

  /// Whether an app is installed. Outside sandboxes an app can have several packages, one of which
  /// suffices. If nothing is recorded, it counts as installed, and so does a table without apps,
  /// which is for an entry of the home.
  package func isInstalled(_ end: MigrationEnd, _ table: MigrationTable?) -> Bool {
    guard let apps, table?.apps.isEmpty != true else { return true }
    return Self.names(of: end, table).contains { apps[$0] != nil }
  }

  /// Returns the version of an app; nil if unknown. If several of its packages are installed, it is
  /// the newest: one of them can use the data.
  package func version(of end: MigrationEnd, _ table: MigrationTable?) -> AppVersion? {
    let versions = Self.names(of: end, table).compactMap { apps?[$0] }
    return versions.max { $0.isEarlier(than: $1) }
  }

  private static func names(of end: MigrationEnd, _ table: MigrationTable?) -> [ByteString] {
    end.packaging == .deb ? (table?.apps[.deb] ?? []) + [end.app] : [end.app]
  }
}
