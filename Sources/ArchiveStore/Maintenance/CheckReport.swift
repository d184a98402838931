public import Codecs
public import SystemIO

/// The amount of a repository's data that a check reads.
public enum CheckReading: Sendable, Hashable {
  /// Trees only. Of packs only existence and size are checked.
  case trees
  /// Every pack completely.
  case everything
  /// Randomly chosen packs with this fraction of the stored bytes, above 0 and at most 1.
  case fraction(Double)
  /// The packs of one of `count` groups, which together cover all packs; `group` is 1 to `count`.
  case group(Int, count: Int)
}

/// A finding of a check.
public enum CheckFinding: Sendable, Hashable {
  /// An object that is missing or damaged.
  case damage(object: String, reason: String)
  /// A path that snapshots lose to damage, completely or in part: a file, or a directory and all
  /// below.
  case cost(path: ByteString, snapshots: [SnapshotID], reason: String)
  /// A remark that affects no snapshot.
  case remark(object: String, reason: String)
}

/// The scope of a check and the number of its findings.
public struct CheckReport: Sendable, Hashable {
  public var snapshots = 0
  public var indexes = 0
  public var packs = 0
  /// The stored bytes of all packs.
  public var storedBytes: UInt64 = 0
  /// The number of distinct trees and of their entries.
  public var trees = 0
  public var entries = 0
  /// The packs whose data was read, their bytes, and the blobs that were hashed.
  public var packsRead = 0
  public var bytesRead: UInt64 = 0
  public var blobsRead = 0
  /// The number of damaged objects, of affected paths and of remarks.
  public var damaged = 0
  public var costs = 0
  public var remarks = 0
  /// Whether the index is damaged. It can be rebuilt.
  public var isIndexDamaged = false
  /// Whether packs are damaged or missing. A repair saves their intact blobs.
  public var arePacksDamaged = false
  /// The duration in seconds.
  public var seconds = 0.0

  /// Creates an empty report.
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
