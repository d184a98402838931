public import SystemIO

/// What of a snapshot is to be restored, to where, and what becomes of what is there.
public struct RestoreRequest: Sendable {
  /// The logical path in the snapshot; empty for all of it.
  public var path: ByteString
  /// What becomes of it: this directory, or this file when the path names no directory. A link to a directory
  /// means that directory.
  public var target: ByteString
  /// Which of the target's entries are replaced; nothing where the target has to be new or empty.
  public var overwrite: OverwriteMode?
  /// Whether what the target has and the snapshot lacks is removed.
  public var deletes: Bool
  /// Whether even that is removed which is kept out of backups.
  public var deletesExcluded = false
  /// What is never removed, as the repository in use; nothing is restored into it either.
  public var protected: Set<FileIdentity>
  /// The data classes that come back, by what the snapshot noted; all where none is named.
  public var classes: Set<String> = []
  /// What else decides in a restore into a device.
  var rules: RestoreRules?
  /// At how many entries a plan is first held against the room that there is.
  var firstBound = PlanLimit.first
  /// How many bytes of remarks on damage there may be, and how many on what failed.
  var remarkRoom = RemarkLimit.room

  /// Makes a request.
  public init(
    path: ByteString, target: ByteString, overwrite: OverwriteMode? = nil, deletes: Bool = false,
    protected: Set<FileIdentity> = []
  ) {
    self.path = path
    self.target = target
    self.overwrite = overwrite
    self.deletes = deletes
    self.protected = protected
  }
}

/// Which entries that are there give way to those of the snapshot.
public enum OverwriteMode: String, Sendable, CaseIterable {
  /// Those that differ in kind, size, time, mode, owner, attributes, flags, or in what a link points
  /// to.
  case ifChanged = "if-changed"
  /// Those whose time of modification is before the snapshot's; of a database with its log and its
  /// journal the newest decides.
  case ifNewer = "if-newer"
  /// All.
  case always
  /// None: only what is missing is restored.
  case never
}
