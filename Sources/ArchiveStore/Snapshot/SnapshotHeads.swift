public import Codecs
public import SystemIO

/// The members by which a snapshot is listed and selected, without its tables. Commands that handle
/// many snapshots read only heads.
///
/// It reflects the object when it was read. Whether the object is still intact is known only after
/// reading it again.
public struct SnapshotHead: Hashable, Sendable {
  public let id: SnapshotID
  /// The snapshot without tables, containers and class totals.
  private(set) var members: Snapshot

  /// The members of line 1 that a head includes.
  private static let names: Set<String> = [
    "format", "version", "repository", "source", "sequence", "time", "host", "user", "scope",
    "reason", "policy", "tree", "parent", "tags", "totals", "device", "apps",
    "original",
  ]

  /// Creates the head of a snapshot.
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
    members.original = stored.snapshot.original
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

extension SnapshotHead: SnapshotListing.Dated {
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
  public var original: Snapshot.Original? { members.original }
  /// The totals without those of the classes.
  public var totals: Totals { members.totals }
  /// The device without its containers.
  public var device: DeviceRecord { members.device }
  public var apps: [AppRecord] { members.apps }
  var repository: Digest { members.repository }
}

extension [SnapshotHead] {
  /// Returns the heads ordered by age, the oldest first (docs/repository-format.md, "Snapshot").
  public func sortedByAge() -> [SnapshotHead] {
    var heads = self
    Repository.sort(&heads)
    return heads
  }
}

/// The heads of a repository's snapshots.
public struct SnapshotHeads: Sendable {
  /// The heads, the oldest first, in the order of `SnapshotListing`.
  public private(set) var heads: [SnapshotHead] = []
  /// The errors of snapshots that were read and are damaged. Snapshots with cached heads are not
  /// checked.
  public private(set) var damaged: [StoreError] = []

  init(_ heads: [SnapshotHead], damaged: [StoreError]) {
    self.heads = heads
    self.damaged = damaged
    Repository.sort(&self.heads)
  }

  /// Returns the newest head that matches `isMeant`, or the one `back` steps before it of the same
  /// device; snapshots of other devices are not earlier states of it. `text` is the user's name for
  /// the snapshot.
  ///
  /// - Throws: `noSnapshot` if there are too few; `damaged` if a matching one may be among those
  ///   that cannot be read.
  public func latest(
    _ back: Int = 0, named text: String, where isMeant: (SnapshotHead) -> Bool = { _ in true }
  ) throws(StoreError) -> SnapshotHead {
    let meant = heads.filter(isMeant)
    guard let newest = meant.last?.device else { throw noSnapshot(text, "there is none") }
    let all = meant.filter { $0.device.identity == newest.identity }
    guard back < all.count else {
      let found = all.count == 1 ? "only 1 snapshot exists" : "only \(all.count) snapshots exist"
      throw noSnapshot(
        text, all.count == meant.count ? found : "\(found) of the device '\(newest.root)'")
    }
    return all[all.count - 1 - back]
  }

  /// Returns the newest matching head whose run began before a time. `text` is the user's name for
  /// the snapshot.
  ///
  /// - Throws: `noSnapshot` if all are later; `damaged` if a matching one may be among those that
  ///   cannot be read.
  public func newest(
    before end: Timestamp, named text: String,
    where isMeant: (SnapshotHead) -> Bool = { _ in true }
  ) throws(StoreError) -> SnapshotHead {
    let all = heads.filter(isMeant)
    if let found = all.last(where: { $0.time < end }) { return found }
    guard let oldest = all.first else { throw noSnapshot(text, "there is none") }
    throw noSnapshot(text, "the oldest is from \(oldest.time.rfc3339)")
  }

  /// Removes a head whose snapshot is damaged or gone.
  mutating func remove(_ id: SnapshotID, because error: StoreError?) {
    heads.removeAll { $0.id == id }
    if let error { damaged.append(error) }
  }

  /// Returns the error for a snapshot that was not found; it may be among those that cannot be
  /// read.
  private func noSnapshot(_ text: String, _ reason: String) -> StoreError {
    if damaged.isEmpty { return .noSnapshot(text, reason) }
    return StoreError(
      .damaged, "find the snapshot", subject: text,
      reason: "\(reason) among the readable snapshots",
      hint: "run 'sandboxctl snapshots' to list the snapshots")
  }
}

extension Repository {
  /// Lists the heads of all snapshots, and reads those that are not in the cache. A damaged
  /// snapshot does not affect the others.
  public func heads(cache: SnapshotHeadCache? = nil) throws(StoreError) -> SnapshotHeads {
    let known = cache?.load() ?? [:]
    let statuses = cache == nil ? [:] : try RepositoryListing.snapshotStatuses(storage)
    var records: [SnapshotID: SnapshotHeadCache.Record] = [:]
    var heads: [SnapshotHead] = []
    var lists: Set<[AppRecord]> = []
    var damaged: [StoreError] = []
    for id in try RepositoryListing.snapshots(storage) {
      let status = statuses[id]
      do throws(StoreError) {
        var head: SnapshotHead
        if let record = known[id], record.status == status {
          head = record.head
        } else {
          head = try self.head(id)
        }
        head = head.with(apps: lists.insert(head.apps).memberAfterInsert)
        heads.append(head)
        if let status { records[id] = SnapshotHeadCache.Record(head: head, status: status) }
      } catch {
        // A snapshot that no longer exists was removed after the listing.
        if error.code != .missing { damaged.append(error) }
      }
    }
    if records != known { cache?.save(records.values) }
    return SnapshotHeads(heads, damaged: damaged)
  }

  private func head(_ id: SnapshotID) throws(StoreError) -> SnapshotHead {
    let path = RepositoryLayout.snapshot(id)
    let head = try SnapshotHead(
      id: id, bytes: try storage.load(path, limit: FormatLimit.snapshot))
    try requireOwn(head.repository, path)
    return head
  }

  /// Reads a snapshot. Returns nil if it is gone, or if it cannot be read, which is reported to
  /// `skip`.
  public func snapshot(
    ifReadable id: SnapshotID, skip: (StoreError) -> Void
  ) -> StoredSnapshot? {
    do {
      return try snapshot(id)
    } catch {
      if error.code != .missing { skip(error) }
      return nil
    }
  }

  /// Reads the snapshot that `choose` selects. If it cannot be read, its head is removed, the error
  /// is reported to `skip`, and another one is selected.
  public func snapshot(
    among heads: inout SnapshotHeads, skip: (StoreError) -> Void = { _ in },
    choose: (SnapshotHeads) throws(StoreError) -> SnapshotHead
  ) throws(StoreError) -> StoredSnapshot {
    while true {
      let head = try choose(heads)
      var failure: StoreError?
      if let stored = snapshot(ifReadable: head.id, skip: { failure = $0 }) { return stored }
      heads.remove(head.id, because: failure)
      if let failure { skip(failure) }
    }
  }

  /// Reads the snapshots whose heads match. The others are not read if their heads are in the
  /// cache.
  public func snapshots(
    cache: SnapshotHeadCache?, where isMeant: (SnapshotHead) -> Bool
  ) throws(StoreError) -> SnapshotListing {
    let heads = try heads(cache: cache)
    var damaged = heads.damaged
    var listing = SnapshotListing(
      heads.heads.filter(isMeant).compactMap { head in
        snapshot(ifReadable: head.id) { damaged.append($0) }
      })
    listing.damaged = damaged
    return listing
  }
}
