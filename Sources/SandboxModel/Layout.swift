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
  /// The data of Android apps, `/data/data`.
  case android
  /// The directories of the units of a system's manager, below the system's root.
  case systemd
  /// A plain home directory with the base directories of desktop programs.
  case xdg
  /// Any directory, as one container that is backed up completely.
  case folder

  /// The container kinds in devices with this layout.
  public var containerKinds: [ContainerKind] {
    switch self {
    case .coreSimulator: [.bundle, .data, .extension, .group]
    case .flatpak: [.data, .settings]
    case .macOS: [.bundle, .data, .extension, .group]
    case .snap: [.data, .revision, .oldRevision, .systemData, .systemRevision]
    case .android: [.data]
    case .systemd: [.state, .cache, .logs, .config, .runtime]
    case .xdg: [.config, .data, .state, .cache, .file]
    case .folder: [.folder]
    }
  }

  /// The program that installs and removes the apps, so that this program only reports the effects;
  /// nil if this program does it.
  public var installer: String? {
    switch self {
    case .flatpak, .snap: rawValue
    case .android: "Android"
    case .systemd, .xdg: "the system's package manager"
    case .coreSimulator, .macOS, .folder: nil
    }
  }
}
