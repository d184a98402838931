internal import ArchiveStore

/// The backups that snapshots record: a snapshot that `repair snapshots` wrote records the backup of
/// its original.
struct BackupIdentities {
  private var originals: [SnapshotID: SnapshotID] = [:]

  /// Finds the originals among snapshots. An original that is not among them does not matter.
  init(_ heads: [SnapshotHead]) {
    let ids = Set(heads.map(\.id))
    for head in heads {
      guard let original = head.original?.id, ids.contains(original) else { continue }
      originals[head.id] = original
    }
  }

  /// The first original of a snapshot: itself if it is none's copy. Ids are hashes, so only a hostile
  /// repository can appear to have a circle, which ends the search.
  subscript(head: SnapshotHead) -> SnapshotID {
    var (id, steps) = (head.id, originals.count)
    while let original = originals[id], steps > 0 { (id, steps) = (original, steps - 1) }
    return id
  }
}
