public import Codecs

extension RepositoryCopy {
  /// A snapshot that was copied.
  public struct Copied: Sendable {
    public let head: SnapshotHead
    /// The id of the copy; nil in a dry run.
    public let id: SnapshotID?
  }

  /// The result of a copy or of a dry run.
  public struct Report: Sendable {
    /// The number of selected snapshots, and of those whose copies existed before.
    public internal(set) var snapshots = 0
    public internal(set) var present = 0
    /// The copied snapshots, the oldest first; in a dry run those that would be copied.
    public internal(set) var copied: [Copied] = []
    /// The snapshots that need lost data, or an older key. They were not copied.
    public internal(set) var incomplete: [IncompleteSnapshot] = []
    /// The snapshots whose data is damaged in the target, where it was read: existing ones, and new
    /// ones, which were not saved.
    public internal(set) var damagedInTarget: [IncompleteSnapshot] = []
    /// The errors of snapshots that cannot be read.
    public internal(set) var unreadable: [StoreError] = []
    /// The errors of damaged packs and index objects of the source.
    public internal(set) var damaged: [StoreError] = []
    /// The errors of damaged packs and index objects of the target that a check has found. Only the
    /// snapshots in `damagedInTarget` are affected by them.
    public internal(set) var targetDamage: [StoreError] = []
    /// The blobs that the new snapshots need, and their stored bytes in the source; includes those
    /// of existing copies whose content may have to be stored again.
    public internal(set) var neededBlobs = 0
    public internal(set) var neededBytes: UInt64 = 0
    /// The part of these that the target lacked.
    public internal(set) var missingBlobs = 0
    public internal(set) var missingBytes: UInt64 = 0
    /// The frames that moved unchanged, and those that were stored again in part.
    public internal(set) var movedFrames = 0
    public internal(set) var partFrames = 0
    /// The new packs of the target and their bytes.
    public internal(set) var newPacks = 0
    public internal(set) var newBytes: UInt64 = 0
    /// The blobs that were read from the target, and their bytes.
    public internal(set) var checkedBlobs = 0
    public internal(set) var checkedBytes: UInt64 = 0
    /// Whether the copy was interrupted before it was complete.
    public internal(set) var isInterrupted = false

    /// Whether damage was found. Denied access, failures of a store, and objects that only an older
    /// key opens do not count.
    public var hasDamage: Bool {
      !((incomplete + damagedInTarget).allSatisfy(\.needsOlderKey)
        && targetDamage.allSatisfy(\.needsOlderKey)
        && (unreadable + damaged).allSatisfy { $0.isRefused || $0.isStoreFailure })
    }
  }
}
