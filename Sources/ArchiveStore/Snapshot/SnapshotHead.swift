public import Codecs
public import SystemIO

/// The members of a snapshot by which it is listed and chosen, without its tables: what a program
/// needs to know of the many snapshots that it does not read whole.
///
/// It tells what the object said when it was read. Whether the object is still whole, only reading it
/// tells.
public struct SnapshotHead: Hashable, Sendable {
  public let id: SnapshotID
  /// The snapshot without tables, containers and totals by class.
  private(set) var members: Snapshot

  /// The members of line 1 that are read for a head.
  private static let names: Set<String> = [
    "format", "version", "repository", "source", "sequence", "time", "host", "user", "scope",
    "reason", "policy", "tree", "parent", "tags", "totals", "device", "apps",
  ]

  /// Takes the head of a snapshot.
  public init(_ stored: StoredSnapshot) {
    var members = Snapshot(
      repository: stored.snapshot.repository, source: stored.snapshot.source,
      sequence: stored.snapshot.sequence, time: stored.snapshot.time, host: stored.snapshot.host,
      user: stored.snapshot.user, device: stored.snapshot.device, scope: stored.snapshot.scope,
      reason: stored.snapshot.reason, policy: stored.snapshot.policy, tree: stored.snapshot.tree,
      program: "")
    members.device.containers = []
    members.apps = stored.snapshot.apps
    members.parent = stored.snapshot.parent
    members.tags = stored.snapshot.tags
    members.totals = stored.snapshot.totals
    members.totals.classes = []
    (id, self.members) = (stored.id, members)
  }

  /// Reads the head of a stored snapshot, whose bytes are checked against its id first. Of the tables
  /// only the form is looked at.
  init(id: SnapshotID, bytes: [UInt8]) throws(StoreError) {
    try self.init(id: id, line: StoredSnapshot.line(of: bytes, id: id))
  }

  /// Reads the head from line 1.
  init(id: SnapshotID, line: [UInt8]) throws(StoreError) {
    let members = try Snapshot(
      line: line, object: "snapshots/\(id.hex).json", keeping: Self.names)
    self.init(StoredSnapshot(id: id, snapshot: members))
  }

  /// The head as line 1 of a snapshot that has no tables, and no apps.
  var lineWithoutApps: [UInt8] {
    var members = members
    members.apps = []
    return members.encode().dropLast()
  }

  /// The same head with an equal list of apps in shared memory, or the one that it lacks.
  func with(apps: [AppRecord]) -> SnapshotHead {
    var head = self
    head.members.apps = apps
    return head
  }
}

extension SnapshotHead: DatedSnapshot {
  public var source: Digest { members.source }
  public var sequence: UInt64 { members.sequence }
  public var time: Timestamp { members.time }
  public var host: String { members.host }
  public var user: String { members.user }
  public var scope: Scope { members.scope }
  public var reason: Reason { members.reason }
  public var policy: PolicyRecord { members.policy }
  public var tree: TreeReference { members.tree }
  public var parent: SnapshotID? { members.parent }
  public var tags: [String] { members.tags }
  /// The totals without those of the classes.
  public var totals: Totals { members.totals }
  /// The device without its containers.
  public var device: DeviceRecord { members.device }
  public var apps: [AppRecord] { members.apps }
  var repository: Digest { members.repository }
}
