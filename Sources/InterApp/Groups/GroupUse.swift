package import SandboxModel
internal import SystemIO

/// A group of apps: its container, if it exists, its members, and the app whose removal removes it.
package struct GroupUse: Sendable {
  /// The identifier, or nil if the container is not identified.
  package let identifier: BundleIdentifier?
  /// The container, or nil if apps declare the group but none has created it.
  package let container: Container?
  /// The members by identifier.
  package let members: [Member]
  package let size: DirectorySize
  /// The app whose removal removes the group, or nil.
  package let removedWith: BundleIdentifier?
  /// The reason why the removal of a single app does not remove it, or nil.
  package let reasonToKeep: String?

  /// An app that belongs to the group.
  package struct Member: Sendable {
    package let app: App
    /// The source of the membership.
    package let basis: App.GroupMembership.Basis
  }

  /// Whether no installed app belongs to the group.
  package var isOrphan: Bool { !members.contains { $0.app.isInstalled } }
}

/// The groups of a device.
package struct GroupList: Sendable {
  /// The groups by identifier, unidentified ones last.
  package let groups: [GroupUse]

  /// Finds the groups of a device and measures their containers.
  ///
  /// - Parameter removesLast: Whether the platform removes a group together with its last known
  ///   member.
  package init(of device: Device, removesLast: Bool) {
    let containers = device.containers.filter { $0.kind == .group }
    var groups = containers.map { container in
      Self.use(
        container.identifier, container, on: device, removesLast: removesLast)
    }
    let present = Set(containers.compactMap(\.identifier))
    let declared = Set(device.apps.flatMap { $0.groups.filter(\.isKnown).map(\.group) })
    for identifier in declared.subtracting(present) {
      groups.append(Self.use(identifier, nil, on: device, removesLast: removesLast))
    }
    self.groups = groups.sorted { left, right in
      guard let first = left.identifier else { return false }
      return right.identifier.map { first < $0 } ?? true
    }
  }

  private static func use(
    _ identifier: BundleIdentifier?, _ container: Container?, on device: Device, removesLast: Bool
  ) -> GroupUse {
    let members = device.apps.compactMap { app in
      identifier.flatMap { wanted in app.groups.first { $0.group == wanted } }
        .map { GroupUse.Member(app: app, basis: $0.basis) }
    }
    let reason = reasonToKeep(members, on: device, removesLast: removesLast)
    return GroupUse(
      identifier: identifier, container: container, members: members,
      size: container.map { DirectorySize(of: $0.absolutePath) } ?? DirectorySize(),
      removedWith: reason == nil ? members.first?.app.identifier : nil, reasonToKeep: reason)
  }

  /// Returns the reason why the removal of an app does not remove a group, or nil if it has exactly
  /// one member, a known one. `uninstall` has the same rule.
  private static func reasonToKeep(
    _ members: [GroupUse.Member], on device: Device, removesLast: Bool
  ) -> String? {
    guard removesLast else { return "the platform keeps groups" }
    guard let only = members.first else { return "no app is known to share it" }
    if members.count > 1 { return "\(members.count) apps may share it" }
    if only.basis == .guessed {
      return "it is not known whether '\(only.app.identifier)' shares it"
    }
    let unknown = device.apps.first { app in
      !app.isInstalled && app.identifier != only.app.identifier
        && app.groups.allSatisfy { !$0.isKnown }
    }
    return unknown.map { "'\($0.identifier)' is not installed and may share it" }
  }

  /// Returns the groups that the removal of an app removes.
  package func removed(with app: BundleIdentifier) -> [GroupUse] {
    groups.filter { $0.removedWith == app }
  }
}
