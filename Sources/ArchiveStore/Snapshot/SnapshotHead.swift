public import Codecs
public import SystemIO

/// The members by which a snapshot is listed, selected and searched, without its tables. Commands
/// that handle many snapshots read only heads.
///
/// It reflects the object when it was read. Whether the object is still intact is known only after
/// reading it again.
public struct SnapshotHead: Sendable {
  public let id: SnapshotID
  public let sequence: UInt64
  public let time: Timestamp
  public let tree: TreeReference
  public let parent: SnapshotID?
  public let original: Snapshot.Original?
  public let tags: [String]
  public let signature: SnapshotSignature
  let counts: Counts
  /// The other members, in one object for all heads in which they are equal.
  private(set) var common: Common

  /// The members of line 1 that a head includes.
  private static let names: Set<String> = [
    "format", "version", "repository", "source", "sequence", "time", "host", "user", "scope",
    "reason", "policy", "tree", "parent", "tags", "totals", "device", "apps",
    "original",
  ]

  /// Creates the head of a snapshot.
  public init(_ stored: StoredSnapshot) {
    let snapshot = stored.snapshot
    self.init(
      id: stored.id, sequence: snapshot.sequence, time: snapshot.time, tree: snapshot.tree,
      parent: snapshot.parent, original: snapshot.original, tags: snapshot.tags,
      signature: stored.signature, counts: Counts(snapshot.totals), common: Common(of: snapshot))
  }

  /// Creates a head from its members.
  init(
    id: SnapshotID, sequence: UInt64, time: Timestamp, tree: TreeReference, parent: SnapshotID?,
    original: Snapshot.Original?, tags: [String], signature: SnapshotSignature, counts: Counts,
    common: Common
  ) {
    self.id = id
    (self.sequence, self.time, self.tree) = (sequence, time, tree)
    (self.parent, self.original, self.tags) = (parent, original, tags)
    (self.signature, self.counts, self.common) = (signature, counts, common)
  }

  /// Reads the head of a stored snapshot after verifying its bytes against its id. Of the tables
  /// only the JSON syntax is checked.
  init(id: SnapshotID, content: [UInt8], object: String) throws(StoreError) {
    let members = try Self.members(
      StoredSnapshot.line(of: content, object: object), object: object)
    self.init(
      StoredSnapshot(
        id: id, snapshot: members,
        signature: SnapshotSignature(in: content, of: members.repository)))
  }

  /// Reads the members of a head from line 1 of a snapshot.
  static func members(_ line: [UInt8], object: String) throws(StoreError) -> Snapshot {
    try Snapshot(line: line, object: object, keeping: names)
  }

  /// Uses an equal object with the common members.
  mutating func share(_ common: Common) { self.common = common }
}

extension SnapshotHead: Hashable {
  public static func == (left: Self, right: Self) -> Bool {
    left.id == right.id && left.isEqualExceptID(to: right)
  }

  /// Whether the members are equal. The id may differ, for example after a rewrap.
  func isEqualExceptID(to other: SnapshotHead) -> Bool {
    sequence == other.sequence && time == other.time && tree == other.tree
      && parent == other.parent && original == other.original && tags == other.tags
      && signature == other.signature && counts == other.counts && common == other.common
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension SnapshotHead {
  public var source: Digest { common.members.source }
  public var host: String { common.members.host }
  public var user: String { common.members.user }
  public var scope: Scope { common.members.scope }
  public var reason: Reason { common.members.reason }
  public var policy: PolicyRecord { common.members.policy }
  /// The device with its containers.
  public var device: DeviceRecord { common.members.device }
  public var apps: [AppRecord] { common.members.apps }
  /// The totals without those of the classes.
  public var totals: Totals { counts.totals }
  var repository: Digest { common.members.repository }

  /// The snapshot with the members that a head includes.
  var withoutTables: StoredSnapshot {
    var snapshot = common.members
    (snapshot.sequence, snapshot.time, snapshot.tree) = (sequence, time, tree)
    (snapshot.parent, snapshot.original, snapshot.tags) = (parent, original, tags)
    snapshot.totals = totals
    return StoredSnapshot(id: id, snapshot: snapshot, signature: signature)
  }

  /// Whether both heads share the members that do not change from run to run, such as the device
  /// and the apps. False does not mean that they differ.
  public func sharesMembers(with other: SnapshotHead) -> Bool { common === other.common }
}

extension SnapshotHead {
  /// The members that most snapshots of a device have in common: host, user, device, scope, reason,
  /// policy and apps.
  final class Common: Hashable, Sendable {
    /// A snapshot with no other members than these.
    let members: Snapshot

    /// Takes the common members of a snapshot.
    init(of snapshot: Snapshot) {
      var members = Snapshot(
        repository: snapshot.repository, source: snapshot.source, sequence: 0,
        time: Timestamp(seconds: 0), host: snapshot.host, user: snapshot.user,
        device: snapshot.device, scope: snapshot.scope, reason: snapshot.reason,
        policy: snapshot.policy, tree: TreeReference(.missing), program: "")
      members.apps = snapshot.apps
      self.members = members
    }

    static func == (left: Common, right: Common) -> Bool {
      left === right || left.members == right.members
    }

    func hash(into hasher: inout Hasher) { hasher.combine(members) }
  }

  /// The totals of a snapshot without those of the classes.
  struct Counts: Hashable, Sendable {
    var entries: UInt64
    var files: UInt64
    var bytes: UInt64
    var stored: UInt64

    init(entries: UInt64, files: UInt64, bytes: UInt64, stored: UInt64) {
      (self.entries, self.files, self.bytes, self.stored) = (entries, files, bytes, stored)
    }

    init(_ totals: Totals) {
      self.init(
        entries: totals.entries, files: totals.files, bytes: totals.bytes, stored: totals.stored)
    }

    var totals: Totals {
      var totals = Totals()
      (totals.entries, totals.files, totals.bytes, totals.stored) = (entries, files, bytes, stored)
      return totals
    }
  }
}
