internal import Codecs
internal import SandboxModel
package import SystemIO

/// Finds the apps of a Flatpak user: their data in `.var/app/<id>`, their settings (the overrides),
/// and the installed apps.
struct FlatpakFinder {
  private(set) var drafts: [ContainerDraft] = []
  private(set) var installed: [BundleIdentifier: InstalledApp] = [:]

  /// Scans the directory of all apps' data.
  mutating func searchData(in apps: borrowing Directory, _ survey: inout Survey) {
    for name in survey.names(in: apps, as: "") where !OwnNames.has(name) {
      if let draft = survey.container(.data, name, of: name, in: apps, as: name) {
        drafts.append(draft)
      }
    }
  }

  /// Scans the overrides and apps of an installation. Apps found in an earlier installation take
  /// precedence.
  mutating func searchInstallation(
    _ directory: ByteString, scope: App.FlatpakInstallation.Scope, survey: inout Survey
  ) {
    installed.merge(Self.installedApps(of: directory, scope, &survey)) { first, _ in first }
    guard scope == .user else { return }
    let path = directory.appending("overrides")
    guard let overrides = survey.outside(path) else { return }
    for name in survey.names(in: overrides, as: path) {
      if name == "global" {
        survey.record(
          .unsupported, at: path.appending(name),
          because: "it applies to all apps and belongs to none")
      } else if survey.kind(of: name, in: overrides, as: path.appending(name)) == .file {
        var draft = ContainerDraft(
          kind: .settings, path: path, absolutePath: overrides.path, uuid: name)
        draft.member = name
        drafts.append(survey.named(draft, after: name))
      }
    }
  }

  /// Returns all apps that are installed or have data or settings.
  func apps() -> [App] {
    Set(installed.keys).union(drafts.compactMap(\.identifier)).sorted().map { identifier in
      let app = installed[identifier]
      return App(
        identifier, isInstalled: app != nil, info: app?.info, installation: app?.installation)
    }
  }
}

// MARK: - The device

extension FlatpakFinder {
  /// Scans the apps of a home directory; the root is its directory `.var/app`.
  static func device(
    inHome home: borrowing Directory, for asked: DeviceFinder
  ) throws -> Device {
    let named = home.path.appending(".var/app")
    let apps = try Directory.open(inHome: named)
    let survey = Survey(of: apps, at: named)
    return device(in: apps, home: home.path, survey, for: asked)
  }

  /// Scans the directory of all apps, with the home directory that contains it, if any.
  static func device(
    in apps: borrowing Directory, home: ByteString?, for asked: DeviceFinder
  ) -> Device {
    device(in: apps, home: home, Survey(root: apps.path), for: asked)
  }

  private static func device(
    in apps: borrowing Directory, home: ByteString?, _ start: Survey, for asked: DeviceFinder
  ) -> Device {
    var survey = start
    var finder = FlatpakFinder()
    finder.searchData(in: apps, &survey)
    finder.searchInstallations(home: home, for: asked, &survey)
    return Device(
      root: apps.path, layout: .flatpak, identity: asked.identity(.flatpak, apps.path),
      apps: finder.apps(), containers: LogicalNaming.containers(of: finder.drafts, &survey),
      findings: survey.findings.sorted())
  }

  private mutating func searchInstallations(
    home: ByteString?, for asked: DeviceFinder, _ survey: inout Survey
  ) {
    if let user = asked.userFlatpak ?? home.map({ Self.installation(of: $0) }) {
      searchInstallation(user, scope: .user, survey: &survey)
    }
    if let system = asked.systemFlatpak {
      searchInstallation(system, scope: .system, survey: &survey)
    }
  }

  /// Returns the apps of a home directory without the directory of the apps' data.
  static func apps(inNewHome home: ByteString, for asked: DeviceFinder) -> [App] {
    var (finder, survey) = (FlatpakFinder(), Survey(root: home))
    finder.searchInstallations(home: home, for: asked, &survey)
    return finder.apps()
  }

  /// Returns the Flatpak installation of a home directory; for the current user, environment
  /// variables take precedence.
  private static func installation(of home: ByteString) -> ByteString {
    if home == DeviceFinder.currentUserHome {
      if let named = Host.environment("FLATPAK_USER_DIR") { return named }
      if let data = Host.environment("XDG_DATA_HOME") { return data.appending("flatpak") }
    }
    return home.appending(".local/share/flatpak")
  }

  /// The names from a home directory to that of the apps' data.
  static let directories: [ByteString] = [".var", "app"]

  /// Returns the directory of a user's overrides, given the path of the home directory's `.var/app`
  /// without links, or nil for other directories. The path is not resolved again: a link that was
  /// added since would lead elsewhere.
  static func overrides(ofAppsIn root: ByteString) -> ByteString? {
    guard let home = DeviceFinder.directory(above: directories, at: root) else { return nil }
    return installation(of: home).appending("overrides")
  }
}

// MARK: - Installed apps

extension FlatpakFinder {
  /// Returns the apps of a Flatpak installation (`~/.local/share/flatpak`, `/var/lib/flatpak`), by
  /// identifier; empty if the directory does not exist.
  private static func installedApps(
    of installation: ByteString, _ scope: App.FlatpakInstallation.Scope, _ survey: inout Survey
  ) -> [BundleIdentifier: InstalledApp] {
    var apps: [BundleIdentifier: InstalledApp] = [:]
    let path = installation.appending("app")
    guard let top = survey.outside(installation),
      let directory = survey.inner(["app"], of: top, as: installation)
    else { return apps }
    let configuration = KeyValueFile(
      survey.text("config", ["repo"], of: top, as: installation) ?? [])
    for name in survey.names(in: directory, as: path) {
      guard let identifier = BundleIdentifier(name),
        let home = survey.inner([name], of: directory, as: path)
      else { continue }
      apps[identifier] = installedApp(
        name, in: home, as: path.appending(name), scope: scope, configuration: configuration,
        survey: &survey)
    }
    return apps
  }

  private static func installedApp(
    _ name: ByteString, in home: borrowing Directory, as path: ByteString,
    scope: App.FlatpakInstallation.Scope, configuration: KeyValueFile, survey: inout Survey
  ) -> InstalledApp? {
    guard let branch = survey.linked("current", in: home, as: path, components: 2),
      let deployments = survey.inner(branch, of: home, as: path)
    else { return nil }
    let here = path.appending(branch[0]).appending(branch[1])
    guard let commit = survey.linked("active", in: deployments, as: here, components: 1)?.first,
      let deployed = survey.inner([commit], of: deployments, as: here)
    else { return nil }
    let deployment = here.appending(commit)
    let record = survey.text("deploy", [], of: deployed, as: deployment).flatMap {
      Deployment($0)
    }
    let metadata = KeyValueFile(survey.text("metadata", [], of: deployed, as: deployment) ?? [])
    let origin = record?.origin
    let url = origin.flatMap {
      configuration.value("url", in: ByteString("remote \"".utf8 + Array($0.bytes) + [0x22]))
    }
    return InstalledApp(
      info: info(name, record, in: deployed, as: deployment, survey: &survey),
      installation: App.FlatpakInstallation(
        scope: scope, architecture: branch[0], branch: branch[1], commit: commit, origin: origin,
        remoteURL: url, runtime: metadata.value("runtime", in: "Application")))
  }

  /// Returns the app's name and version from the deployment record or, if it lacks them, from the
  /// desktop entry and the newest release in the metainfo.
  private static func info(
    _ name: ByteString, _ record: Deployment?, in deployed: borrowing Directory,
    as path: ByteString, survey: inout Survey
  ) -> BundleInfo {
    var info = BundleInfo(identifier: BundleIdentifier(name))
    info.displayName = record?.text("appdata-name")
    info.version = record?.text("appdata-version")
    if info.displayName == nil {
      let file = name.concatenating(".desktop")
      let entry = survey.text(file, ["export", "share", "applications"], of: deployed, as: path)
      info.displayName = entry.flatMap { KeyValueFile($0).value("Name", in: "Desktop Entry") }
    }
    for (directory, ending) in [("metainfo", ".metainfo.xml"), ("appdata", ".appdata.xml")]
    where info.version == nil {
      let file = name.concatenating(ByteString(ending))
      let list = survey.text(
        file, ["files", "share", ByteString(directory)], of: deployed, as: path)
      info.version = list.flatMap { Metainfo.newestRelease(in: $0) }
    }
    return info
  }
}

// MARK: - Files of Flatpak

extension FlatpakFinder {
  /// An installed Flatpak app.
  struct InstalledApp {
    let info: BundleInfo
    let installation: App.FlatpakInstallation
  }

  /// The part of Flatpak's deployment record that is used: the file `deploy`, a serialized GVariant
  /// with the type `(ssasta{sv})`: origin, commit, and further data by name.
  ///
  /// The framing of the type is not parsed. The record begins with two strings, and text values of
  /// the dictionary start at the next multiple of 8 after their key.
  struct Deployment {
    let origin: ByteString
    let commit: ByteString
    private let bytes: [UInt8]

    /// Reads a record, or returns nil if it does not begin with two strings.
    init?(_ bytes: [UInt8]) {
      guard let first = bytes.firstIndex(of: 0), first > 0, first < 256,
        let second = bytes[(first + 1)...].firstIndex(of: 0), second > first + 1,
        bytes[(first + 1)..<second].allSatisfy({ Self.isHexadecimal($0) })
      else { return nil }
      origin = ByteString(bytes[..<first])
      commit = ByteString(bytes[(first + 1)..<second])
      self.bytes = bytes
    }

    /// Returns the text for a key of the dictionary: `appdata-name`, `appdata-version`.
    func text(_ key: StaticString) -> ByteString? {
      let wanted = key.withUTF8Buffer { Array($0) } + [0]
      var at = 0
      while at + wanted.count <= bytes.count {
        defer { at += 8 }
        guard bytes[at...].starts(with: wanted) else { continue }
        let start = (at + wanted.count + 7) & ~7
        guard start < bytes.count, let end = bytes[start...].firstIndex(of: 0),
          bytes[end...].starts(with: [0, 0, UInt8(ascii: "s")])
        else { return nil }
        return end > start ? ByteString(bytes[start..<end]) : nil
      }
      return nil
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
  }

  /// Reads AppStream metainfo, only for the newest release.
  enum Metainfo {
    /// Returns the version of the first release in the file, which is the newest one according to
    /// AppStream.
    static func newestRelease(in bytes: [UInt8]) -> ByteString? {
      guard let text = String(validating: bytes, as: UTF8.self),
        let list = text.firstRange(of: "<releases"),
        let release = text[list.upperBound...].firstRange(of: "<release ")
      else { return nil }
      let tag = text[release.upperBound...].prefix { $0 != ">" }
      guard let name = tag.firstRange(of: "version=") else { return nil }
      let value = tag[name.upperBound...]
      guard let quote = value.first, quote == "\"" || quote == "'" else { return nil }
      let version = value.dropFirst().prefix { $0 != quote }
      return version.isEmpty ? nil : ByteString(String(version))
    }
  }
}

/// A file of groups and keys such as Flatpak's metadata, OSTree's configuration and desktop
/// entries: `[Group]`, `Key=value`, comments with `#`.
package struct KeyValueFile: Sendable {
  private var values: [ByteString: [ByteString: ByteString]] = [:]

  /// Parses the lines and ignores those that are not a group, key or comment. The first of several
  /// values for a key takes precedence.
  package init(_ bytes: [UInt8]) {
    var group: ByteString = ""
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let text = line.trimmed
      if text.first == UInt8(ascii: "["), text.last == UInt8(ascii: "]") {
        group = ByteString(text.dropFirst().dropLast())
      } else if text.first != UInt8(ascii: "#"),
        let equals = text.firstIndex(of: UInt8(ascii: "="))
      {
        let key = ByteString(text[..<equals].trimmed)
        let value = ByteString(text[(equals + 1)...].trimmed)
        if values[group]?[key] == nil { values[group, default: [:]][key] = value }
      }
    }
  }

  /// Returns the value for a key, or nil if it is missing or empty.
  package func value(_ key: ByteString, in group: ByteString) -> ByteString? {
    values[group]?[key].flatMap { $0.isEmpty ? nil : $0 }
  }
}
