internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// A tree of a snapshot at a path in the mount: the whole snapshot or an app's part.
final class SnapshotView: Sendable {
  /// The key of the root.
  let key: NodeKey
  let snapshot: SnapshotID
  /// The tree of the whole snapshot.
  let snapshotTree: TreeReference
  /// The tree that the view shows, and its entry; nil for the tree of a snapshot, which has none.
  let tree: TreeReference
  let entry: TreeEntry?
  let time: Timestamp

  init(
    key: NodeKey, of head: SnapshotHead, tree: TreeReference? = nil, entry: TreeEntry? = nil
  ) {
    self.key = key
    snapshot = head.id
    snapshotTree = head.tree
    self.tree = tree ?? head.tree
    self.entry = entry
    time = head.time
  }
}
