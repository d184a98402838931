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
  mutating func look(
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
          survey.note(
            .unsupported, at: path,
            because: "the system data of this snap belongs to another user and is excluded")
          continue
        }
        look(at: Home(name: name, path: path, isOfSystem: isOfSystem), in: directory, &survey)
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

  private mutating func look(
    at home: Home, in directory: borrowing Directory, _ survey: inout Survey
  ) {
    let revisions = home.revisions(in: directory, &survey)
    let used = survey.currentRevision(of: home, in: directory, among: revisions)
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
    if name == Home.current, !survey.targetIsOutside(name, of: directory) { return }
    guard var draft = survey.container(kind, name, of: home.name, in: directory, as: path) else {
      return
    }
    if name != Self.common { draft.revision = name }
    if case .named(name, let since) = used { draft.inUseSince = since }
    draft.isOfSystem = home.isOfSystem
    drafts.append(draft)
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

    /// Returns the names of revisions in the directory: numbers, or `x` and a number for a snap that
    /// was not installed from the store, with the suffix `.old` if a refresh moved it aside (snapd,
    /// snap.Revision and backend/snapdata.go).
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
      let ending = Array(".old".utf8)
      return name.bytes.suffix(ending.count).elementsEqual(ending)
        && isRevision(ByteString(name.bytes.dropLast(ending.count)))
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

extension Survey {
  /// Whether a name is not a link, or is a link that leads out of the device. A target in the
  /// device is a container of its own or has already been reported, as has a dangling link.
  fileprivate func targetIsOutside(_ name: ByteString, of directory: borrowing Directory) -> Bool {
    guard (try? directory.status(name))?.kind == .symlink else { return true }
    guard let real = try? Host.realPath(directory.path.appending(name)) else { return false }
    return !real.isWithin(root) && !real.isWithin(directory.path)
  }

  /// Returns the revision that `current` names among the existing ones.
  mutating func currentRevision(
    of home: SnapFinder.Home, in directory: borrowing Directory, among revisions: Set<ByteString>
  ) -> SnapFinder.UsedRevision {
    let path = home.path.appending(SnapFinder.Home.current)
    do {
      guard let status = try directory.statusIfPresent(SnapFinder.Home.current) else {
        if !revisions.isEmpty {
          warn(.contradiction, at: path, because: "it is missing, so no revision is treated as old")
        }
        return .unknown
      }
      guard status.kind == .symlink else {
        warn(
          .contradiction, at: path,
          because: "it is not a link to the current revision, so no revision is treated as old")
        return .unknown
      }
      let target = try directory.target(of: SnapFinder.Home.current)
      if let used = revision(target, of: home, in: directory, among: revisions) {
        return .named(used, since: min(status.modified, status.changed))
      }
      warn(
        .danglingLink, at: path,
        because:
          "it is a link to '\(target)', which is not a revision here, so none is treated as old")
    } catch {
      warn(.unreadable, at: path, because: "it cannot be read: \(error.reason)")
    }
    return .unknown
  }

  /// Returns the revision that the target of `current` identifies: a directory beside it, by name
  /// or real path; or, in a copy of another home directory, the revision of the same snap that
  /// exists here.
  private mutating func revision(
    _ target: ByteString, of home: SnapFinder.Home, in directory: borrowing Directory,
    among revisions: Set<ByteString>
  ) -> ByteString? {
    let parts = target.components.filter { $0 != "." }
    guard let last = parts.last, revisions.contains(last), SnapFinder.Home.isRevision(last),
      (try? directory.statusFollowing(last))?.kind == .directory
    else { return nil }
    if !target.isAbsolute, parts.count == 1 { return last }
    let path = home.path.appending(SnapFinder.Home.current)
    if (try? Host.realPath(directory.path.appending(SnapFinder.Home.current)))
      == (try? Host.realPath(directory.path.appending(last)))
    {
      return last
    }
    guard parts.count > 1, parts[parts.count - 2] == home.name,
      (try? directory.statusFollowing(SnapFinder.Home.current)) == nil
    else { return nil }
    note(
      .linkFollowed, at: path,
      because: "it is a link to '\(target)', which does not exist; the revision beside it is used")
    return last
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

extension DeviceFinder {
  /// The locations of a user's snap data below the home directory: the default, and the hidden one
  /// (snapd, dirs.UserHomeSnapDir and HiddenSnapDataHomeDir).
  static let snapDirectories: [ByteString] = ["snap", ".snap/data"]
  /// The mount points of installed snaps below the system's root (snapd, dirs.SnapMountDir).
  private static let snapMounts: [ByteString] = ["snap", "var/lib/snapd/snap"]

  /// Scans the directory of all snaps' data in a home directory, which becomes the root.
  func snap(home: borrowing Directory, _ name: ByteString) throws(SystemError) -> Device {
    let named = home.path.appending(name)
    let snaps = try Directory.open(path: try Host.realPath(named))
    var survey = Survey(root: snaps.path)
    if snaps.path != named {
      survey.note(
        .linkFollowed, at: named, because: "it is a link to '\(snaps.path)' and was followed")
    }
    return snap(snaps, system: system(ofHome: home.path, below: "home"), survey)
  }

  /// Scans the directory of all snaps' data.
  func snap(_ snaps: borrowing Directory, home: ByteString?) -> Device {
    snap(
      snaps, system: home.flatMap { system(ofHome: $0, below: "home") } ?? systemRoot,
      Survey(root: snaps.path))
  }

  private func snap(
    _ snaps: borrowing Directory, system: ByteString?, _ start: Survey
  ) -> Device {
    var survey = start
    var finder = SnapFinder()
    finder.look(in: snaps, as: "", isOfSystem: false, &survey)
    var installed: [BundleIdentifier: SnapFinder.InstalledApp] = [:]
    if let system {
      let data = system.appending("var/snap")
      if let directory = survey.outside(data) {
        finder.look(in: directory, as: data, isOfSystem: true, &survey)
      }
      for mounts in Self.snapMounts {
        installed.merge(survey.snaps(in: system.appending(mounts))) { first, _ in first }
      }
    }
    return Device(
      root: snaps.path, layout: .snap, identity: identity(.snap, snaps.path),
      apps: Self.apps(finder.drafts, installed),
      containers: LogicalNaming.containers(of: finder.drafts, &survey),
      findings: survey.findings.sorted())
  }

  /// Returns all snaps that have data, or that are installed and provide programs.
  private static func apps(
    _ drafts: [ContainerDraft], _ installed: [BundleIdentifier: SnapFinder.InstalledApp]
  ) -> [App] {
    let programs = installed.filter { $0.value.hasPrograms }.keys
    return Set(drafts.compactMap(\.identifier)).union(programs).sorted().map { identifier in
      App(
        identifier, isInstalled: installed[identifier] != nil, info: installed[identifier]?.info)
    }
  }

  /// Returns the root of the system to which a home directory belongs, or nil if the path does not
  /// determine it. For `home/<user>` (`Users/<user>`) or `root`, it is the directory above, which
  /// may be another system's disk; for the current user's home directory it is `/`.
  func system(ofHome home: ByteString, below users: ByteString) -> ByteString? {
    if let systemRoot { return systemRoot }
    let parts = home.components
    if parts.count > 1, parts[parts.count - 2] == users { return Self.path(parts.dropLast(2)) }
    if parts.last == "root" { return Self.path(parts.dropLast()) }
    let own = Host.environment("HOME").flatMap { try? Host.realPath($0) }
    return own == home ? "/" : nil
  }

  static func path(_ parts: some Sequence<ByteString>) -> ByteString {
    ByteString(joining: parts, isAbsolute: true)
  }
}

extension Survey {
  /// Returns the snaps mounted below a directory (`/snap`), by name; empty if the directory does
  /// not exist.
  mutating func snaps(in mounts: ByteString) -> [BundleIdentifier: SnapFinder.InstalledApp] {
    guard let directory = outside(mounts) else { return [:] }
    var snaps: [BundleIdentifier: SnapFinder.InstalledApp] = [:]
    for name in names(in: directory, as: mounts) {
      guard let identifier = BundleIdentifier(name),
        let home = inner([name], of: directory, as: mounts)
      else { continue }
      snaps[identifier] = snap(identifier, in: home, as: mounts.appending(name))
    }
    return snaps
  }

  /// Reads `meta/snap.yaml` of the current revision (snapcraft.io, The snap format).
  private mutating func snap(
    _ identifier: BundleIdentifier, in home: borrowing Directory, as path: ByteString
  ) -> SnapFinder.InstalledApp? {
    guard
      let revision = linked(SnapFinder.Home.current, in: home, as: path, components: 1)?.first,
      let bytes = text(
        "snap.yaml", [revision, "meta"], of: home, as: path)
    else { return nil }
    let file = path.appending(revision).appending("meta/snap.yaml")
    do {
      let node = try YAML.parse(bytes)
      var info = BundleInfo(identifier: identifier)
      info.displayName = Self.text("title", of: node) ?? Self.text("name", of: node)
      info.version = Self.text("version", of: node)
      info.build = revision
      return SnapFinder.InstalledApp(
        info: info, hasPrograms: node["apps"]?.mapping?.isEmpty == false)
    } catch {
      warn(.unusableFile, at: file, because: "it is not usable YAML: \(error.reason)")
      return SnapFinder.InstalledApp(info: BundleInfo(identifier: identifier), hasPrograms: false)
    }
  }

  private static func text(_ key: String, of node: YAMLNode) -> ByteString? {
    node[key]?.text.flatMap { $0.isEmpty ? nil : ByteString($0) }
  }
}
