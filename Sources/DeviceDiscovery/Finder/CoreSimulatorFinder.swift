internal import SandboxModel
internal import SystemIO

/// Finds the containers of a CoreSimulator device or of an iOS device's file system.
///
/// Below the bases (`Containers` of a simulator's data; `mobile/Containers` and `containers` of a
/// device's `/private/var`), containers are grouped by class: `Bundle/Application`,
/// `Data/Application`, `Data/PluginKitPlugin`, `Data/VPNPlugin`, `Shared/AppGroup`. All other
/// classes (`Data/System`, `Shared/SystemGroup`, …) belong to the system and are only counted.
struct CoreSimulatorFinder {
  private static let kinds: [ByteString: ContainerKind] = [
    "Bundle/Application": .bundle, "Data/Application": .data, "Data/PluginKitPlugin": .extension,
    "Data/VPNPlugin": .extension, "Shared/AppGroup": .group,
  ]

  private(set) var drafts: [ContainerDraft] = []
  private(set) var system: [Device.SystemContainers] = []
  /// The facts in the list of an `.xcappdata` bundle.
  var appDataFacts: BundleInfo?

  /// Adds a container.
  mutating func add(_ draft: ContainerDraft) { drafts.append(draft) }

  /// Scans all classes below a base.
  mutating func search(
    below base: [ByteString], of root: borrowing Directory, _ survey: inout Survey
  ) {
    let path = ByteString(joining: base)
    guard case .directory(let directory) = survey.descend(base, from: root, as: "") else { return }
    for top in survey.names(in: directory, as: path) where top != ".DS_Store" {
      let topPath = path.appending(top)
      guard case .directory(let family) = survey.enter(top, in: directory, as: topPath) else {
        continue
      }
      for name in survey.names(in: family, as: topPath) where name != ".DS_Store" {
        let here = topPath.appending(name)
        guard case .directory(let members) = survey.enter(name, in: family, as: here) else {
          continue
        }
        search(in: members, kind: Self.kinds[top.appending(name)], as: here, &survey)
      }
    }
  }

  private mutating func search(
    in directory: borrowing Directory, kind: ContainerKind?, as path: ByteString,
    _ survey: inout Survey
  ) {
    let names = survey.names(in: directory, as: path).filter { $0 != ".DS_Store" }
    guard let kind else {
      let count = names.count {
        survey.kind(of: $0, in: directory, as: path.appending($0)) == .directory
      }
      return system.append(Device.SystemContainers(path: path, count: count))
    }
    for name in names where !OwnNames.has(name) {
      if let draft = survey.container(kind, name, in: directory, as: path.appending(name)) {
        drafts.append(draft)
      }
    }
  }
}

// MARK: - Apps

extension CoreSimulatorFinder {
  /// Returns the apps of identified containers, with the data of their bundles and their groups.
  static func apps(of drafts: [ContainerDraft], _ containers: [Container]) -> [App] {
    var bundles: [BundleIdentifier: BundleFacts] = [:]
    let facts = Dictionary(
      drafts.compactMap { draft in
        draft.bundle.map { (draft.path.appending($0.directory), $0) }
      }, uniquingKeysWith: { $1 })
    for container in containers where container.kind == .bundle {
      guard let owner = container.owner, let directory = container.bundleDirectory,
        let fact = facts[container.path.appending(directory)]
      else { continue }
      if bundles[owner] == nil || container.logical == .bundle(LogicalName(owner.bytes)) {
        bundles[owner] = fact
      }
    }
    let installed = Set(containers.filter { $0.kind == .bundle }.compactMap(\.owner))
    let identifiers = Set(containers.compactMap(\.owner)).sorted()
    let guesses = guesses(
      for: containers, among: identifiers.filter { bundles[$0]?.hasKnownGroups != true })
    return identifiers.map { identifier in
      let bundle = bundles[identifier]
      let known = bundle?.groups ?? []
      let guessed = (guesses[identifier] ?? []).filter { group in
        !known.contains { $0.group == group }
      }
      return App(
        identifier, isInstalled: installed.contains(identifier), info: bundle?.info,
        extensions: bundle?.extensions ?? [],
        groups: (known + guessed.map { App.GroupMembership(group: $0, basis: .guessed) })
          .sorted { $0.group < $1.group })
    }
  }

  private static func guesses(
    for containers: [Container], among apps: [BundleIdentifier]
  ) -> [BundleIdentifier: [BundleIdentifier]] {
    var guesses: [BundleIdentifier: [BundleIdentifier]] = [:]
    let groups = Set(containers.filter { $0.kind == .group }.compactMap(\.identifier))
    for group in groups.sorted() {
      for app in GroupGuess.members(of: group, among: apps) {
        guesses[app, default: []].append(group)
      }
    }
    return guesses
  }
}

// MARK: - The device

extension CoreSimulatorFinder {
  /// Scans a device with the layout coresimulator.
  static func device(
    in root: borrowing Directory, _ form: DeviceFinder.SimulatorForm, for asked: DeviceFinder
  ) -> Device {
    var survey = Survey(root: root.path)
    let facts = facts(of: root, form, &survey)
    var finder = CoreSimulatorFinder()
    for base in bases(of: form) { finder.search(below: base, of: root, &survey) }
    if form == .appData { finder.searchAppData(in: root, &survey) }
    if form == .fileSystem, (try? root.statusFollowing("private/var/mobile/Applications")) != nil {
      survey.warn(
        .unsupported, at: "private/var/mobile/Applications",
        because: "containers of iOS 7 and earlier are not supported")
    }
    var drafts = finder.drafts
    Identification.identify(&drafts, &survey)
    let containers = LogicalNaming.containers(of: drafts, &survey)
    return Device(
      root: root.path, layout: .coreSimulator, facts: facts,
      identity: asked.identity(.coreSimulator, root.path, udid: facts.udid),
      apps: finder.stating(apps(of: drafts, containers)), containers: containers,
      systemContainers: finder.system.sorted { $0.path < $1.path },
      findings: survey.findings.sorted())
  }

  private static func bases(of form: DeviceFinder.SimulatorForm) -> [[ByteString]] {
    switch form {
    case .device: [["data", "Containers"]]
    case .data: [["Containers"]]
    case .fileSystem:
      [["private", "var", "mobile", "Containers"], ["private", "var", "containers"]]
    case .appData: []
    }
  }

  /// Reads `device.plist` of a simulator or `SystemVersion.plist` of a device.
  static func facts(
    of root: borrowing Directory, _ form: DeviceFinder.SimulatorForm, _ survey: inout Survey
  ) -> Device.Facts {
    switch form {
    case .device: return devicePropertyList(in: root, as: "device.plist", &survey)
    case .data:
      // The record is beside the data directory, outside the root, and may be missing.
      let parts = root.path.components
      guard parts.last == "data", let above = survey.outside(root.path.parent) else {
        return Device.Facts()
      }
      return devicePropertyList(in: above, as: above.path.appending("device.plist"), &survey)
    case .fileSystem: return systemVersion(in: root, &survey)
    case .appData: return Device.Facts()
    }
  }

  private static func devicePropertyList(
    in directory: borrowing Directory, as path: ByteString, _ survey: inout Survey
  ) -> Device.Facts {
    var facts = Device.Facts()
    guard let list = survey.dictionary("device.plist", in: directory, as: path) else {
      return facts
    }
    facts.udid = survey.string("UDID", of: list, as: path)
    facts.name = survey.string("name", of: list, as: path)
    guard let runtime = survey.string("runtime", of: list, as: path) else { return facts }
    // com.apple.CoreSimulator.SimRuntime.iOS-16-4
    let last = runtime.bytes.split(separator: UInt8(ascii: ".")).last ?? []
    let parts = last.split(separator: UInt8(ascii: "-"))
    let isNumbered = parts.dropFirst().allSatisfy { $0.allSatisfy { (0x30...0x39).contains($0) } }
    guard let platform = parts.first, parts.count > 1, isNumbered else {
      survey.warn(
        .wrongValue, at: path,
        because: "its runtime '\(runtime)' does not name a platform and a version")
      return facts
    }
    facts.platform = ByteString(platform)
    facts.version = ByteString(parts.dropFirst().joined(separator: [UInt8(ascii: ".")]))
    return facts
  }

  /// Reads `SystemVersion.plist` of a device or a Mac.
  static func systemVersion(
    in root: borrowing Directory, _ survey: inout Survey
  ) -> Device.Facts {
    var facts = Device.Facts()
    let components: [ByteString] = ["System", "Library", "CoreServices"]
    let path: ByteString = "System/Library/CoreServices/SystemVersion.plist"
    guard let directory = survey.inner(components, of: root, as: ""),
      let list = survey.dictionary("SystemVersion.plist", in: directory, as: path)
    else { return facts }
    facts.version = survey.string("ProductVersion", of: list, as: path)
    let product = survey.string("ProductName", of: list, as: path)
    facts.platform = product == "iPhone OS" ? "iOS" : product
    return facts
  }
}
