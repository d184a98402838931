internal import SystemIO

/// A Flatpak app that is installed: what is deployed and what it is called.
struct FlatpakApp {
  let info: BundleInfo
  let installation: FlatpakInstallation
}

extension Survey {
  /// The apps of a Flatpak installation (`~/.local/share/flatpak`, `/var/lib/flatpak`), by identifier;
  /// none when there is no such folder.
  mutating func flatpakApps(
    of installation: ByteString, _ scope: FlatpakInstallation.Scope
  ) -> [BundleIdentifier: FlatpakApp] {
    var apps: [BundleIdentifier: FlatpakApp] = [:]
    let path = installation.appending("app")
    guard let top = outside(installation), let folder = inner(["app"], of: top, as: installation)
    else { return apps }
    let configuration = KeyFile(text("config", ["repo"], of: top, as: installation) ?? [])
    for name in names(in: folder, as: path) {
      guard let identifier = BundleIdentifier(name),
        let home = inner([name], of: folder, as: path)
      else { continue }
      apps[identifier] = flatpakApp(name, in: home, as: path.appending(name), scope, configuration)
    }
    return apps
  }

  private mutating func flatpakApp(
    _ name: ByteString, in home: borrowing Folder, as path: ByteString,
    _ scope: FlatpakInstallation.Scope, _ configuration: KeyFile
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

  /// The app's name and version: by the deployment's record, else by the desktop entry and the
  /// newest release in the metainfo.
  private mutating func flatpakInfo(
    _ name: ByteString, _ record: FlatpakDeployment?, in deployed: borrowing Folder,
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
    for (folder, ending) in [("metainfo", ".metainfo.xml"), ("appdata", ".appdata.xml")]
    where info.version == nil {
      let file = ByteString(Array(name.bytes) + ending.utf8)
      let list = text(file, ["files", "share", ByteString(folder)], of: deployed, as: path)
      info.version = list.flatMap { Metainfo.newestRelease(in: $0) }
    }
    return info
  }

  private mutating func text(
    _ name: ByteString, _ folders: [ByteString], of parent: borrowing Folder, as path: ByteString
  ) -> [UInt8]? {
    if folders.isEmpty {
      return bytes(of: name, in: parent, as: path.appending(name), limit: Self.textLimit)
    }
    let here = folders.reduce(path) { $0.appending($1) }
    guard let folder = inner(folders, of: parent, as: path) else { return nil }
    return bytes(of: name, in: folder, as: here.appending(name), limit: Self.textLimit)
  }

  /// The components of a link's target, when it is a link of that many plain ones.
  private mutating func linked(
    _ name: ByteString, in folder: borrowing Folder, as path: ByteString, components: Int
  ) -> [ByteString]? {
    do {
      guard try folder.statusIfPresent(name) != nil else { return nil }
      let target = try folder.target(of: name)
      let parts = target.components
      if parts.count == components, !target.isAbsolute, !parts.contains("..") { return parts }
      warn(.wrongValue, path.appending(name), "it is a link to '\(target)', which is not expected")
    } catch {
      warn(.unreadable, path.appending(name), "it cannot be read: \(error.reason)")
    }
    return nil
  }

  /// Opens a folder outside the root; nil when there is none.
  mutating func outside(_ path: ByteString) -> Folder? {
    do {
      return try Folder.open(path: path)
    } catch {
      if !error.isMissing { warn(.unreadable, path, "it cannot be opened: \(error.reason)") }
      return nil
    }
  }

  /// Opens a folder some levels down without following links; nil when there is none.
  mutating func inner(
    _ names: [ByteString], of parent: borrowing Folder, as path: ByteString
  ) -> Folder? {
    do {
      guard let first = names.first, try parent.statusIfPresent(first)?.kind == .directory else {
        return nil
      }
      let folder = try parent.folder(first)
      if names.count == 1 { return folder }
      return inner(Array(names.dropFirst()), of: folder, as: path.appending(first))
    } catch {
      warn(.unreadable, path, "it cannot be opened: \(error.reason)")
      return nil
    }
  }
}
