internal import ArchiveStore
package import SystemIO

/// The action of a restore for one entry of the snapshot.
package enum RestoreAction: UInt8, Sendable, BitwiseCopyable {
  /// The target has no entry of that name.
  case create
  /// The existing entry is replaced; of an existing directory, its metadata.
  case replace
  /// The existing entry matches the snapshot.
  case same
  /// The existing entry is kept although it differs.
  case leave

  /// Whether the entry is written.
  package var isWritten: Bool { self == .create || self == .replace }
}

/// An entry of the snapshot in a plan, in 80 bytes: rare properties are in `PlannedTree.details`.
package struct PlannedEntry: Sendable, BitwiseCopyable {
  /// The number of its directory; the first entry is its own parent.
  package let parent: UInt32
  /// The number of levels below the first entry.
  package let depth: UInt16
  package let kind: FileKind
  package var action: RestoreAction
  /// Whether the entry is a directory that exists in the target, and is merged into it.
  package var isMerged = false
  /// Whether the entry is a directory and the existing one is not, or the reverse.
  var changesKind = false
  /// Whether there is metadata to set; directories that are no entries of the snapshot have none.
  var hasMetadata = true
  /// Whether the existing entry is kept beside it under another name.
  var isMovedAside = false
  let permissions: UInt16
  let nameLength: UInt8
  /// The level of a file's pieces (`Content.level`).
  var level: UInt8 = 0
  let nameStart: UInt32
  let owner: UInt32
  let group: UInt32
  let modified: Timestamp
  /// The size of a file in bytes.
  package var size: UInt64 = 0
  /// The index of a file's first piece in `PlannedTree.pieces`.
  var firstPiece: UInt32 = 0
  var pieceCount: UInt32 = 0
  /// The index in `PlannedTree.details`.
  var detail: UInt32?
}

/// The properties that few entries have.
struct EntryDetail: Sendable {
  var attributes: [Attribute] = []
  var flags: UInt32 = 0
  /// The target of a symbolic link.
  var linkTarget: ByteString = ""
  /// The device number of a device file, in Linux encoding.
  var device: UInt64 = 0
  /// The entry that this one is a hard link to.
  var leader: Int?
  /// The content of a generated file, which is not from the snapshot.
  var generated: [UInt8]?
}
