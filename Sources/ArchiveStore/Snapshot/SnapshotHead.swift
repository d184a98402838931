package import Codecs
package import SystemIO

/// The members by which a snapshot is listed and selected, without its tables. Commands that handle
/// many snapshots read only heads.
///
/// It reflects the object when it was read. Whether the object is still intact is known only after
/// reading it again.
package struct SnapshotHead: Hashable, Sendable {
  package let id: SnapshotID
  /// The snapshot without tables, containers and class totals.
  private(set) var members: Snapshot

  /// The members of line 1 that a head includes.
  private static let names: Set<String> = [
    "format", "version", "repository", "source", "sequence", "time", "host", "user", "scope",
    "reason", "policy", "tree", "parent", "tags", "totals", "device", "apps",
  ]

  /// Creates the head of a snapshot.
  package init(_ stored: StoredSnapshot) {
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

  /// Reads the head of a stored snapshot after verifying its bytes against its id. Of the tables
  /// only the JSON syntax is checked.
  init(id: SnapshotID, bytes: [UInt8]) throws(StoreError) {
    try self.init(id: id, line: StoredSnapshot.line(of: bytes, id: id))
  }

  /// Reads the head from line 1.
  init(id: SnapshotID, line: [UInt8]) throws(StoreError) {
    let members = try Snapshot(
      line: line, object: "snapshots/\(id.hex).json", keeping: Self.names)
    self.init(StoredSnapshot(id: id, snapshot: members))
  }

  /// The head as line 1 of a snapshot without tables and apps.
  var lineWithoutApps: [UInt8] {
    var members = members
    members.apps = []
    return members.encode().dropLast()
  }

  /// Returns the head with a list of apps: an equal one in shared memory, or the list omitted by
  /// `lineWithoutApps`.
  func with(apps: [AppRecord]) -> SnapshotHead {
    var head = self
    head.members.apps = apps
    return head
  }
}

extension SnapshotHead: DatedSnapshot {
  package var source: Digest { members.source }
  package var sequence: UInt64 { members.sequence }
  package var time: Timestamp { members.time }
  package var host: String { members.host }
  package var user: String { members.user }
  package var scope: Scope { members.scope }
  package var reason: Reason { members.reason }
  package var policy: PolicyRecord { members.policy }
  package var tree: TreeReference { members.tree }
  package var parent: SnapshotID? { members.parent }
  package var tags: [String] { members.tags }
  /// The totals without those of the classes.
  package var totals: Totals { members.totals }
  /// The device without its containers.
  package var device: DeviceRecord { members.device }
  package var apps: [AppRecord] { members.apps }
  var repository: Digest { members.repository }
}
