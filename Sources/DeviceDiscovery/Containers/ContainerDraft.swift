internal import SandboxModel
internal import SystemIO

/// A container as found, before all containers of the device are known.
struct ContainerDraft {
  var kind: ContainerKind
  let path: ByteString
  let absolutePath: ByteString
  /// The name of its own directory.
  var uuid: ByteString
  var isReadable = true
  /// The only entry of the directory that belongs to the container.
  var member: ByteString?
  var metadata: ContainerMetadata?
  /// The identifier given by the container's location, if the layout names containers by
  /// identifier.
  var named: BundleIdentifier?
  /// The snap revision to which it belongs.
  var revision: ByteString?
  /// The time since which that revision is current, if a link records it.
  var inUseSince: Timestamp?
  /// Whether it belongs to the system and not to the user.
  var isOfSystem = false
  /// The names of the property lists in `Library/Preferences`, without extension; read only if the
  /// metadata contains no identifier.
  var preferences: [ByteString] = []
  var bundle: BundleFacts?

  var identifier: BundleIdentifier?
  var identification = Container.Identification.none
  var owner: BundleIdentifier?
}
