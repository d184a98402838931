package import SystemIO

/// A request to restore a path of a snapshot to a target.
package struct RestoreRequest: Sendable {
  /// The logical path in the snapshot; empty for the whole snapshot.
  package var path: ByteString
  /// The target: a directory, or a file if the path names a file. A link to a directory stands for
  /// that directory.
  package var target: ByteString
  /// The existing entries to replace; nil if the target must be new or empty.
  package var overwrite: OverwriteMode?
  /// Whether entries that the snapshot does not have are removed.
  package var deletes: Bool
  /// Whether entries that are excluded from backups are removed, too.
  package var deletesExcluded = false
  /// The directories that are never removed or restored into, such as the repository in use.
  package var protected: Set<FileIdentity>
  /// The data classes to restore, as recorded in the snapshot; all if empty.
  package var classes: Set<String> = []
  /// The additional rules of a restore into a device.
  package var rules: RestoreRules?
  /// Whether the planning should end early. Called for each directory of the snapshot.
  package var isStopping: @Sendable () -> Bool = { false }
  /// The number of entries at which a plan is first checked against the room on the volume.
  var firstLimit = PlanLimit.first
  /// The maximum size in bytes of the remarks on damage, and of those on failures.
  var remarkRoom = RestorePlan.RemarkLimit.room

  /// Creates a request.
  package init(
    path: ByteString, target: ByteString, overwrite: OverwriteMode? = nil, deletes: Bool = false,
    protected: Set<FileIdentity> = []
  ) {
    self.path = path
    self.target = target
    self.overwrite = overwrite
    self.deletes = deletes
    self.protected = protected
  }

  /// Whether existing entries that change after planning are kept: in a plain directory, where
  /// replaced entries are deleted, unless everything is replaced.
  var keepsChanges: Bool { rules == nil && overwrite != nil && overwrite != .always }
}

/// The existing entries that a restore replaces.
package enum OverwriteMode: String, Sendable, CaseIterable {
  /// Entries that differ in kind, size, time, mode, owner, attributes, flags, or link target.
  case ifChanged = "if-changed"
  /// Entries whose modification time is before the snapshot's; for a database with its log and its
  /// journal, the newest file counts.
  case ifNewer = "if-newer"
  /// All entries.
  case always
  /// None: only missing entries are restored.
  case never
}
