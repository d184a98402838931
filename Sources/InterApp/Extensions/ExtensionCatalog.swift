internal import Codecs
package import SandboxModel
package import SystemIO

/// The extensions of all installed apps of a device.
package struct ExtensionCatalog: Sendable {
  /// The extensions, by app and identifier.
  package let extensions: [AppExtension]
  /// The extensions whose Info.plist could not be read, with the reasons.
  package let unreadable: [PathRemark]

  /// Creates a catalog.
  package init(extensions: [AppExtension], unreadable: [PathRemark] = []) {
    self.extensions = extensions
    self.unreadable = unreadable
  }

  /// Reads the Info.plist of each extension of a device with bundles. Never fails: an extension
  /// that cannot be read is in `unreadable`.
  package init(reading device: Device) {
    let bundles = Dictionary(
      device.containers.filter { $0.kind == .bundle }.compactMap { container in
        container.owner.map { ($0, container) }
      }, uniquingKeysWith: { first, _ in first })
    let layout = device.layout
    let parts = Workers.results(
      of: device.apps, threads: Host.processors, name: "apps", batch: 16
    ) { app in
      bundles[app.identifier].map { ExtensionCatalog(of: app, in: $0, layout) }
    }.compactMap(\.self)
    self.init(
      extensions: parts.flatMap(\.extensions), unreadable: parts.flatMap(\.unreadable))
  }

  /// Reads the extensions of an app in its bundle container.
  private init(of app: App, in container: Container, _ layout: Layout) {
    var (extensions, unreadable): ([AppExtension], [PathRemark]) = ([], [])
    for item in app.extensions {
      do throws(OperationError) {
        let info = try Self.info(of: item, in: container, layout)
        extensions.append(AppExtension(item, of: app, info: info))
      } catch {
        unreadable.append(
          PathRemark(path: container.path.appending(item.path), remark: error.description))
      }
    }
    self.init(extensions: extensions, unreadable: unreadable)
  }

  private static func info(
    of item: App.Extension, in container: Container, _ layout: Layout
  ) throws(OperationError) -> PropertyList {
    let names = item.path.components + (layout == .macOS ? ["Contents"] : [])
    let file = names.reduce(container.absolutePath) { $0.appending($1) }.appending("Info.plist")
    let bytes = try AppBundle.reporting { () throws(SystemError) in
      var directory = try Directory.open(resolved: container.absolutePath)
      for name in names { directory = try directory.directory(name) }
      return try AppBundle.bytes(of: "Info.plist", in: directory, limit: AppBundle.infoLimit)
    }
    guard let bytes else {
      throw AppBundle.unusable(
        file, "it is not a file of at most \(AppBundle.infoLimit) bytes")
    }
    return try AppBundle.dictionary(bytes, of: file)
  }

  /// The findings about all extensions, sorted by app and position.
  package var findings: [DeclarationFinding] {
    extensions.flatMap(\.findings).sorted {
      ($0.app, $0.key, $0.reason) < ($1.app, $1.key, $1.reason)
    }
  }
}
