internal import SystemIO

/// Finds the apps of a user's Flatpak: their data in `.var/app/<id>`, their settings (the overrides),
/// and what is installed.
struct FlatpakFinder {
  private(set) var drafts: [ContainerDraft] = []
  private(set) var installed: [BundleIdentifier: FlatpakApp] = [:]

  /// Looks at the folder of all apps' data.
  mutating func lookAtData(in apps: borrowing Folder, _ survey: inout Survey) {
    for name in survey.names(in: apps, as: "") where !OwnNames.has(name) {
      let isReadable: Bool
      let real: ByteString
      switch survey.enter(name, in: apps, as: name) {
      case .none: continue
      case .closed: (isReadable, real) = (false, apps.path.appending(name))
      case .folder(let folder):
        guard survey.take(folder, as: name) else { continue }
        (isReadable, real) = (true, folder.path)
      }
      add(.data, name, path: name, real: real, isReadable: isReadable, &survey)
    }
  }

  /// Looks at the overrides of an installation and at its apps; what was found in an earlier one
  /// holds.
  mutating func lookAtInstallation(
    _ folder: ByteString, _ scope: FlatpakInstallation.Scope, _ survey: inout Survey
  ) {
    installed.merge(survey.flatpakApps(of: folder, scope)) { first, _ in first }
    guard scope == .user else { return }
    let path = folder.appending("overrides")
    guard let overrides = survey.outside(path) else { return }
    for name in survey.names(in: overrides, as: path) {
      if name == "global" {
        survey.note(.unsupported, path.appending(name), "it holds for all apps, and is no app's")
      } else if survey.kind(of: name, in: overrides, as: path.appending(name)) == .file {
        add(.settings, name, path: path, real: overrides.path, isReadable: true, &survey)
      }
    }
  }

  private mutating func add(
    _ kind: ContainerKind, _ name: ByteString, path: ByteString, real: ByteString,
    isReadable: Bool, _ survey: inout Survey
  ) {
    var draft = ContainerDraft(
      kind: kind, path: path, absolutePath: real, uuid: name, isReadable: isReadable)
    if kind == .settings { draft.member = name }
    draft.identifier = BundleIdentifier(name)
    draft.owner = draft.identifier
    draft.identification = draft.identifier == nil ? .none : .layout
    if draft.identifier == nil {
      survey.note(.unidentified, path, "its name is too long for an app's identifier")
    }
    drafts.append(draft)
  }

  /// All apps that are installed or have data or settings.
  func apps() -> [App] {
    Set(installed.keys).union(drafts.compactMap(\.identifier)).sorted().map { identifier in
      let app = installed[identifier]
      return App(
        identifier, isInstalled: app != nil, info: app?.info, installation: app?.installation)
    }
  }
}
