public import PolicyEngine
public import SandboxModel
public import SystemIO

/// A request to restore a snapshot, or a part of it, into a device.
public struct DeviceRestoreRequest: Sendable {
  /// The device to restore into.
  public var device: Device
  /// Whether the device is the one that the snapshot is from.
  public var isInPlace: Bool
  /// The policy that decides what is restored and what is excluded from backups.
  public var policy: CompiledPolicy
  /// The logical path to restore, in a container or above several; empty for everything.
  public var path: ByteString = ""
  /// The identifiers of the apps to restore, with the groups that only they use; everything that
  /// `path` selects if empty.
  public var apps: [String] = []
  /// Whether groups that other apps share are restored, too.
  public var withGroups = false
  /// The data classes to restore; all if empty.
  public var classes: Set<String> = []
  /// The existing entries to replace.
  public var overwrite = OverwriteMode.ifChanged
  /// Whether entries that the snapshot does not have are removed.
  public var deletes = false
  /// Whether entries that the policy excludes from backups are removed, too.
  public var deletesExcluded = false
  /// Whether an installed bundle of another version is replaced, as a whole.
  var replacesBundles = false
  /// Whether a file counts as unchanged only if its content is the stored one.
  var comparesBytes = false
  /// Whether only bundles are restored.
  var leavesData = false
  /// Whether apps may run during the restore.
  public var isForced = false
  /// Whether a snapshot of the existing data is made first.
  public var savesFirst = true
  /// The directories that are never removed, such as the repository in use.
  public var protected: Set<FileIdentity> = []
  /// The start of the restore.
  public var time: Timestamp

  /// Creates a request for a whole snapshot.
  public init(
    _ device: Device, isInPlace: Bool, policy: CompiledPolicy, time: Timestamp = Host.now()
  ) {
    self.device = device
    self.isInPlace = isInPlace
    self.policy = policy
    self.time = time
  }
}
