/// The way in which a platform lays out its apps' containers below a device's root.
///
/// The rules about what lies in a container are the policies'; a layout only says where containers
/// are and how they are called.
public enum Layout: String, CaseIterable, Sendable, Hashable {
  /// A CoreSimulator device, or the file system of an iOS device.
  case coreSimulator = "coresimulator"
  /// The per-user data of Flatpak apps, `~/.var/app`.
  case flatpak
  /// Any folder, as one container that is kept whole.
  case folder

  /// The kinds of containers that devices of this layout have.
  public var containerKinds: [ContainerKind] {
    switch self {
    case .coreSimulator: [.bundle, .data, .extension, .group]
    case .flatpak: [.data, .settings]
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
  /// A plain folder.
  case folder

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
