package import SandboxModel
package import SystemIO

/// The data of a bundle's Info.plist.
package struct BundleInfo {
  package var identifier: BundleIdentifier?
  package var displayName: ByteString?
  package var version: ByteString?
  package var build: ByteString?
  /// The name of the bundle's executable.
  package var executable: ByteString?
}

extension App {
  /// Creates an app with the data of its bundle, if that exists.
  init(
    _ identifier: BundleIdentifier, isInstalled: Bool, info: BundleInfo?,
    extensions: [AppExtension] = [], groups: [GroupMembership] = [],
    installation: FlatpakInstallation? = nil
  ) {
    self.init(
      identifier, isInstalled: isInstalled, displayName: info?.displayName, version: info?.version,
      build: info?.build, extensions: extensions, groups: groups, installation: installation)
  }
}
