public import PolicyEngine
public import SandboxModel
public import SystemIO

/// What of a snapshot is to come back into a device, and what becomes of what is there.
public struct DeviceRestoreRequest: Sendable {
  /// The device that it comes to.
  public var device: Device
  /// Whether the device is the one that the snapshot came from.
  public var isInPlace: Bool
  /// The policy that says what is restored and what is kept out of backups there.
  public var policy: CompiledPolicy
  /// The logical path that is asked for, in a container or above some; empty for all.
  public var path: ByteString = ""
  /// The apps that are asked for, by identifier, with the groups that are theirs alone; all that
  /// `path` names where none is.
  public var apps: [String] = []
  /// Whether groups that other apps share come back, too.
  public var withGroups = false
  /// The data classes that come back; all where none is named.
  public var classes: Set<String> = []
  /// What of the entries that are there gives way.
  public var overwrite = OverwriteMode.ifChanged
  /// Whether what the device has and the snapshot lacks is removed.
  public var deletes = false
  /// Whether even what the policy keeps out of backups is removed then.
  public var deletesExcluded = false
  /// Whether a bundle of another version than the stored one gives way to it, as a whole.
  var replacesBundles = false
  /// Whether a file counts as unchanged only where its bytes are the stored ones.
  var comparesBytes = false
  /// Whether only bundles come back.
  var leavesData = false
  /// Whether apps may run meanwhile.
  public var isForced = false
  /// Whether a snapshot of what is there is made first.
  public var savesFirst = true
  /// What is never removed, as the repository in use.
  public var protected: Set<FileIdentity> = []
  /// When the restore begins.
  public var time: Timestamp

  /// Makes a request for a whole snapshot.
  public init(
    _ device: Device, isInPlace: Bool, policy: CompiledPolicy, time: Timestamp = Host.now()
  ) {
    self.device = device
    self.isInPlace = isInPlace
    self.policy = policy
    self.time = time
  }
}
