package import Codecs
package import SystemIO

/// The id of a snapshot: the BLAKE2b-256 of its stored bytes.
package typealias SnapshotID = Digest

/// A backup: a root tree with its source, time and policy (docs/repository-format.md, "Snapshot").
package struct Snapshot: Hashable, Sendable {
  /// The repository that contains it.
  package var repository: Digest
  /// The identity of the source: device, host and user. Equal for all runs of one source.
  package var source: Digest
  /// The position among the source's snapshots, starting at 1.
  package var sequence: UInt64
  /// The start time of the run.
  package var time: Timestamp
  package var host: String
  package var user: String
  package var device: DeviceRecord
  package var scope: Scope
  package var reason: Reason
  package var apps: [AppRecord] = []
  package var policy: PolicyRecord
  /// The root directory: its entries are the first components of logical paths.
  package var tree: TreeReference
  /// The snapshot that the run was based on.
  package var parent: SnapshotID?
  package var tags: [String] = []
  /// The name and version of the program.
  package var program: String
  package var totals = Totals()
  /// The data classes by path, in tree order. A class applies from its path on.
  package var classes: [ClassRun] = []
  /// The names of owners and groups at the time of the run.
  package var users: [NameRecord] = []
  package var groups: [NameRecord] = []
  package var excluded: [Exclusion] = []
  package var unreadable: [PathNote] = []
  package var warnings: [PathNote] = []
  /// Mount points that were not entered.
  package var mounts: [ByteString] = []
  package var databases: [DatabaseRecord] = []
  package var durationMilliseconds: UInt64 = 0
  /// The source of a copied snapshot; nil for an original.
  package var original: Original?
  /// Members written by a newer version.
  package var unknown: [JSON.Member] = []

  static let format = "sandboxctl-snapshot"
  static let version: UInt64 = 1

  /// Creates a snapshot with the required members.
  package init(
    repository: Digest, source: Digest, sequence: UInt64, time: Timestamp, host: String,
    user: String, device: DeviceRecord, scope: Scope = .device, reason: Reason = .manual,
    policy: PolicyRecord, tree: TreeReference, program: String
  ) {
    self.repository = repository
    self.source = source
    self.sequence = sequence
    self.time = time
    self.host = host
    self.user = user
    self.device = device
    self.scope = scope
    self.reason = reason
    self.policy = policy
    self.tree = tree
    self.program = program
  }
}

/// A snapshot with its id.
package struct StoredSnapshot: Hashable, Sendable {
  package let id: SnapshotID
  package let snapshot: Snapshot

  /// Creates a pair.
  package init(id: SnapshotID, snapshot: Snapshot) {
    self.id = id
    self.snapshot = snapshot
  }
}
