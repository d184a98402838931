internal import SandboxModel
internal import SystemIO

/// The apps of a device as a person reads them.
struct AppsText {
  private let device: Device

  init(_ device: Device) { self.device = device }

  func write(_ console: Console) throws {
    try console.result(heading)
    try section(apps, console)
    try section(groups, console)
    try section(orphans, console)
    try section(harbors, console)
    for system in device.systemContainers {
      try console.result("system: \(system.count) containers in \(system.path), left alone")
    }
  }

  private var heading: String {
    var parts = [device.layout.rawValue]
    if let platform = device.platform {
      parts.append(
        [platform, device.osVersion].compactMap { $0?.description }.joined(separator: " "))
    }
    parts.append(Sizes.count(device.apps.count, "app"))
    parts.append(Sizes.count(device.containers.count, "container"))
    let name = device.name.map { "\($0), " } ?? ""
    return "device  \(name)\(Paths.text(device.root)): \(parts.joined(separator: ", "))"
  }

  private func section(_ table: Table, _ console: Console) throws {
    if table.isEmpty { return }
    try console.result("")
    for line in table.lines { try console.result("  " + line) }
  }

  private var apps: Table {
    var table = Table([
      ("app", .left), ("name", .left), ("version", .left), ("containers", .left),
      ("groups", .left),
    ])
    for app in device.apps {
      let version = [app.version, app.build.map { "(\($0))" }.map { ByteString($0) }]
        .compactMap { $0?.description }.joined(separator: " ")
      table.add([
        app.identifier.description, app.displayName?.description ?? "", version,
        containers(of: app), groups(of: app),
      ])
    }
    return table
  }

  /// "bundle, data, 2 extensions"; an app without its bundle says so.
  private func containers(of app: App) -> String {
    let containers = device.containers(of: app)
    var parts = containers.filter { $0.kind != .extension && $0.kind != .oldRevision }.map {
      $0.kind.rawValue + ($0.revision.map { " \($0)" } ?? "")
    }
    for (kind, noun) in [(ContainerKind.extension, "extension"), (.oldRevision, "old revision")] {
      let count = containers.count { $0.kind == kind }
      if count > 0 { parts.append(Sizes.count(count, noun)) }
    }
    if !app.isInstalled { parts.append("not installed") }
    return parts.joined(separator: ", ")
  }

  private func groups(of app: App) -> String {
    app.groups.map { $0.group.description + ($0.isKnown ? "" : " (guessed)") }
      .joined(separator: ", ")
  }

  private var groups: Table {
    var table = Table([("group", .left), ("shared by", .left)])
    for group in device.containers where group.kind == .group {
      let members = device.members(of: group).map {
        $0.app.identifier.description + ($0.basis == .guessed ? " (guessed)" : "")
      }
      table.add([
        ByteString(group.logicalPrefix.components.dropFirst().first?.bytes ?? []).description,
        members.isEmpty ? "nobody known" : members.joined(separator: ", "),
      ])
    }
    return table
  }

  /// Data that waits for its app.
  private var harbors: Table {
    var table = Table([
      ("safe harbor for", .left), ("waits", .left), ("since", .left), ("folder", .left),
    ])
    for harbor in SafeHarbor.all(on: device) {
      table.add([
        harbor.app.description, Sizes.count(harbor.containers.count, "container"),
        Times.text(harbor.since), harbor.path.description,
      ])
    }
    return table
  }

  private var orphans: Table {
    var table = Table([("container without an app", .left), ("kind", .left), ("folder", .left)])
    for container in device.containersWithoutApp {
      table.add([
        container.identifier?.description ?? "unidentified", container.kind.rawValue,
        container.path.description,
      ])
    }
    return table
  }
}
