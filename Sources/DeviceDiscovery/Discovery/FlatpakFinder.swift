internal import SandboxModel
internal import SystemIO

/// Finds the apps of a Flatpak user: their data in `.var/app/<id>`, their settings (the overrides),
/// and the installed apps.
struct FlatpakFinder {
  private(set) var drafts: [ContainerDraft] = []
  private(set) var installed: [BundleIdentifier: FlatpakApp] = [:]

  /// Scans the directory of all apps' data.
  mutating func lookAtData(in apps: borrowing Directory, _ survey: inout Survey) {
    for name in survey.names(in: apps, as: "") where !OwnNames.has(name) {
      if let draft = survey.container(.data, name, of: name, in: apps, as: name) {
        drafts.append(draft)
      }
    }
  }

  /// Scans the overrides and apps of an installation. Apps found in an earlier installation take
  /// precedence.
  mutating func lookAtInstallation(
    _ directory: ByteString, scope: FlatpakInstallation.Scope, survey: inout Survey
  ) {
    installed.merge(survey.flatpakApps(of: directory, scope)) { first, _ in first }
    guard scope == .user else { return }
    let path = directory.appending("overrides")
    guard let overrides = survey.outside(path) else { return }
    for name in survey.names(in: overrides, as: path) {
      if name == "global" {
        survey.note(
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
