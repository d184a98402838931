// A device: a directory with the layout of a platform, and the apps and containers found in it.
//
// `Device.find(root:layout:)` reads the device once and returns values. Nothing stays open, nothing
// is changed, and the device can change afterwards. `containers` has every directory that is an
// app's container, including unidentified ones, so none is excluded silently. Each has its location
// (`path` below `root`, `absolutePath` with links resolved) and its `logical` name, which is unique
// in the device. `apps` has the identifiers of the containers, with the data of their bundles.
// Unexpected observations are in `findings`, the system's containers in `systemContainers`. Files
// beside containers and the targets of links inside them are not included.
public import SystemIO

/// A directory with the layout of a platform: its root, layout, apps and containers.
public struct Device: Sendable {
  /// The absolute path without links. For Flatpak it is the directory `.var/app`, even if the home
  /// directory was given.
  public let root: ByteString
  public let layout: Layout
  /// The platform's name in its own records (`iOS`, `watchOS`), or nil if it is unknown.
  public let platform: ByteString?
  /// The platform's version (`16.4`), or nil if it is unknown.
  public let osVersion: ByteString?
  /// The name that the owner gave the device, if the layout stores one.
  public let name: ByteString?
  public let identity: Identity
  /// The apps, sorted by identifier.
  public internal(set) var apps: [App]
  /// The containers, sorted by logical path.
  public let containers: [Container]
  /// The directories with containers of the system, which are not used, sorted by path.
  public let systemContainers: [SystemContainers]
  /// The findings, sorted by path.
  public var findings: [Finding]
  /// The containers by path and by name.
  let index: ContainerIndex

  /// Creates a device and the index of its containers.
  public init(
    root: ByteString, layout: Layout, facts: Facts = Facts(),
    identity: Identity, apps: [App], containers: [Container],
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

extension Device {
  /// The data of a device's own records; nil if unknown.
  public struct Facts: Sendable {
    public var platform: ByteString?
    public var version: ByteString?
    public var name: ByteString?
    public var udid: ByteString?

    /// Creates facts.
    public init(
      platform: ByteString? = nil, version: ByteString? = nil, name: ByteString? = nil,
      udid: ByteString? = nil
    ) {
      self.platform = platform
      self.version = version
      self.name = name
      self.udid = udid
    }
  }

  /// The identity of a device in a repository.
  public enum Identity: Hashable, Sendable {
    /// The name that the user gave it.
    case named(ByteString)
    /// The identifier in the device's own records (a simulator's UDID).
    case udid(ByteString)
    /// The machine ID, if available, the layout, and the absolute path without links.
    case location(machine: ByteString?, Layout, root: ByteString)
  }

  /// A directory with containers of the system, which are counted and not used.
  public struct SystemContainers: Hashable, Sendable {
    /// The directory, relative to the device's root: `private/var/containers/Shared/SystemGroup`.
    public let path: ByteString
    /// The number of containers in it.
    public let count: Int

    /// Creates a count.
    public init(path: ByteString, count: Int) {
      self.path = path
      self.count = count
    }
  }
}

extension Device.Identity: CustomStringConvertible {
  /// The identity as one line, with escapes for unprintable characters: `udid:…`, `name:…`,
  /// `place:<machine>:<layout>:<root>`. Different identities have different lines.
  public var description: String {
    switch self {
    case .named(let name): "name:\(name)"
    case .udid(let udid): "udid:\(udid)"
    case .location(let machine, let layout, let root):
      "place:\(machine ?? ""):\(layout.rawValue):\(root)"
    }
  }
}

// MARK: - Apps and groups

extension Device {
  /// Returns the containers of an app without shared groups, sorted by logical path.
  public func containers(of app: App) -> [Container] {
    containers.filter { $0.owner == app.identifier }
  }

  /// Returns the group containers that an app may use, both known and guessed.
  public func groups(of app: App) -> [(container: Container, basis: App.GroupMembership.Basis)] {
    containers.compactMap { container in
      guard container.kind == .group,
        let found = app.groups.first(where: { $0.group == container.identifier })
      else { return nil }
      return (container, found.basis)
    }
  }

  /// Returns the apps that belong to a group's container, with the source of each membership.
  public func members(of group: Container) -> [(app: App, basis: App.GroupMembership.Basis)] {
    apps.compactMap { app in
      guard let found = app.groups.first(where: { $0.group == group.identifier }) else {
        return nil
      }
      return (app, found.basis)
    }
  }

  /// The containers without a known app, except groups and directories.
  public var containersWithoutApp: [Container] {
    containers.filter { $0.owner == nil && $0.kind != .group && $0.kind != .folder }
  }

  /// Returns the container with a logical name, or nil if this device has none.
  public func container(_ logical: LogicalContainer) -> Container? {
    index.number(of: logical).map { containers[$0] }
  }

  /// Returns the device with the given members of groups, by identifier. Memberships from
  /// entitlements remain; guesses about the given groups are removed.
  public func stating(members: [ByteString: Set<ByteString>]) -> Device {
    var device = self
    for index in apps.indices { device.apps[index] = apps[index].stating(members) }
    return device
  }

  /// Returns the device with the given members of groups, as a policy lists them.
  public func stating(groups: [String: [String]]) -> Device {
    let members = groups.map { group, apps in
      (ByteString(group), Set(apps.map { ByteString($0) }))
    }
    return stating(members: Dictionary(uniqueKeysWithValues: members))
  }

  /// Returns the app with an identifier, or the only app whose identifier, last identifier
  /// component or display name matches, ignoring case.
  ///
  /// - Throws: `noApp` if there is none, `ambiguousApp` with the candidates if there are several.
  public func app(_ name: ByteString) throws(ModelError) -> App {
    if let app = apps.first(where: { $0.identifier.bytes == name }) { return app }
    let wanted = name.folded
    let candidates = apps.filter { app in
      app.identifier.bytes.folded == wanted
        || app.identifier.lastComponent.folded == wanted
        || layout == .systemd && app.identifier.bytes.folded == wanted.concatenating(".service")
        || app.displayName.map { $0.folded == wanted } ?? false
    }
    guard let app = candidates.first else {
      throw ModelError(
        .noApp, "find the app", on: name, reason: "this device has no such app",
        hint: "'sandboxctl apps' lists the apps")
    }
    if candidates.count > 1 {
      let names = candidates.map(\.identifier.description).joined(separator: ", ")
      throw ModelError(
        .ambiguousApp, "find the app", on: name, reason: "several apps match: \(names)",
        hint: "specify the full identifier")
    }
    return app
  }
}

// MARK: - Paths

extension Device {
  /// Returns the container of a logical path and the path in it.
  ///
  /// - Throws: `logicalPath` if the path does not name a container, or this device does not have
  ///   it, or the path leads to an entry of its directory that belongs to another container.
  public func resolve(
    _ path: LogicalPath
  ) throws(ModelError) -> (container: Container, inner: ByteString) {
    guard let (logical, inner) = path.location else {
      throw ModelError(
        .logicalPath, "find", on: path.bytes, reason: "it does not name a container",
        hint: "write it as 'apps/com.example.app/data/Documents'")
    }
    guard let container = container(logical), inner.isEmpty || container.has(inner) else {
      throw ModelError(
        .logicalPath, "find", on: path.bytes, reason: "this device has no such container",
        hint: "'sandboxctl apps' lists the containers")
    }
    return (container, inner)
  }

  /// Returns the real path of a logical path, whether or not it exists.
  ///
  /// - Throws: The errors of `resolve(_:)`.
  public func realPath(of path: LogicalPath) throws(ModelError) -> ByteString {
    let (container, inner) = try resolve(path)
    return container.absolutePath.appending(inner)
  }

  /// Returns the logical path of an absolute path, or nil if it is in no container. Links above
  /// containers may be resolved or not.
  ///
  /// - Throws: `logicalPath` for a path in a container that contains `.`, `..` or a NUL.
  public func logicalPath(ofPath path: ByteString) throws(ModelError) -> LogicalPath? {
    for (number, inner) in index.containers(around: path) where containers[number].has(inner) {
      return try LogicalPath(containers[number].logical, inner)
    }
    return nil
  }

  /// Finds the containers of a device by directory and by logical name. The cost of mapping a path
  /// depends on its length and not on the number of containers.
  struct ContainerIndex: Sendable {
    /// The indexes of the containers by the absolute paths of their directories, both real and as
    /// named by the layout.
    private var homes: [ByteString: [Int]] = [:]
    private var names: [LogicalContainer: Int] = [:]

    init(_ containers: [Container], root: ByteString) {
      for (number, container) in containers.enumerated() {
        names[container.logical] = number
        let named = container.path.isAbsolute ? container.path : root.appending(container.path)
        for home in Set([container.absolutePath, named]) { homes[home, default: []].append(number) }
      }
    }

    /// Returns the index of the container with a logical name.
    func number(of name: LogicalContainer) -> Int? { names[name] }

    /// Returns the containers at the path or above it, the nearest first, with the rest of the
    /// path.
    func containers(around path: ByteString) -> [(number: Int, inner: ByteString)] {
      let parts = path.components
      return stride(from: parts.count, through: 0, by: -1).flatMap { length in
        let above = ByteString(joining: parts[..<length])
        let home = path.isAbsolute ? ByteString("/").appending(above) : above
        return (homes[home] ?? []).map { ($0, ByteString(joining: parts[length...])) }
      }
    }
  }
}

extension App {
  fileprivate func stating(_ members: [ByteString: Set<ByteString>]) -> App {
    var app = self
    app.groups.removeAll { $0.basis == .guessed && members[$0.group.bytes] != nil }
    for (group, apps) in members where apps.contains(identifier.bytes) {
      guard let group = BundleIdentifier(group), !app.groups.contains(where: { $0.group == group })
      else { continue }
      app.groups.append(App.GroupMembership(group: group, basis: .stated))
    }
    app.groups.sort { $0.group < $1.group }
    return app
  }
}

extension ByteString {
  /// The name in lower case: in Unicode if it is valid UTF-8, otherwise for ASCII letters.
  public var folded: ByteString {
    if let text = utf8 { return ByteString(text.lowercased()) }
    return ByteString(
      bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 })
  }
}
