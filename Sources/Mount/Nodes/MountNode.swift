internal import ArchiveStore
internal import SystemIO

/// A file or directory that the kernel knows.
///
/// A stored one only refers to its entry: the page of its directory is decoded again if it is no
/// longer held.
final class MountNode: Sendable {
  /// The inode number.
  let number: UInt64
  let key: NodeKey
  let origin: Origin
  /// The number of the directory in which it was found.
  let parent: UInt64

  /// The origin of a node.
  enum Origin: Sendable {
    /// A directory of the mount itself.
    case fixed(FixedDirectory)
    /// The link `latest`, with its target and time.
    case latest(target: ByteString, Timestamp)
    /// The root of a view.
    case viewRoot(SnapshotView)
    /// An entry of a snapshot, with its tree if it is a directory.
    case entry(EntryPointer, tree: TreeReference?)
  }

  init(number: UInt64, key: NodeKey, _ origin: Origin, in parent: UInt64 = NodeKey.rootNumber) {
    (self.number, self.key, self.origin, self.parent) = (number, key, origin, parent)
  }
}

/// The directories of the mount that are in no snapshot.
enum FixedDirectory: Hashable, Sendable {
  case root
  case snapshots
  case apps
  case app(ByteString)
}

/// The location of an entry in a snapshot.
struct EntryPointer: Sendable {
  let view: SnapshotView
  /// The directory that contains the entry.
  let directory: TreeReference
  /// The page of the directory, and the position of the entry on it.
  let page: UInt32
  let position: UInt32

  /// The bits of the position in an ordinal; a page has at most 16,384 entries.
  static let positionBits: UInt64 = 20

  /// A number that ascends in the order of the entries of the directory.
  var ordinal: UInt64 { UInt64(page) << Self.positionBits | UInt64(position) }
}
