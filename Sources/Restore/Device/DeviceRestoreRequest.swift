package import PolicyEngine
package import SandboxModel
package import SystemIO

/// A request to restore a snapshot, or a part of it, into a device.
package struct DeviceRestoreRequest: Sendable {
  /// The device to restore into.
  package var device: Device
  /// Whether the device is the one that the snapshot is from.
  package var isInPlace: Bool
  /// The policy that decides what is restored and what is excluded from backups.
  package var policy: CompiledPolicy
  /// The logical path to restore, in a container or above several; empty for everything.
  package var path: ByteString = ""
  /// The identifiers of the apps to restore, with the groups that only they use; everything that
  /// `path` selects if empty.
  package var apps: [String] = []
  /// Whether groups that other apps share are restored, too.
  package var withGroups = false
  /// The data classes to restore; all if empty.
  package var classes: Set<String> = []
  /// The existing entries to replace.
  package var overwrite = OverwriteMode.ifChanged
  /// Whether entries that the snapshot does not have are removed.
  package var deletes = false
  /// Whether entries that the policy excludes from backups are removed, too.
  package var deletesExcluded = false
  /// Whether an installed bundle of another version is replaced, as a whole.
  package var replacesBundles = false
  /// Whether a file counts as unchanged only if its content is the stored one.
  package var comparesBytes = false
  /// Whether only bundles are restored.
  package var leavesData = false
  /// Whether apps may run during the restore.
  package var isForced = false
  /// Whether a snapshot of the existing data is made first.
  package var savesFirst = true
  /// The directories that are never removed, such as the repository in use.
  package var protected: Set<FileIdentity> = []
  /// Whether the planning should end early. Called for each directory, by several threads.
  package var isStopping: @Sendable () -> Bool = { false }
  /// The destination of the snapshot of the existing data that is made first: the repository that
  /// the restored snapshot is in.
  package let destination: Destination
  /// The start of the restore.
  package var time: Timestamp

  /// The destination whose exclusions apply on the device: data that the policy excludes from
  /// backups to it is not removed, although the snapshot does not have it. Always an unencrypted
  /// cloud destination, because the snapshots of any repository may be copies from one. Without
  /// bundles, unless the snapshot has the bundle.
  static let sparedBy = Destination(isCloud: true, isUnencrypted: true)

  /// Creates a request for a whole snapshot.
  package init(
    _ device: Device, isInPlace: Bool, policy: CompiledPolicy, savingTo destination: Destination,
    time: Timestamp = Host.now()
  ) {
    self.device = device
    self.isInPlace = isInPlace
    self.policy = policy
    self.destination = destination
    self.time = time
  }
}
