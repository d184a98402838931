/// The way in which a platform lays out its apps' containers below a device's root.
///
/// The rules about what lies in a container are the policies'; a layout only says where containers
/// are and how they are called.
public enum Layout: String, CaseIterable, Sendable, Hashable {
  /// A CoreSimulator device, or the file system of an iOS device.
  case coreSimulator = "coresimulator"
  /// The per-user data of Flatpak apps, `~/.var/app`.
  case flatpak
  /// A macOS user's home: the containers of its sandboxed apps.
  case macOS = "macos"
  /// The data of a user's snaps, `~/snap`.
  case snap
  /// Any directory, as one container that is kept whole.
  case folder

  /// The kinds of containers that devices of this layout have.
  public var containerKinds: [ContainerKind] {
    switch self {
    case .coreSimulator: [.bundle, .data, .extension, .group]
    case .flatpak: [.data, .settings]
    case .macOS: [.bundle, .data, .extension, .group]
    case .snap: [.data, .revision, .oldRevision, .systemData, .systemRevision]
    case .folder: [.folder]
    }
  }
}

/// What a container is for; the word a policy's `in:` and `containers:` use.
public enum ContainerKind: String, CaseIterable, Sendable, Hashable, Comparable {
  /// The app's own code and resources, as installed.
  case bundle
  /// The app's private data.
  case data
  /// The private data of one of the app's extensions.
  case `extension`
  /// Data that several apps share.
  case group
  /// What the platform keeps about the app outside its data, such as Flatpak's overrides.
  case settings
  /// The data of the revision of a snap that is in use, as the user's.
  case revision
  /// The data of another revision of a snap: what a refresh copied, or kept for going back.
  case oldRevision = "old-revision"
  /// The data that a snap keeps for the whole system, whatever its revision.
  case systemData = "system-data"
  /// The system's data of the revision of a snap that is in use.
  case systemRevision = "system-revision"
  /// A plain directory.
  case folder

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
