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

/// The structure of a bundle (Bundle Programming Guide, Bundle Structures).
package enum BundleShape: String, Hashable, Sendable {
  /// Files at the top level, as on iOS.
  case flat
  /// Files in `Contents`, as on macOS.
  case contents

  package static let contentsDirectory: ByteString = "Contents"

  /// The directories with extensions.
  var extensionDirectories: [ByteString] {
    switch self {
    case .flat: ["PlugIns", "Extensions"]
    case .contents: ["Contents/PlugIns", "Contents/Extensions"]
    }
  }
}

/// The data of the bundle in a container.
struct BundleFacts {
  /// The bundle's directory, `Example.app`.
  let directory: ByteString
  let info: BundleInfo?
  let extensions: [App.Extension]
  /// The groups of the app and its extensions, without duplicates.
  let groups: [App.GroupMembership]
  /// Whether the app's own entitlements could be read. If so, no further groups are guessed.
  let hasKnownGroups: Bool
}

extension App {
  /// Creates an app with the data of its bundle, if that exists.
  init(
    _ identifier: BundleIdentifier, isInstalled: Bool, info: BundleInfo?,
    extensions: [App.Extension] = [], groups: [App.GroupMembership] = [],
    installation: App.FlatpakInstallation? = nil
  ) {
    self.init(
      identifier, isInstalled: isInstalled, displayName: info?.displayName, version: info?.version,
      build: info?.build, extensions: extensions, groups: groups, installation: installation)
  }
}
