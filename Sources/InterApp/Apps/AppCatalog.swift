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
    let names = Dictionary(
      device.apps.map { ($0.identifier, $0.displayName) }, uniquingKeysWith: { first, _ in first })
    let layout = device.layout
    let results = Workers.results(
      of: device.containers.filter { $0.kind == .bundle }, threads: Host.processors, name: "apps",
      batch: 16
    ) { Self.declarations(in: $0, layout, names) }
    var (apps, unreadable): ([AppDeclarations], [PathRemark]) = ([], [])
    for result in results {
      switch result {
      case .success(let declarations): apps.append(declarations)
      case .failure(let failure): unreadable.append(failure.remark)
      case nil: break
      }
    }
    self.init(apps: apps.sorted { $0.app < $1.app }, unreadable: unreadable)
  }

  private struct Unreadable: Error {
    let remark: PathRemark
  }

  /// Reads the declarations of the app in a container; nil if it contains no app.
  private static func declarations(
    in container: Container, _ layout: Layout, _ names: [BundleIdentifier: ByteString?]
  ) -> Result<AppDeclarations, Unreadable>? {
    guard let app = container.owner, let bundle = AppBundle(container, layout) else { return nil }
    do {
      return .success(try bundle.declarations(of: app, name: names[app] ?? nil))
    } catch {
      return .failure(
        Unreadable(remark: PathRemark(path: container.path, remark: error.description)))
    }
  }

  /// Returns the declarations of an app, or nil if they could not be read.
  package func app(_ identifier: BundleIdentifier) -> AppDeclarations? {
    apps.first { $0.app == identifier }
  }

  /// The types that all apps declare, in the order of the apps.
  package var types: [TypeDeclaration] { apps.flatMap(\.types) }
}
