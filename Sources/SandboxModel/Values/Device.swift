// A device: a directory with the layout of a platform, and the apps and containers found in it.
//
// `Device.find(root:layout:)` reads the device once and returns values. Nothing stays open, nothing
// is changed, and the device can change afterwards. `containers` has every directory that is an
// app's container, including unidentified ones, so none is excluded silently. Each has its location
// (`path` below `root`, `absolutePath` with links resolved) and its `logical` name, which is unique
// in the device. `apps` has the identifiers of the containers, with the data of their bundles.
// Unexpected observations are in `findings`, the system's containers in `systemContainers`. Files
// beside containers and the targets of links inside them are not included.
package import SystemIO

/// A directory with the layout of a platform: its root, layout, apps and containers.
package struct Device: Sendable {
  /// The absolute path without links. For Flatpak it is the directory `.var/app`, even if the home
  /// directory was given.
  package let root: ByteString
  package let layout: Layout
  /// The platform's name in its own records (`iOS`, `watchOS`), or nil if it is unknown.
  package let platform: ByteString?
  /// The platform's version (`16.4`), or nil if it is unknown.
  package let osVersion: ByteString?
  /// The name that the owner gave the device, if the layout stores one.
  package let name: ByteString?
  package let identity: DeviceIdentity
  /// The apps, sorted by identifier.
  package internal(set) var apps: [App]
  /// The containers, sorted by logical path.
  package let containers: [Container]
  /// The directories with containers of the system, which are not used, sorted by path.
  package let systemContainers: [SystemContainers]
  /// The findings, sorted by path.
  package var findings: [Finding]
  /// The containers by path and by name.
  let index: ContainerIndex

  /// Creates a device and the index of its containers.
  package init(
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

/// The data of a device's own records; nil if unknown.
package struct DeviceFacts: Sendable {
  package var platform: ByteString?
  package var version: ByteString?
  package var name: ByteString?
  package var udid: ByteString?

  /// Creates facts.
  package init(
    platform: ByteString? = nil, version: ByteString? = nil, name: ByteString? = nil,
    udid: ByteString? = nil
  ) {
    self.platform = platform
    self.version = version
    self.name = name
    self.udid = udid
  }
}

/// A directory with containers of the system, which are counted and not used.
package struct SystemContainers: Hashable, Sendable {
  /// The directory, relative to the device's root: `private/var/containers/Shared/SystemGroup`.
  package let path: ByteString
  /// The number of containers in it.
  package let count: Int

  /// Creates the value from its parts.
  package init(
    path: ByteString, count: Int
  ) {
    self.path = path
    self.count = count
  }
}

/// The identity of a device in a repository.
package enum DeviceIdentity: Hashable, Sendable {
  /// The name that the user gave it.
  case named(ByteString)
  /// The identifier in the device's own records (a simulator's UDID).
  case udid(ByteString)
  /// The machine ID, if available, the layout, and the absolute path without links.
  case place(machine: ByteString?, Layout, root: ByteString)
}

extension DeviceIdentity: CustomStringConvertible {
  /// The identity as one line, with escapes for unprintable characters: `udid:…`, `name:…`,
  /// `place:<machine>:<layout>:<root>`. Different identities have different lines.
  package var description: String {
    switch self {
    case .named(let name): "name:\(name)"
    case .udid(let udid): "udid:\(udid)"
    case .place(let machine, let layout, let root):
      "place:\(machine ?? ""):\(layout.rawValue):\(root)"
    }
  }
}
