internal import ArgumentParser
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl apps`: lists the apps of a device.
struct AppsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "apps",
      abstract: "List a device's apps and their containers",
      usage: "sandboxctl apps [--root <dir>] [<options>]",
      discussion: """
        Lists each app with its version, containers and groups, the apps that share each group, \
        and containers without an app. Membership in a group is known from entitlements or a \
        policy, or guessed. Without --all, 20 rows of each list are shown, installed apps first. \
        --findings also lists irregularities of the device, by kind.

        \(Examples.text([
          "sandboxctl apps --root device", "sandboxctl apps --root device --json",
        ]))
        """)
  }

  @OptionGroup var device: DeviceOptions

  @OptionGroup var policy: PolicyChoice

  @Flag(
    help: "List irregularities of the device, such as unreadable directories.")
  var findings = false

  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    for (number, choice) in try device.choices().enumerated() {
      let found = try choice.find()
      if number > 0, !output.json { try console.result("") }
      console.warn(ofInterruptedOn: found)
      let compiled = try policy.compileOrBuiltin(for: found.layout, console)
      try show(found.stating(groupsOf: compiled), console)
    }
    return .done
  }

  private func show(_ device: Device, _ console: Console) throws {
    if output.json {
      try console.result(device.json)
    } else {
      try Text(device, listsAll: list.all).write(console)
    }
    let warnings = device.findings.filter { $0.severity == .warning }
    if findings {
      if !output.json { try FindingsText(device.findings, listsAll: list.all).write(console) }
    } else if !output.quiet, !warnings.isEmpty {
      console.note(
        "\(Sizes.count(warnings.count, "irregularity")) of this device: see 'apps --findings'")
    }
  }
}

extension AppsCommand {
  /// The text output of `apps`.
  private struct Text {
    private let device: Device
    private let listsAll: Bool

    init(_ device: Device, listsAll: Bool) { (self.device, self.listsAll) = (device, listsAll) }

    func write(_ console: Console) throws {
      try console.result(heading)
      try section(apps(listedApps), console)
      try section(groups(device.containers.filter { $0.kind == .group }), console)
      try section(orphans(device.containersWithoutApp), console)
      try section(harbors(SafeHarbor.all(on: device)), console)
      for system in device.systemContainers {
        try console.result("system: \(system.count) containers in \(system.path), ignored")
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

    /// The apps, installed ones first unless all are listed.
    private var listedApps: [App] {
      if listsAll || device.apps.count <= ListExcerpt<App>.limit { return device.apps }
      return device.apps.filter(\.isInstalled) + device.apps.filter { !$0.isInstalled }
    }

    private typealias Section = (table: Table, remainder: String?)

    private func section(_ section: Section, _ console: Console) throws {
      if section.table.isEmpty { return }
      try console.result("")
      try console.result(section.table, remainder: section.remainder, indent: "  ")
    }

    private func apps(_ list: [App]) -> Section {
      let excerpt = ListExcerpt(list, all: listsAll)
      var table = Table([
        ("app", .left), ("name", .left), ("version", .left), ("containers", .left),
        ("groups", .left),
      ])
      for app in excerpt.shown {
        let version = [app.version, app.build.map { "(\($0))" }.map { ByteString($0) }]
          .compactMap { $0?.description }.joined(separator: " ")
        table.add([
          app.identifier.description, app.displayName?.description ?? "", version,
          containers(of: app), groups(of: app),
        ])
      }
      return (table, excerpt.remainder)
    }

    /// Returns the containers of an app, for example "bundle, 12 × data, 2 extensions", and "not
    /// installed" for an app without a bundle.
    private func containers(of app: App) -> String {
      let containers = device.containers(of: app)
      let named = containers.filter { $0.kind != .extension && $0.kind != .oldRevision }.map {
        $0.kind.rawValue + ($0.revision.map { " \($0)" } ?? "")
      }
      var parts = Self.counted(named)
      for (kind, noun) in [(ContainerKind.extension, "extension"), (.oldRevision, "old revision")] {
        let count = containers.count { $0.kind == kind }
        if count > 0 { parts.append(Sizes.count(count, noun)) }
      }
      if !app.isInstalled { parts.append("not installed") }
      return parts.joined(separator: ", ")
    }

    /// Returns each distinct text once, with its number of occurrences: "12 × data".
    private static func counted(_ texts: [String]) -> [String] {
      var counts: [String: Int] = [:]
      for text in texts { counts[text, default: 0] += 1 }
      var reported: Set<String> = []
      return texts.filter { reported.insert($0).inserted }.map { text in
        let count = counts[text] ?? 1
        return count == 1 ? text : "\(Sizes.count(count)) × \(text)"
      }
    }

    private func groups(of app: App) -> String {
      app.groups.map { $0.group.description + ($0.isKnown ? "" : " (guessed)") }
        .joined(separator: ", ")
    }

    private func groups(_ list: [Container]) -> Section {
      let excerpt = ListExcerpt(list, all: listsAll)
      var table = Table([("group", .left), ("shared by", .left)])
      for group in excerpt.shown {
        let members = device.members(of: group).map {
          $0.app.identifier.description + ($0.basis == .guessed ? " (guessed)" : "")
        }
        table.add([
          ByteString(group.logicalPrefix.components.dropFirst().first?.bytes ?? []).description,
          members.isEmpty ? "unknown" : members.joined(separator: ", "),
        ])
      }
      return (table, excerpt.remainder)
    }

    /// Returns the table of data that waits for its app.
    private func harbors(_ list: [SafeHarbor]) -> Section {
      let excerpt = ListExcerpt(list, all: listsAll)
      var table = Table([
        ("safe harbor for", .left), ("holds", .left), ("since", .left), ("directory", .left),
      ])
      for harbor in excerpt.shown {
        table.add([
          harbor.app.description, Sizes.count(harbor.containers.count, "container"),
          Times.text(harbor.since), harbor.path.description,
        ])
      }
      return (table, excerpt.remainder)
    }

    private func orphans(_ list: [Container]) -> Section {
      let excerpt = ListExcerpt(list, all: listsAll)
      var table = Table([
        ("container without an app", .left), ("kind", .left), ("directory", .left),
      ])
      for container in excerpt.shown {
        table.add([
          container.identifier?.description ?? "unidentified", container.kind.rawValue,
          container.path.description,
        ])
      }
      return (table, excerpt.remainder)
    }
  }

  /// The text output of the findings on a device: by kind, with counts, kinds with warnings first.
  private struct FindingsText {
    private let kinds: [(code: Finding.Code, findings: [Finding])]
    private let listsAll: Bool

    init(_ findings: [Finding], listsAll: Bool) {
      self.listsAll = listsAll
      kinds = Dictionary(grouping: findings, by: \.code).map { ($0, $1.sorted()) }.sorted {
        (Self.rank($0.findings), $1.findings.count, $0.code.rawValue)
          < (Self.rank($1.findings), $0.findings.count, $1.code.rawValue)
      }
    }

    /// Returns 0 if there is a warning among the findings, otherwise 1.
    private static func rank(_ findings: [Finding]) -> Int {
      findings.contains { $0.severity == .warning } ? 0 : 1
    }

    func write(_ console: Console) throws {
      for (code, findings) in kinds {
        let severity = Self.rank(findings) == 0 ? "warning" : "note"
        try console.result("")
        try console.result("  \(code.rawValue): \(Sizes.count(findings.count)) (\(severity))")
        let excerpt = ListExcerpt(findings, all: listsAll)
        for finding in excerpt.shown {
          try console.result("    \(finding.path): \(finding.reason)")
        }
        if let remainder = excerpt.remainder { try console.result("    " + remainder) }
      }
    }
  }
}
