internal import Codecs
internal import SandboxModel
package import SystemIO

/// Finds the data of snaps: `<name>/{<revision>,common,current -> <revision>}` in a directory of
/// all snaps, the user's (`~/snap`) or the system's (`/var/snap`).
///
/// `common` is the data, the target of `current` is the current revision, and all others are old.
/// If `current` does not identify a revision, the one with the user's latest data is unknown. Then
/// each revision is treated as current and none is excluded as old.
struct SnapFinder {
  private static let common: ByteString = "common"

  private(set) var drafts: [ContainerDraft] = []

  /// Scans a directory of all snaps.
  ///
  /// - Parameters:
  ///   - base: The path of the directory in findings; empty for the device's root.
  ///   - isOfSystem: Whether it is the system's directory, from which only data of the current user
  ///     is used, or all data for root.
  mutating func search(
    in snaps: borrowing Directory, as base: ByteString, isOfSystem: Bool, _ survey: inout Survey
  ) {
    for name in survey.names(in: snaps, as: base) where !OwnNames.has(name) {
      let path = base.isEmpty ? name : base.appending(name)
      switch survey.enter(name, in: snaps, as: path) {
      case .none: continue
      case .closed:
        // Its content is unknown, so its data is recorded as unreadable.
        if !isOfSystem { drafts.append(closed(name, in: snaps, as: path, &survey)) }
      case .directory(let directory):
        guard !isOfSystem || Self.isOwn(directory) else {
          survey.record(
            .unsupported, at: path,
            because: "the system data of this snap belongs to another user and is excluded")
          continue
        }
        search(at: Home(name: name, path: path, isOfSystem: isOfSystem), in: directory, &survey)
      }
    }
  }

  private static func isOwn(_ directory: borrowing Directory) -> Bool {
    Host.userID == 0 || (try? directory.status().user) == Host.userID
  }

  private func closed(
    _ name: ByteString, in snaps: borrowing Directory, as path: ByteString, _ survey: inout Survey
  ) -> ContainerDraft {
    survey.named(
      ContainerDraft(
        kind: .data, path: path, absolutePath: snaps.path.appending(name), uuid: name,
        isReadable: false),
      after: name)
  }

  private mutating func search(
    at home: Home, in directory: borrowing Directory, _ survey: inout Survey
  ) {
    let revisions = home.revisions(in: directory, &survey)
    let used = home.currentRevision(in: directory, among: revisions, &survey)
    for name in survey.names(in: directory, as: home.path) {
      let isRevision = revisions.contains(name)
      if name == Self.common {
        add(
          home.isOfSystem ? .systemData : .data, named: name, of: home, used: used, in: directory,
          survey: &survey)
      } else if isRevision, used.isOld(name) {
        add(.oldRevision, named: name, of: home, used: used, in: directory, survey: &survey)
      } else if isRevision || name == Home.current && used == .unknown {
        add(
          home.isOfSystem ? .systemRevision : .revision, named: name, of: home, used: used,
          in: directory, survey: &survey)
      } else if name != Home.current {
        survey.warn(
          .excluded, at: home.path.appending(name),
          because: "it is neither a revision of the snap nor 'common' and is not backed up")
      }
    }
  }

  private mutating func add(
    _ kind: ContainerKind, named name: ByteString, of home: Home, used: UsedRevision,
    in directory: borrowing Directory, survey: inout Survey
  ) {
    let path = home.path.appending(name)
    if name == Home.current, !Self.targetIsOutside(name, of: directory, survey) { return }
    guard var draft = survey.container(kind, name, of: home.name, in: directory, as: path) else {
      return
    }
    if name != Self.common { draft.revision = name }
    if case .named(name, let since) = used { draft.inUseSince = since }
    draft.isOfSystem = home.isOfSystem
    drafts.append(draft)
  }

  /// Whether a name is not a link, or is a link that leads out of the device. A target in the
  /// device is a separate container or has already been reported, as has a dangling link.
  private static func targetIsOutside(
    _ name: ByteString, of directory: borrowing Directory, _ survey: Survey
  ) -> Bool {
    guard (try? directory.status(name))?.kind == .symlink else { return true }
    guard let real = try? Host.realPath(directory.path.appending(name)) else { return false }
    return !real.isWithin(survey.root) && !real.isWithin(directory.path)
  }
}

extension SnapFinder {
  /// The directory of a snap's data, for the user or the system.
  struct Home {
    static let current: ByteString = "current"

    /// The snap's name, with the instance key if any (`name_key`).
    let name: ByteString
    let path: ByteString
    let isOfSystem: Bool

    /// Returns the names of revisions in the directory: numbers, or `x` and a number for a snap
    /// that was not installed from the store, with the suffix `.old` if a refresh moved it aside
    /// (snapd, snap.Revision and backend/snapdata.go).
    func revisions(in directory: borrowing Directory, _ survey: inout Survey) -> Set<ByteString> {
      Set(
        survey.names(in: directory, as: path).filter {
          Self.isRevision($0) || Self.isMovedAside($0)
        })
    }

    /// Whether a name is the name of a revision.
    static func isRevision(_ name: ByteString) -> Bool {
      name.isSnapRevision
    }

    /// Whether a name is the name of a revision that a refresh moved aside.
    static func isMovedAside(_ name: ByteString) -> Bool {
      name.hasSuffix(".old") && isRevision(ByteString(name.bytes.dropLast(4)))
    }
  }

  /// The current revision of a snap.
  enum UsedRevision: Equatable {
    case named(ByteString, since: Timestamp)
    /// The current revision is unknown.
    case unknown

    /// Whether a revision is certain not to be current.
    func isOld(_ name: ByteString) -> Bool {
      switch self {
      case .named(let used, _): name != used
      case .unknown: Home.isMovedAside(name)
      }
    }
  }

  /// An installed snap.
  struct InstalledApp {
    let info: BundleInfo
    /// Whether it provides programs; snaps that only support others are not listed.
    let hasPrograms: Bool
  }
}

extension ByteString {
  /// Whether it is the name of a snap revision: digits, or `x` and digits if the snap was not
  /// installed from the store.
  package var isSnapRevision: Bool {
    let digits = bytes.first == UInt8(ascii: "x") ? bytes.dropFirst() : bytes
    return !digits.isEmpty && digits.allSatisfy { (0x30...0x39).contains($0) }
  }
}

// MARK: - The current revision

extension SnapFinder.Home {
  /// Returns the revision that `current` names among the existing ones.
  func currentRevision(
    in directory: borrowing Directory, among revisions: Set<ByteString>, _ survey: inout Survey
  ) -> SnapFinder.UsedRevision {
    let link = path.appending(Self.current)
    do {
      guard let status = try directory.statusIfPresent(Self.current) else {
        if !revisions.isEmpty {
          survey.warn(
            .contradiction, at: link, because: "it is missing, so no revision is treated as old")
        }
        return .unknown
      }
      guard status.kind == .symlink else {
        survey.warn(
          .contradiction, at: link,
          because: "it is not a link to the current revision, so no revision is treated as old")
        return .unknown
      }
      let target = try directory.target(of: Self.current)
      if let used = revision(target, in: directory, among: revisions, &survey) {
        return .named(used, since: min(status.modified, status.changed))
      }
      survey.warn(
        .danglingLink, at: link,
        because:
          "it is a link to '\(target)', which is not a revision here, so none is treated as old")
    } catch {
      survey.warn(.unreadable, at: link, because: "it cannot be read: \(error.reason)")
    }
    return .unknown
  }

  /// Returns the revision that the target of `current` identifies: a directory beside it, by name
  /// or real path; or, in a copy of another home directory, the revision of the same snap that
  /// exists here.
  private func revision(
    _ target: ByteString, in directory: borrowing Directory, among revisions: Set<ByteString>,
    _ survey: inout Survey
  ) -> ByteString? {
    let parts = target.components.filter { $0 != "." }
    guard let last = parts.last, revisions.contains(last), Self.isRevision(last),
      (try? directory.statusFollowing(last))?.kind == .directory
    else { return nil }
    if !target.isAbsolute, parts.count == 1 { return last }
    let link = path.appending(Self.current)
    if (try? Host.realPath(directory.path.appending(Self.current)))
      == (try? Host.realPath(directory.path.appending(last)))
    {
      return last
    }
    guard parts.count > 1, parts[parts.count - 2] == name,
      (try? directory.statusFollowing(Self.current)) == nil
    else { return nil }
    survey.record(
      .linkFollowed, at: link,
      because: "it is a link to '\(target)', which does not exist; the revision next to it is used")
    return last
  }
}

// MARK: - The device

extension SnapFinder {
  /// The locations of a user's snap data below the home directory: the default, and the hidden one
  /// (snapd, dirs.UserHomeSnapDir and HiddenSnapDataHomeDir).
  static let directories: [ByteString] = ["snap", ".snap/data"]
  /// The mount points of installed snaps below the system's root (snapd, dirs.SnapMountDir).
  private static let mounts: [ByteString] = ["snap", "var/lib/snapd/snap"]

  /// Scans the directory of all snaps' data in a home directory, which becomes the root.
  static func device(
    inHome home: borrowing Directory, _ name: ByteString, for asked: DeviceFinder
  ) throws -> Device {
    let named = home.path.appending(name)
    let snaps = try Directory.open(inHome: named)
    let survey = Survey(of: snaps, at: named)
    return device(
      in: snaps, system: asked.system(ofHome: home.path, below: "home"), survey, for: asked)
  }

  /// Scans the directory of all snaps' data.
  static func device(
    in snaps: borrowing Directory, home: ByteString?, for asked: DeviceFinder
  ) -> Device {
    device(
      in: snaps,
      system: home.flatMap { asked.system(ofHome: $0, below: "home") } ?? asked.systemRoot,
      Survey(root: snaps.path), for: asked)
  }

  private static func device(
    in snaps: borrowing Directory, system: ByteString?, _ start: Survey, for asked: DeviceFinder
  ) -> Device {
    var survey = start
    var finder = SnapFinder()
    finder.search(in: snaps, as: "", isOfSystem: false, &survey)
    var installed: [BundleIdentifier: InstalledApp] = [:]
    if let system {
      let data = system.appending("var/snap")
      if let directory = survey.outside(data) {
        finder.search(in: directory, as: data, isOfSystem: true, &survey)
      }
      for mounts in mounts {
        installed.merge(Self.installed(in: system.appending(mounts), &survey)) { first, _ in first }
      }
    }
    return Device(
      root: snaps.path, layout: .snap, identity: asked.identity(.snap, snaps.path),
      apps: apps(finder.drafts, installed),
      containers: LogicalNaming.containers(of: finder.drafts, &survey),
      findings: survey.findings.sorted())
  }

  /// Returns all snaps that have data, or that are installed and provide programs.
  private static func apps(
    _ drafts: [ContainerDraft], _ installed: [BundleIdentifier: InstalledApp]
  ) -> [App] {
    let programs = installed.filter { $0.value.hasPrograms }.keys
    return Set(drafts.compactMap(\.identifier)).union(programs).sorted().map { identifier in
      App(
        identifier, isInstalled: installed[identifier] != nil, info: installed[identifier]?.info)
    }
  }

  /// Returns the snaps mounted below a directory (`/snap`), by name; empty if the directory does
  /// not exist.
  private static func installed(
    in mounts: ByteString, _ survey: inout Survey
  ) -> [BundleIdentifier: InstalledApp] {
    guard let directory = survey.outside(mounts) else { return [:] }
    var snaps: [BundleIdentifier: InstalledApp] = [:]
    for name in survey.names(in: directory, as: mounts) {
      guard let identifier = BundleIdentifier(name),
        let home = survey.inner([name], of: directory, as: mounts)
      else { continue }
      snaps[identifier] = installedApp(identifier, in: home, as: mounts.appending(name), &survey)
    }
    return snaps
  }

  /// Reads `meta/snap.yaml` of the current revision (snapcraft.io, The snap format).
  private static func installedApp(
    _ identifier: BundleIdentifier, in home: borrowing Directory, as path: ByteString,
    _ survey: inout Survey
  ) -> InstalledApp? {
    guard
      let revision = survey.linked(Home.current, in: home, as: path, components: 1)?.first,
      let bytes = survey.text(
        "snap.yaml", [revision, "meta"], of: home, as: path)
    else { return nil }
    let file = path.appending(revision).appending("meta/snap.yaml")
    do {
      let node = try YAML.parse(bytes)
      var info = BundleInfo(identifier: identifier)
      info.displayName = text("title", of: node) ?? text("name", of: node)
      info.version = text("version", of: node)
      info.build = revision
      return InstalledApp(
        info: info, hasPrograms: node["apps"]?.mapping?.isEmpty == false)
    } catch {
      survey.warn(.unusableFile, at: file, because: "it is not usable YAML: \(error.reason)")
      return InstalledApp(info: BundleInfo(identifier: identifier), hasPrograms: false)
    }
  }

  private static func text(_ key: String, of node: YAMLNode) -> ByteString? {
    node[key]?.text.flatMap { $0.isEmpty ? nil : ByteString($0) }
  }
}
