internal import Codecs
package import SandboxModel
package import SystemIO

/// The declarations of all installed apps of a device.
package struct AppCatalog: Sendable {
  /// The apps, sorted by identifier.
  package let apps: [AppDeclarations]
  /// The apps whose Info.plist could not be read, with the reasons.
  package let unreadable: [PathRemark]

  /// Creates a catalog.
  package init(apps: [AppDeclarations], unreadable: [PathRemark] = []) {
    self.apps = apps
    self.unreadable = unreadable
  }

  /// Reads the Info.plist of each installed app of a device with bundles. Never fails: an app that
  /// cannot be read is in `unreadable`.
  package init(reading device: Device) {
    var (apps, unreadable): ([AppDeclarations], [PathRemark]) = ([], [])
    let names = Dictionary(
      device.apps.map { ($0.identifier, $0.displayName) }, uniquingKeysWith: { first, _ in first })
    for container in device.containers where container.kind == .bundle {
      guard let app = container.owner, let bundle = AppBundle(container, device.layout) else {
        continue
      }
      do {
        apps.append(try bundle.declarations(of: app, name: names[app] ?? nil))
      } catch {
        unreadable.append(PathRemark(path: container.path, remark: error.description))
      }
    }
    self.init(apps: apps.sorted { $0.app < $1.app }, unreadable: unreadable)
  }

  /// Returns the declarations of an app, or nil if they could not be read.
  package func app(_ identifier: BundleIdentifier) -> AppDeclarations? {
    apps.first { $0.app == identifier }
  }

  /// The types that all apps declare, in the order of the apps.
  package var types: [TypeDeclaration] { apps.flatMap(\.types) }
}
