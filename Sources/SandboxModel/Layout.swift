/// The layout of a platform's app containers below a device's root.
///
/// Policies define the rules for the content of containers; a layout defines only their locations
/// and names.
public enum Layout: String, CaseIterable, Sendable, Hashable {
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
