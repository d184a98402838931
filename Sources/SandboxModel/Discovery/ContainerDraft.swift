internal import SystemIO

/// A container as it was found, before the others are known.
struct ContainerDraft {
  var kind: ContainerKind
  let path: ByteString
  let absolutePath: ByteString
  /// The name of its own directory.
  var uuid: ByteString
  var isReadable = true
  /// The only entry of the directory that is the container's.
  var member: ByteString?
  var metadata: ContainerMetadata?
  /// Whose container it is by its place, where the layout names containers by identifier.
  var named: BundleIdentifier?
  /// The snap's revision that it belongs to.
  var revision: ByteString?
  /// Since when that is the one in use, where a link says so.
  var inUseSince: Timestamp?
  /// Whether it is the system's and not the user's.
  var isOfSystem = false
  /// The names of property lists in `Library/Preferences`, without their ending; looked for only
  /// where there is no identifier in the metadata.
  var preferences: [ByteString] = []
  var bundle: BundleFacts?

  var identifier: BundleIdentifier?
  var identification = Container.Identification.none
  var owner: BundleIdentifier?
}

/// What the platform's container manager wrote into a container.
struct ContainerMetadata {
  /// Its file in containers of iOS.
  static let fileName: ByteString = ".com.apple.mobile_container_manager.metadata.plist"
  /// Its file in containers of macOS.
  static let desktopFile: ByteString = ".com.apple.containermanagerd.metadata.plist"

  var identifier: BundleIdentifier?
  var uuid: ByteString?
}

/// What the bundle in a container says.
struct BundleFacts {
  /// Its folder: `Example.app`.
  let directory: ByteString
  let info: BundleInfo?
  let extensions: [AppExtension]
  /// The groups of the app and its extensions, each once.
  let groups: [GroupMembership]
  /// Whether the app's own entitlements could be read, so that other groups are not guessed.
  let hasKnownGroups: Bool
}
