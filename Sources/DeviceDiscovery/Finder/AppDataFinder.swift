internal import SandboxModel
internal import SystemIO

/// Finds the container in an `.xcappdata` bundle: the data of one app, as Xcode downloads it from a
/// device ("Download Container…") and installs it on one.
///
/// The bundle is a directory with the data container as `AppData`, and `AppDataInfo.plist`, whose
/// `CFBundleIdentifier` names the app and `XCExecutableVersion` or `CFBundleShortVersionString` its
/// version (observed in bundles of Xcode 6 to 15). Without a usable list, the container is
/// identified by its own metadata.
extension CoreSimulatorFinder {
  static let appData: ByteString = "AppData"
  static let appDataInfo: ByteString = "AppDataInfo.plist"
  static let appDataSuffix = ".xcappdata"

  /// Scans the root of a bundle.
  mutating func searchAppData(in root: borrowing Directory, _ survey: inout Survey) {
    guard var draft = survey.container(.data, Self.appData, in: root, as: Self.appData) else {
      return
    }
    if let list = survey.dictionary(Self.appDataInfo, in: root, as: Self.appDataInfo) {
      var info = survey.bundleInfo(of: list, as: Self.appDataInfo)
      if info.version == nil {
        info.version = survey.string("XCExecutableVersion", of: list, as: Self.appDataInfo)
      }
      if let identifier = info.identifier {
        if let other = draft.metadata?.identifier, other != identifier {
          survey.warn(
            .contradiction, at: Self.appData,
            because: "its metadata names '\(other)', \(Self.appDataInfo) '\(identifier)', which "
              + "takes precedence")
        }
        draft.metadata = ContainerMetadata(identifier: identifier, uuid: draft.metadata?.uuid)
      }
      appDataFacts = info
    }
    // The UUID that it had on its device makes the links inside it recognizable.
    if let uuid = draft.metadata?.uuid, uuid.isUUID { draft.uuid = uuid }
    add(draft)
  }

  /// Returns the apps with the version of the data, as the bundle states it. None is installed.
  func stating(_ apps: [App]) -> [App] {
    guard let info = appDataFacts else { return apps }
    return apps.map { app in
      guard app.identifier == info.identifier else { return app }
      return App(
        app.identifier, isInstalled: false, displayName: info.displayName, version: info.version,
        build: info.build, groups: app.groups)
    }
  }
}
