public import Codecs
public import SystemIO

/// The name of a snapshot: the BLAKE2b-256 of its stored bytes.
public typealias SnapshotID = Digest

/// One backup: a root tree with what it is of, when, whence and by which rules it was made
/// (docs/repository-format.md, "Snapshot").
public struct Snapshot: Hashable, Sendable {
  /// The repository that it is in.
  public var repository: Digest
  /// What is backed up, on which host, by whom: equal for the runs of one source.
  public var source: Digest
  /// 1 for a source's first snapshot; each next one has more.
  public var sequence: UInt64
  /// When the run began.
  public var time: Timestamp
  public var host: String
  public var user: String
  public var device: DeviceRecord
  public var scope: Scope
  public var reason: Reason
  public var apps: [AppRecord] = []
  public var policy: PolicyRecord
  /// The root folder: its entries are the first components of logical paths.
  public var tree: TreeReference
  /// The snapshot that the run started from.
  public var parent: SnapshotID?
  public var tags: [String] = []
  /// Name and version of the program.
  public var program: String
  public var totals = Totals()
  /// Which data class holds from which path on, in the order of the tree.
  public var classes: [ClassRun] = []
  /// The names of owners and groups at the time.
  public var users: [NameRecord] = []
  public var groups: [NameRecord] = []
  public var excluded: [Exclusion] = []
  public var unreadable: [PathNote] = []
  public var warnings: [PathNote] = []
  /// Mount points that were not entered.
  public var mounts: [ByteString] = []
  public var databases: [DatabaseRecord] = []
  public var durationMilliseconds: UInt64 = 0
  /// Where a copy came from.
  public var original: Original?
  /// Members that a newer version wrote and this one does not know.
  public var unknown: [JSON.Member] = []

  static let format = "sandboxctl-snapshot"
  static let version: UInt64 = 1

  /// Makes a snapshot of what every one has.
  public init(
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

/// A snapshot with its name.
public struct StoredSnapshot: Hashable, Sendable {
  public let id: SnapshotID
  public let snapshot: Snapshot

  /// Makes a pair.
  public init(id: SnapshotID, snapshot: Snapshot) {
    self.id = id
    self.snapshot = snapshot
  }
}
