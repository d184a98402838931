internal import ArchiveStore
internal import SystemIO

/// What a restore does with one entry of the snapshot.
enum RestoreAction: UInt8, Sendable, BitwiseCopyable {
  /// There is nothing of that name in the target.
  case create
  /// What is there gives way; of a directory that is there, its metadata.
  case replace
  /// What is there is as in the snapshot.
  case same
  /// What is there stays, though it differs.
  case leave

  /// Whether the entry is made anew.
  var isWritten: Bool { self == .create || self == .replace }
}

/// An entry of the snapshot as a plan keeps it, in 80 bytes: what only few have is in
/// `PlannedTree.details`.
struct PlannedEntry: Sendable, BitwiseCopyable {
  /// The directory that it is in; the first entry is its own.
  let parent: UInt32
  /// Levels below the first entry.
  let depth: UInt16
  let kind: FileKind
  var action: RestoreAction
  /// For a folder: whether one is there, into which the snapshot's is merged.
  var isMerged = false
  /// What stands in the target in the place of it is a directory, and this is none; or the reverse.
  var changesKind = false
  /// Whether there is metadata to set: directories that are no one's have none.
  var hasMetadata = true
  /// Whether what stands in its place gets another name beside it, and is not lost.
  var isPutAside = false
  let permissions: UInt16
  let nameLength: UInt8
  /// The level of a file's pieces (`Content.level`).
  var level: UInt8 = 0
  let nameStart: UInt32
  let owner: UInt32
  let group: UInt32
  let modified: Timestamp
  /// Bytes of a file.
  var size: UInt64 = 0
  /// A file's pieces in `PlannedTree.pieces`.
  var firstPiece: UInt32 = 0
  var pieceCount: UInt32 = 0
  /// Place in `PlannedTree.details`.
  var detail: UInt32?
}

/// What few entries have.
struct EntryDetail: Sendable {
  var attributes: [Attribute] = []
  var flags: UInt32 = 0
  /// What a link points to.
  var linkTarget: ByteString = ""
  /// The number of a device file, as Linux has it.
  var device: UInt64 = 0
  /// The entry of which this one is another name.
  var leader: Int?
  /// The content of a file that is not the snapshot's.
  var generated: [UInt8]?
}
