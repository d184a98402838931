internal import SandboxModel
internal import SystemIO

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
    var installed: [BundleIdentifier: InstalledSnap] = [:]
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
    _ drafts: [ContainerDraft], _ installed: [BundleIdentifier: InstalledSnap]
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
