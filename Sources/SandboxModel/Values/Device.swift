// A device: a directory laid out as a platform lays out its apps, and what was found in it.
//
// `Device.find(root:layout:)` looks once and gives values: nothing stays open, nothing is changed,
// and what is true may be another thing a moment later. Every directory that is an app's container is
// in `containers`, whether or not anything identifies it: nothing is left out in silence. Each has
// its place (`path` below `root`, `absolutePath` with links followed) and its `logical` name,
// which is unique in the device. `apps` are the identifiers that containers claim, with the facts
// of their bundles. What was odd is in `findings`; what is the system's own in `systemContainers`.
// Not found: files beside containers, and what lies behind links inside them.
public import SystemIO

/// A directory laid out as a platform lays out its apps: its root, layout, apps and containers.
public struct Device: Sendable {
  /// The absolute path without links. For Flatpak it is the directory `.var/app`, also when the home
  /// directory was given.
  public let root: ByteString
  public let layout: Layout
  /// The platform as its own records name it (`iOS`, `watchOS`), nil where nothing tells.
  public let platform: ByteString?
  /// The platform's version (`16.4`), nil where nothing tells.
  public let osVersion: ByteString?
  /// What the device is called by its owner, where the layout keeps a name.
  public let name: ByteString?
  public let identity: DeviceIdentity
  /// Sorted by identifier.
  public internal(set) var apps: [App]
  /// Sorted by logical path.
  public let containers: [Container]
  /// Directories of containers that belong to the system and are left alone, sorted by path.
  public let systemContainers: [SystemContainers]
  /// What was odd on the way, sorted by path.
  public internal(set) var findings: [Finding]
  /// The containers by place and by name.
  let index: ContainerIndex

  init(
    root: ByteString, layout: Layout, facts: DeviceFacts = DeviceFacts(),
    identity: DeviceIdentity, apps: [App], containers: [Container],
    systemContainers: [SystemContainers] = [], findings: [Finding]
  ) {
    self.root = root
    self.layout = layout
    platform = facts.platform
    osVersion = facts.version
    name = facts.name
    self.identity = identity
    self.apps = apps
    self.containers = containers
    self.systemContainers = systemContainers
    self.findings = findings
    index = ContainerIndex(containers, root: root)
  }
}

/// A directory that holds containers of the system's own, which are counted and left alone.
public struct SystemContainers: Hashable, Sendable {
  /// The directory, relative to the device's root: `private/var/containers/Shared/SystemGroup`.
  public let path: ByteString
  /// How many containers lie in it.
  public let count: Int
}

/// What tells this device from others in a repository.
public enum DeviceIdentity: Hashable, Sendable {
  /// The name that the user gave it.
  case named(ByteString)
  /// The identifier in the device's own records (a simulator's UDID).
  case udid(ByteString)
  /// The machine's id, where it has one, the layout, and the absolute path without links.
  case place(machine: ByteString?, Layout, root: ByteString)
}

extension DeviceIdentity: CustomStringConvertible {
  /// The identity in one line, with escapes where it is not printable: `udid:…`, `name:…`,
  /// `place:<machine>:<layout>:<root>`. Different identities have different lines.
  public var description: String {
    switch self {
    case .named(let name): "name:\(name)"
    case .udid(let udid): "udid:\(udid)"
    case .place(let machine, let layout, let root):
      "place:\(machine ?? ""):\(layout.rawValue):\(root)"
    }
  }
}
