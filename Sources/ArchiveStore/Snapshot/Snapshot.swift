public import Codecs
public import SystemIO

/// The id of a snapshot: the BLAKE2b-256 of its stored bytes.
public typealias SnapshotID = Digest

/// A backup: a root tree with its source, time and policy (docs/repository-format.md, "Snapshot").
public struct Snapshot: Hashable, Sendable {
  /// The repository that contains it.
  public var repository: Digest
  /// The identity of the source: device, host and user. Equal for all runs of one source.
  public var source: Digest
  /// The position among the source's snapshots, starting at 1.
  public var sequence: UInt64
  /// The start time of the run.
  public var time: Timestamp
  public var host: String
  public var user: String
  public var device: DeviceRecord
  public var scope: Scope
  public var reason: Reason
  public var apps: [AppRecord] = []
  public var policy: PolicyRecord
  /// The root directory: its entries are the first components of logical paths.
  public var tree: TreeReference
  /// The snapshot that the run was based on.
  public var parent: SnapshotID?
  public var tags: [String] = []
  /// The name and version of the program.
  public var program: String
  public var totals = Totals()
  /// The data classes by path, in tree order. A class applies from its path on.
  public var classes: [ClassRun] = []
  /// The names of owners and groups at the time of the run.
  public var users: [NameRecord] = []
  public var groups: [NameRecord] = []
  public var excluded: [Exclusion] = []
  public var unreadable: [PathNote] = []
  public var warnings: [PathNote] = []
  /// Mount points that were not entered.
  public var mounts: [ByteString] = []
  public var databases: [DatabaseRecord] = []
  public var durationMilliseconds: UInt64 = 0
  /// The source of a copied snapshot; nil for an original.
  public var original: Original?
  /// Members written by a newer version.
  public var unknown: [JSON.Member] = []

  static let format = "sandboxctl-snapshot"
  static let version: UInt64 = 1

  /// Creates a snapshot with the required members.
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

/// A snapshot with its id.
public struct StoredSnapshot: Hashable, Sendable {
  public let id: SnapshotID
  public let snapshot: Snapshot

  /// Creates a pair.
  public init(id: SnapshotID, snapshot: Snapshot) {
    self.id = id
    self.snapshot = snapshot
  }
}
