internal import SandboxModel
internal import SystemIO

/// Finds the containers of a macOS user's sandboxed apps: `Library/Containers/<id>/Data` and
/// `Library/Group Containers/<id>` in the home directory, and the bundles of these apps.
///
/// Containers are identified by their metadata or, without it, by their directory names. A bundle
/// is included only if the app or one of its extensions has a container; other programs are not
/// sandboxed.
struct MacOSFinder {
  private static let dataDirectory: ByteString = "Data"
  private static let containers: ByteString = "Library/Containers"
  private static let groups: ByteString = "Library/Group Containers"

  private(set) var drafts: [ContainerDraft] = []

  /// Scans the containers of a home directory.
  mutating func searchContainers(in home: borrowing Directory, _ survey: inout Survey) {
    guard
      case .directory(let directory) = survey.descend(
        Self.containers.components, from: home, as: "")
    else { return }
    for name in survey.names(in: directory, as: Self.containers) where name != ".DS_Store" {
      search(atContainer: name, in: directory, as: Self.containers.appending(name), &survey)
    }
  }

  private mutating func search(
    atContainer name: ByteString, in directory: borrowing Directory, as path: ByteString,
    _ survey: inout Survey
  ) {
    let data = path.appending(Self.dataDirectory)
    switch survey.enter(name, in: directory, as: path) {
    case .none: break
    case .closed:
      var draft = ContainerDraft(
        kind: .data, path: data,
        absolutePath: directory.path.appending(name).appending(Self.dataDirectory), uuid: name,
        isReadable: false)
      draft.named = Self.identifier(ofDirectory: name)
      drafts.append(draft)
    case .directory(let container):
      let metadata = metadata(in: container, name, as: path, of: nil, &survey)
      guard var draft = survey.opened(.data, Self.dataDirectory, in: container, as: data) else {
        return survey.record(
          .orphan, at: path, because: "it has no directory 'Data' and is excluded")
      }
      draft.uuid = name
      draft.metadata = metadata
      draft.named = Self.identifier(ofDirectory: name)
      drafts.append(draft)
    }
  }

  /// Scans the containers that apps share.
  mutating func searchGroups(in home: borrowing Directory, _ survey: inout Survey) {
    guard
      case .directory(let directory) = survey.descend(Self.groups.components, from: home, as: "")
    else { return }
    for name in survey.names(in: directory, as: Self.groups) where name != ".DS_Store" {
      let path = Self.groups.appending(name)
      guard var draft = survey.opened(.group, name, in: directory, as: path) else { continue }
      draft.named = Self.identifier(ofDirectory: name)
      if let container = try? Directory.open(resolved: draft.absolutePath) {
        let metadata = metadata(in: container, name, as: path, of: .group, &survey)
        // The apps of the group can write this file, but cannot choose the name of its directory.
        if draft.named == nil { draft.metadata = metadata }
      }
      drafts.append(draft)
    }
  }

  private func metadata(
    in container: borrowing Directory, _ name: ByteString, as path: ByteString,
    of kind: ContainerKind?, _ survey: inout Survey
  ) -> ContainerMetadata? {
    let metadata = survey.metadata(
      ContainerMetadata.desktopFile, of: kind, in: container, as: path)
    if let declared = metadata?.identifier, let named = Self.identifier(ofDirectory: name),
      declared != named
    {
      let holder = kind == .group ? "the directory" : "the metadata"
      survey.warn(
        .contradiction, at: path,
        because:
          "its metadata names '\(declared)', unlike its directory; \(holder) takes precedence")
    }
    return metadata
  }

  /// Returns the identifier that is a directory's name, or nil for a UUID.
  private static func identifier(ofDirectory name: ByteString) -> BundleIdentifier? {
    let lengths = name.bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
      .map(\.count)
    return lengths == [8, 4, 4, 4, 12] ? nil : BundleIdentifier(name)
  }
}

// MARK: - Bundles

extension MacOSFinder {
  /// Scans a directory of apps. Called after the containers are scanned, to mark the containers of
  /// extensions.
  mutating func searchBundles(
    in applications: borrowing Directory, as path: ByteString, _ survey: inout Survey
  ) {
    let wanted = Set(drafts.compactMap { $0.metadata?.identifier ?? $0.named })
    for name in survey.directories(ending: ".app", in: applications, as: path) {
      let here = path.appending(name)
      guard let directory = survey.child(name, of: applications, as: here),
        let contents = survey.child(BundleShape.contentsDirectory, of: directory, as: here),
        let identifier = survey.bundleInfo(
          in: contents, as: here.appending(BundleShape.contentsDirectory))?.identifier,
        wanted.contains(where: { $0 == identifier || identifier.isPrefix(of: $0) })
      else { continue }
      var draft = ContainerDraft(
        kind: .bundle, path: path, absolutePath: applications.path, uuid: name)
      draft.member = name
      draft.bundle = survey.facts(of: directory, named: name, as: here, .contents)
      drafts.append(draft)
    }
    let extensions = Set(drafts.flatMap { $0.bundle?.extensions ?? [] }.map(\.identifier))
    for index in drafts.indices where drafts[index].kind == .data {
      if let identifier = drafts[index].metadata?.identifier ?? drafts[index].named,
        extensions.contains(identifier)
      {
        drafts[index].kind = .extension
      }
    }
  }
}

// MARK: - The device

extension MacOSFinder {
  /// Scans the home directory of a macOS user.
  static func device(in home: borrowing Directory, for asked: DeviceFinder) -> Device {
    var survey = Survey(root: home.path)
    var finder = MacOSFinder()
    finder.searchContainers(in: home, &survey)
    finder.searchGroups(in: home, &survey)
    if case .directory(let directory) = survey.enter("Applications", in: home, as: "Applications") {
      finder.searchBundles(in: directory, as: "Applications", &survey)
    }
    var facts = Device.Facts(platform: "macOS")
    if let system = asked.system(ofHome: home.path, below: "Users") {
      let path = system.appending("Applications")
      if system != home.path, let directory = survey.outside(path) {
        finder.searchBundles(in: directory, as: path, &survey)
      }
      if let root = survey.outside(system) {
        facts.version = CoreSimulatorFinder.systemVersion(in: root, &survey).version
      }
    }
    var drafts = finder.drafts
    Identification.identify(&drafts, &survey)
    let containers = LogicalNaming.containers(of: drafts, &survey)
    return Device(
      root: home.path, layout: .macOS, facts: facts, identity: asked.identity(.macOS, home.path),
      apps: CoreSimulatorFinder.apps(of: drafts, containers), containers: containers,
      findings: survey.findings.sorted())
  }
}
