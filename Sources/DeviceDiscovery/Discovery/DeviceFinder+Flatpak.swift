internal import SandboxModel
internal import SystemIO

extension DeviceFinder {
  /// Scans the apps of a home directory; the root is its directory `.var/app`.
  func flatpak(home: borrowing Directory, asked: ByteString) throws(SystemError) -> Device {
    let apps = try Directory.open(path: try Host.realPath(home.path.appending(".var/app")))
    var survey = Survey(root: apps.path)
    let named = home.path.appending(".var/app")
    if apps.path != named {
      survey.note(
        .linkFollowed, at: named, because: "it is a link to '\(apps.path)' and was followed")
    }
    return flatpak(apps, home: home.path, survey)
  }

  /// Scans the directory of all apps, with the home directory that contains it, if any.
  func flatpak(_ apps: borrowing Directory, home: ByteString?) -> Device {
    flatpak(apps, home: home, Survey(root: apps.path))
  }

  private func flatpak(
    _ apps: borrowing Directory, home: ByteString?, _ start: Survey
  ) -> Device {
    var survey = start
    var finder = FlatpakFinder()
    finder.lookAtData(in: apps, &survey)
    if let user = userFlatpak ?? home.map({ Self.installation(of: $0) }) {
      finder.lookAtInstallation(user, scope: .user, survey: &survey)
    }
    if let systemFlatpak {
      finder.lookAtInstallation(systemFlatpak, scope: .system, survey: &survey)
    }
    return Device(
      root: apps.path, layout: .flatpak, identity: identity(.flatpak, apps.path),
      apps: finder.apps(), containers: LogicalNaming.containers(of: finder.drafts, &survey),
      findings: survey.findings.sorted())
  }

  /// Returns the home directory that contains a layout's directory, or nil if there is none.
  ///
  /// - Parameter directories: The names from the home directory to the layout's directory.
  func home(
    of asked: ByteString, above directories: [ByteString] = [".var", "app"]
  ) throws(SystemError) -> ByteString? {
    let absolute = asked.isAbsolute ? asked : (Host.workingDirectory() ?? "/").appending(asked)
    for path in [absolute, try Host.realPath(asked)] {
      let parts = path.components.filter { $0 != "." }
      guard parts.suffix(directories.count) == directories[...], !parts.contains("..") else {
        continue
      }
      return try Host.realPath(Self.path(parts.dropLast(directories.count)))
    }
    return nil
  }

  /// Returns the Flatpak installation of a home directory; for the current user, environment
  /// variables take precedence.
  static func installation(of home: ByteString) -> ByteString {
    let own = Host.environment("HOME").flatMap { try? Host.realPath($0) }
    if own == home {
      if let named = Host.environment("FLATPAK_USER_DIR") { return named }
      if let data = Host.environment("XDG_DATA_HOME") { return data.appending("flatpak") }
    }
    return home.appending(".local/share/flatpak")
  }
}
