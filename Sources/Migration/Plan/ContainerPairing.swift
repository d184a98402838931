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
    /// The app is installed on the target and has no such container yet.
    case missing
    /// The app is not installed on the target.
    case appMissing
    /// Containers of this kind are not moved: an installation creates them, or the target's layout
    /// does not have them.
    case noHome
  }

  /// Pairs the containers of apps on two devices by their logical names, sorted as in the source.
  ///
  /// A group is paired if a known member of it is among the apps. Nothing is read from the devices.
  ///
  /// - Parameter apps: The identifiers of the apps; all if empty.
  /// - Throws: `usage` if the devices have different layouts or are the same device, and `notFound`
  ///   if the source has none of the apps' containers.
  package static func pairs(
    from source: Device, to target: Device, apps: Set<BundleIdentifier> = []
  ) throws(OperationError) -> [ContainerPairing] {
    try refuse(source, target)
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
    let installed = Set(target.apps.filter(\.isInstalled).map(\.identifier))
    return chosen.map { container in
      ContainerPairing(
        source: container, counterpart: counterpart(of: container, on: target, installed))
    }
  }

  private static func refuse(_ source: Device, _ target: Device) throws(OperationError) {
    if source.layout != target.layout || source.layout == .folder {
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
      return .noHome
    }
    if let present = target.container(container.logical) { return .present(present.absolutePath) }
    guard let owner = container.owner else { return container.kind == .group ? .missing : .noHome }
    return installed.contains(owner) ? .missing : .appMissing
  }
}
