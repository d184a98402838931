internal import AppPackages
package import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
package import SandboxModel
package import SystemIO

/// The target of a migration between devices: a device, or a new bundle for the data of one app.
package struct DeviceMigrationTarget {
  /// The root of the device.
  package let root: ByteString
  /// The layout of the device.
  package let layout: Layout
  /// The bundle to create; nil if the target exists.
  private let bundle: NewAppDataBundle?

  /// Creates the target for a source. Changes nothing.
  ///
  /// - Parameter source: the layout of the source; nil for a snapshot, which `accept` checks.
  /// - Throws: `failed` if the layouts do not have the same containers, or if the directory above a
  ///   bundle does not exist.
  package init(
    at root: ByteString, _ layout: Layout, from source: Layout?
  ) throws(OperationError) {
    if let source, !ContainerPairing.haveSameContainers(source, layout) {
      throw OperationError(
        .failed, code: .layoutMismatch, "migrate",
        reason: "the layouts \(source.rawValue) and \(layout.rawValue) do not have the same "
          + "containers",
        hint: "sandboxctl-migrate(7) has a table of sources and targets; 'sandboxctl export' "
          + "writes other formats")
    }
    (self.root, self.layout) = (root, layout)
    bundle = layout == .coreSimulator ? try NewAppDataBundle(at: root) : nil
  }

  /// Whether the target does not exist yet and has nothing to save.
  package var isNew: Bool { bundle != nil }

  // MARK: - From a device

  /// Pairs the containers of apps with those of the target.
  ///
  /// - Parameter apps: the apps; all of the source if empty.
  /// - Throws: the errors of `ContainerPairing.pairs`, `ModelError` if the target cannot be read,
  ///   and `usage` if a new bundle would get the data of several apps.
  func pairs(of apps: [App], from source: Device) throws -> [ContainerPairing] {
    if let bundle {
      return try ContainerPairing.pairs(
        from: source, of: onlyApp(among: apps, of: source).identifier, to: bundle)
    }
    return try ContainerPairing.pairs(
      from: source, to: device(), apps: Set(apps.map(\.identifier)))
  }

  /// Creates the bundle for the only one of the apps, if the target is a new one, and calls `body`.
  /// A bundle without data is removed if that fails.
  func make<Result>(
    of apps: [App], from source: Device, _ body: () throws -> Result
  ) throws -> Result {
    guard let bundle else { return try body() }
    let app = try onlyApp(among: apps, of: source)
    try bundle.make(of: app.identifier, version: app.version, build: app.build)
    do {
      let result = try body()
      bundle.finish()
      return result
    } catch {
      bundle.removeIfEmpty()
      throw error
    }
  }

  /// Returns the only one of the apps with data.
  private func onlyApp(among apps: [App], of source: Device) throws(OperationError) -> App {
    let apps = apps.isEmpty ? source.apps : apps
    if apps.count == 1, let app = apps.first { return app }
    let names = apps.map(\.identifier.description).joined(separator: ", ")
    throw OperationError(
      .usage, code: .optionRequired,
      "an .xcappdata has the data of one app, and the source has: \(names)",
      hint: "name one with '--app'")
  }

  private func device() throws(ModelError) -> Device { try Device.find(root: root, layout: layout) }

  // MARK: - From a snapshot

  /// Returns a snapshot as one of the target's layout, which has the same containers.
  ///
  /// - Throws: `failed` if the layouts do not, or if the target is a new bundle, which has the data
  ///   of one app: a snapshot can have groups and extensions of it.
  package func accept(_ stored: StoredSnapshot) throws(OperationError) -> StoredSnapshot {
    let name = stored.snapshot.device.layout
    guard let own = Layout(rawValue: name), ContainerPairing.haveSameContainers(own, layout), !isNew
    else {
      let reason =
        isNew
        ? "a snapshot can have groups and extensions of an app, which a bundle has no place for"
        : "the snapshot's layout is \(ByteString(name)), the target's \(layout.rawValue)"
      throw OperationError(
        .failed, code: .layoutMismatch, "migrate", reason: reason,
        hint: "'sandboxctl restore \(stored.id.hex.prefix(8)) --to DIR' writes the data to a plain "
          + "directory")
    }
    var snapshot = stored.snapshot
    snapshot.device.layout = layout.rawValue
    return StoredSnapshot(id: stored.id, snapshot: snapshot, signature: stored.signature)
  }

  /// Refuses data of a newer version of an app than the one that the target has.
  ///
  /// - Parameter apps: the identifiers of the apps to migrate; all of the snapshot if empty.
  package func refuseNewer(_ snapshot: Snapshot, of apps: [String]) throws(OperationError) {
    guard let device = try? device() else { return }
    for record in snapshot.apps where apps.isEmpty || apps.contains(record.identifier) {
      let app = device.apps.first { app in
        app.isInstalled && app.identifier.bytes == ByteString(record.identifier)
      }
      let version = AppVersion(
        version: record.version.map { ByteString($0) }, build: record.build.map { ByteString($0) })
      guard let app, AppVersion(app).isEarlier(than: version) else { continue }
      throw OperationError(
        .failed, code: .downgradeRefused, "migrate", subject: app.identifier,
        reason: "the data is of version \(version.text), the app in the target has version "
          + AppVersion(app).text,
        hint: "update the app first, or add '--allow-downgrade'")
    }
  }
}
