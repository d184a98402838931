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

  /// Scans all classes below a base.
  mutating func look(
    below base: [ByteString], of root: borrowing Directory, _ survey: inout Survey
  ) {
    let path = ByteString(joining: base)
    guard case .folder(let directory) = survey.descend(base, from: root, as: "") else { return }
    for top in survey.names(in: directory, as: path) where top != ".DS_Store" {
      let topPath = path.appending(top)
      guard case .folder(let family) = survey.enter(top, in: directory, as: topPath) else {
        continue
      }
      for name in survey.names(in: family, as: topPath) where name != ".DS_Store" {
        let here = topPath.appending(name)
        guard case .folder(let members) = survey.enter(name, in: family, as: here) else {
          continue
        }
        look(in: members, kind: Self.kinds[top.appending(name)], as: here, &survey)
      }
    }
  }

  private mutating func look(
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
        groups: (known + guessed.map { GroupMembership(group: $0, basis: .guessed) })
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
