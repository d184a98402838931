public import Codecs
public import SystemIO

/// How much of a repository's data a check reads.
public enum CheckReading: Sendable, Hashable {
  /// Trees alone; of packs only whether they are there, and their sizes.
  case trees
  /// Every pack, to its last byte.
  case everything
  /// Packs chosen by chance that have this part of the stored bytes: above 0, at most 1.
  case fraction(Double)
  /// The packs of one of so many groups, which together are all: `group` from 1 to `count`.
  case group(Int, count: Int)
}

/// Something that a check found.
public enum CheckFinding: Sendable, Hashable {
  /// An object that is missing or is not as it was written.
  case damage(object: String, reason: String)
  /// A path that damage takes from snapshots, wholly or in part: a file, or a directory and all below.
  case cost(path: ByteString, snapshots: [SnapshotID], reason: String)
  /// What is worth a word and takes nothing from any snapshot.
  case remark(object: String, reason: String)
}

/// What a check looked at, and how much it found.
public struct CheckReport: Sendable, Hashable {
  public var snapshots = 0
  public var indexes = 0
  public var packs = 0
  /// Bytes of all packs as stored.
  public var storedBytes: UInt64 = 0
  /// Distinct trees, and the entries in them.
  public var trees = 0
  public var entries = 0
  /// Packs whose data was read, their bytes, and the blobs that were hashed.
  public var packsRead = 0
  public var bytesRead: UInt64 = 0
  public var blobsRead = 0
  /// How many objects are damaged, how many paths that costs, how many remarks there are.
  public var damaged = 0
  public var costs = 0
  public var remarks = 0
  /// Whether the index is among what is damaged: it can be made anew.
  public var isIndexDamaged = false
  /// Whether packs are among what is damaged or missing: a repair saves what is whole in them.
  public var arePacksDamaged = false
  /// How long it took.
  public var seconds = 0.0

  /// Makes a report of nothing.
  public init() {}

  mutating func count(_ finding: CheckFinding) {
    switch finding {
    case .damage(let object, _):
      damaged += 1
      if object.hasPrefix(RepositoryLayout.indexes.description) { isIndexDamaged = true }
      if object.hasPrefix("\(RepositoryLayout.packs)/") { arePacksDamaged = true }
    case .cost: costs += 1
    case .remark: remarks += 1
    }
  }
}
