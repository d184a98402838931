internal import SandboxModel
internal import SystemIO

/// An installed Flatpak app.
struct FlatpakApp {
  let info: BundleInfo
  let installation: FlatpakInstallation
}

extension Survey {
  /// Returns the apps of a Flatpak installation (`~/.local/share/flatpak`, `/var/lib/flatpak`), by
  /// identifier; empty if the directory does not exist.
  mutating func flatpakApps(
    of installation: ByteString, _ scope: FlatpakInstallation.Scope
  ) -> [BundleIdentifier: FlatpakApp] {
    var apps: [BundleIdentifier: FlatpakApp] = [:]
    let path = installation.appending("app")
    guard let top = outside(installation), let directory = inner(["app"], of: top, as: installation)
    else { return apps }
    let configuration = KeyFile(text("config", ["repo"], of: top, as: installation) ?? [])
    for name in names(in: directory, as: path) {
      guard let identifier = BundleIdentifier(name),
        let home = inner([name], of: directory, as: path)
      else { continue }
      apps[identifier] = flatpakApp(
        name, in: home, as: path.appending(name), scope: scope, configuration: configuration)
    }
    return apps
  }

  private mutating func flatpakApp(
    _ name: ByteString, in home: borrowing Directory, as path: ByteString,
    scope: FlatpakInstallation.Scope, configuration: KeyFile
  ) -> FlatpakApp? {
    guard let branch = linked("current", in: home, as: path, components: 2),
      let deployments = inner(branch, of: home, as: path)
    else { return nil }
    let here = path.appending(branch[0]).appending(branch[1])
    guard let commit = linked("active", in: deployments, as: here, components: 1)?.first,
      let deployed = inner([commit], of: deployments, as: here)
    else { return nil }
    let place = here.appending(commit)
    let record = text("deploy", [], of: deployed, as: place).flatMap { FlatpakDeployment($0) }
    let metadata = KeyFile(text("metadata", [], of: deployed, as: place) ?? [])
    let origin = record?.origin
    let url = origin.flatMap {
      configuration.value("url", in: ByteString("remote \"".utf8 + Array($0.bytes) + [0x22]))
    }
    return FlatpakApp(
      info: flatpakInfo(name, record, in: deployed, as: place),
      installation: FlatpakInstallation(
        scope: scope, architecture: branch[0], branch: branch[1], commit: commit, origin: origin,
        remoteURL: url, runtime: metadata.value("runtime", in: "Application")))
  }

  /// Returns the app's name and version from the deployment record or, if it lacks them, from the
  /// desktop entry and the newest release in the metainfo.
  private mutating func flatpakInfo(
    _ name: ByteString, _ record: FlatpakDeployment?, in deployed: borrowing Directory,
    as path: ByteString
  ) -> BundleInfo {
    var info = BundleInfo(identifier: BundleIdentifier(name))
    info.displayName = record?.text("appdata-name")
    info.version = record?.text("appdata-version")
    if info.displayName == nil {
      let file = ByteString(Array(name.bytes) + ".desktop".utf8)
      let entry = text(file, ["export", "share", "applications"], of: deployed, as: path)
      info.displayName = entry.flatMap { KeyFile($0).value("Name", in: "Desktop Entry") }
    }
    for (directory, ending) in [("metainfo", ".metainfo.xml"), ("appdata", ".appdata.xml")]
    where info.version == nil {
      let file = ByteString(Array(name.bytes) + ending.utf8)
      let list = text(file, ["files", "share", ByteString(directory)], of: deployed, as: path)
      info.version = list.flatMap { Metainfo.newestRelease(in: $0) }
    }
    return info
  }
}
