internal import Codecs
package import SystemIO

/// The amount of a repository's data that a check reads.
package enum CheckReading: Sendable, Hashable {
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
package enum CheckFinding: Sendable, Hashable {
  /// An object that is missing or damaged.
  case damage(object: String, reason: String)
  /// A path that snapshots lose to damage, completely or in part: a file, or a directory and all
  /// below.
  case cost(path: ByteString, snapshots: [SnapshotID], reason: String)
  /// A remark that affects no snapshot.
  case remark(object: String, reason: String)
}

/// The scope of a check and the number of its findings.
package struct CheckReport: Sendable, Hashable {
  package var snapshots = 0
  package var indexes = 0
  package var packs = 0
  /// The stored bytes of all packs.
  package var storedBytes: UInt64 = 0
  /// The number of distinct trees and of their entries.
  package var trees = 0
  package var entries = 0
  /// The packs whose data was read, their bytes, and the blobs that were hashed.
  package var packsRead = 0
  package var bytesRead: UInt64 = 0
  package var blobsRead = 0
  /// The number of damaged objects, of affected paths and of remarks.
  package var damaged = 0
  package var costs = 0
  package var remarks = 0
  /// Whether the index is damaged. It can be rebuilt.
  package var isIndexDamaged = false
  /// Whether packs are damaged or missing. A repair saves their intact blobs.
  package var arePacksDamaged = false
  /// The duration in seconds.
  package var seconds = 0.0

  /// Creates an empty report.
  package init() {}

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
