/// The layout of a platform's app containers below a device's root.
///
/// Policies define the rules for the content of containers; a layout defines only their locations
/// and names.
package enum Layout: String, CaseIterable, Sendable, Hashable {
  /// A CoreSimulator device, or the file system of an iOS device.
  case coreSimulator = "coresimulator"
  /// The per-user data of Flatpak apps, `~/.var/app`.
  case flatpak
  /// The home directory of a macOS user: the containers of sandboxed apps.
  case macOS = "macos"
  /// The data of a user's snaps, `~/snap`.
  case snap
  /// Any directory, as one container that is backed up as a whole.
  case folder

  /// The container kinds in devices with this layout.
  package var containerKinds: [ContainerKind] {
    switch self {
    case .coreSimulator: [.bundle, .data, .extension, .group]
    case .flatpak: [.data, .settings]
    case .macOS: [.bundle, .data, .extension, .group]
    case .snap: [.data, .revision, .oldRevision, .systemData, .systemRevision]
    case .folder: [.folder]
    }
  }
}

/// The purpose of a container, used in `in:` and `containers:` of policies.
package enum ContainerKind: String, CaseIterable, Sendable, Hashable, Comparable {
  /// The app's own code and resources, as installed.
  case bundle
  /// The app's private data.
  case data
  /// The private data of one of the app's extensions.
  case `extension`
  /// Data that several apps share.
  case group
  /// The platform's data about the app outside its containers, such as Flatpak's overrides.
  case settings
  /// The user's data for the current revision of a snap.
  case revision
  /// The data for another revision of a snap, which a refresh copied or kept for a revert.
  case oldRevision = "old-revision"
  /// The system-wide data of a snap, independent of its revision.
  case systemData = "system-data"
  /// The system-wide data for the current revision of a snap.
  case systemRevision = "system-revision"
  /// A plain directory.
  case folder

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
