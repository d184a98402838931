package import SandboxModel
package import SystemIO

/// A container of the source with its counterpart on the target: migration between two devices of
/// one family, which have the same logical paths.
package struct ContainerPairing: Sendable, Hashable {
  /// The container in the source.
  package let source: Container
  /// Its counterpart.
  package let counterpart: Counterpart

  /// The counterpart of a container.
  package enum Counterpart: Sendable, Hashable {
    /// The target has a container with the same logical name, at this absolute path.
    case present(ByteString)
    /// The target has no such container yet, and it can be created: its app is installed, or macOS
    /// names it after the app.
    case missing
    /// The app is not installed on the target.
    case appMissing
    /// Containers of this kind are not moved: an installation creates them, or the target's layout
    /// does not have them.
    case noPlace
  }

  /// Pairs the containers of apps on two devices by their logical names, sorted as in the source.
  ///
  /// A group is paired if a known member of it is among the apps. Nothing is read from the devices.
  ///
  /// - Parameter apps: The identifiers of the apps; all if empty.
  /// - Throws: `usage` if the devices have different layouts or are the same device, and `notFound`
  ///   if the source has none of the apps' containers, or the target is a bundle with the data of
  ///   another app.
  package static func pairs(
    from source: Device, to target: Device, apps: Set<BundleIdentifier> = []
  ) throws(OperationError) -> [ContainerPairing] {
    try refuse(source, target)
    let chosen = try containers(of: source, apps: apps)
    let installed = Set(target.apps.filter(\.isInstalled).map(\.identifier))
    let isBundle = NewAppDataBundle.isBundle(target)
    let pairs = chosen.map { container in
      let found = counterpart(of: container, on: target, installed)
      // A bundle has the data of one app, and nothing can be created in it.
      let isPlaced = if case .present = found { true } else { !isBundle }
      return ContainerPairing(source: container, counterpart: isPlaced ? found : .noPlace)
    }
    guard !isBundle || pairs.contains(where: { $0.counterpart != .noPlace }) else {
      throw OperationError(
        .notFound, code: .noApp, "migrate to", subject: target.root,
        reason: "it has the data of "
          + (target.apps.first.map { "'\($0.identifier)'" } ?? "another app"),
        hint: "name a bundle that does not exist yet")
    }
    return pairs
  }

  /// Pairs the containers of an app with a bundle to create: only its data has a place in it.
  ///
  /// - Throws: `notFound` if the source has no data of the app.
  package static func pairs(
    from source: Device, of app: BundleIdentifier, to bundle: NewAppDataBundle
  ) throws(OperationError) -> [ContainerPairing] {
    let pairs = try containers(of: source, apps: [app]).map { container in
      let isData = container.logical == .data(LogicalName(app.bytes))
      return ContainerPairing(
        source: container, counterpart: isData ? .present(bundle.data) : .noPlace)
    }
    guard pairs.contains(where: { $0.counterpart != .noPlace }) else {
      throw OperationError(
        .notFound, code: .noApp, "migrate", subject: app,
        reason: "'\(source.root)' has no data of it",
        hint: "'sandboxctl apps' lists the apps of a device")
    }
    return pairs
  }

  /// Returns the containers of apps, and the groups of which they are known members.
  private static func containers(
    of source: Device, apps: Set<BundleIdentifier>
  ) throws(OperationError) -> [Container] {
    let groups = Set(
      source.apps.filter { apps.contains($0.identifier) }.flatMap(\.groups).filter(\.isKnown)
        .map(\.group))
    let chosen = source.containers.filter { container in
      apps.isEmpty || container.owner.map(apps.contains) ?? false
        || container.kind == .group && container.identifier.map(groups.contains) ?? false
    }
    guard !chosen.isEmpty else {
      throw OperationError(
        .notFound, code: .noApp, "migrate", reason: "the source has no data of the requested apps",
        hint: "'sandboxctl apps' lists the apps of a device")
    }
    return chosen
  }

  /// Whether devices of two layouts have the same containers: those of one layout and, since an
  /// app's data has the same directories there (File System Programming Guide), of iOS and macOS.
  package static func haveSameContainers(_ one: Layout, _ other: Layout) -> Bool {
    let apple: Set<Layout> = [.coreSimulator, .macOS]
    return one != .folder && (one == other || apple.isSuperset(of: [one, other]))
  }

  private static func refuse(_ source: Device, _ target: Device) throws(OperationError) {
    if !haveSameContainers(source.layout, target.layout) {
      throw OperationError(
        .usage, "migrate",
        reason: "the layouts \(source.layout.rawValue) and \(target.layout.rawValue) do not have "
          + "the same containers",
        hint: "'sandboxctl restore SNAP --to DIR' writes the data to a plain directory")
    }
    if source.root == target.root {
      throw OperationError(
        .usage, "migrate", subject: source.root, reason: "it is the source and the target")
    }
  }

  private static func counterpart(
    of container: Container, on target: Device, _ installed: Set<BundleIdentifier>
  ) -> Counterpart {
    guard container.kind != .bundle, target.layout.containerKinds.contains(container.kind) else {
      return .noPlace
    }
    if let present = target.container(container.logical) { return .present(present.absolutePath) }
    guard let owner = container.owner else { return container.kind == .group ? .missing : .noPlace }
    // macOS names containers after their apps, so that they can be created before an installation.
    return installed.contains(owner) || target.layout == .macOS ? .missing : .appMissing
  }
}
