public import Codecs
public import SystemIO

extension [SnapshotHead] {
  /// Returns the heads ordered by age, the oldest first (docs/repository-format.md, "Snapshot").
  /// After a clock was set back, a source's last snapshot must not precede its earlier ones, so
  /// each counts as no older than its predecessors in the sequence. A repaired snapshot comes after
  /// its original, which has the same time and sequence.
  public func sortedByAge() -> [SnapshotHead] {
    let ordered = sorted { ($0.sequence, $0.time, $0.id) < ($1.sequence, $1.time, $1.id) }
    var latest: [Digest: Timestamp] = [:]
    var aged = ordered.map { head in
      guard head.sequence > 0 else { return (time: head.time, head: head) }
      let time = Swift.max(head.time, latest[head.source] ?? head.time)
      latest[head.source] = time
      return (time: time, head: head)
    }
    aged.sort {
      ($0.time, $0.head.sequence, $0.head.rank, $0.head.id)
        < ($1.time, $1.head.sequence, $1.head.rank, $1.head.id)
    }
    return aged.map(\.head)
  }
}

extension SnapshotHead {
  /// 1 for a snapshot that was made from another one, 0 for any other.
  fileprivate var rank: Int { original == nil ? 0 : 1 }
}

/// The heads of a repository's snapshots.
public struct SnapshotHeads: Sendable {
  /// The heads, the oldest first, in the order of `SnapshotListing`.
  public private(set) var heads: [SnapshotHead] = []
  /// The errors of snapshots that are damaged, that this user may not read, or that the store
  /// failed to send. Snapshots with cached heads are not checked.
  public private(set) var damaged: [StoreError] = []

  init(_ heads: [SnapshotHead], damaged: [StoreError]) {
    self.heads = heads.sortedByAge()
    self.damaged = damaged
  }

  /// Returns the newest head that matches `isSelected`, or the one `back` steps before it of the
  /// same device; snapshots of other devices are not earlier states of it. `text` is the user's
  /// name for the snapshot.
  ///
  /// - Throws: `noSnapshot` if there are too few; `damaged` if a matching one may be among those
  ///   that cannot be read.
  public func latest(
    _ back: Int = 0, named text: String, where isSelected: (SnapshotHead) -> Bool = { _ in true }
  ) throws(StoreError) -> SnapshotHead {
    let selected = heads.filter(isSelected)
    guard let newest = selected.last?.device else { throw noSnapshot(text, "there is none") }
    let all = selected.filter { $0.device.identity == newest.identity }
    guard back < all.count else {
      let found = all.count == 1 ? "only 1 snapshot exists" : "only \(all.count) snapshots exist"
      throw noSnapshot(
        text, all.count == selected.count ? found : "\(found) of the device '\(newest.root)'")
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
    where isSelected: (SnapshotHead) -> Bool = { _ in true }
  ) throws(StoreError) -> SnapshotHead {
    let all = heads.filter(isSelected)
    if let found = all.last(where: { $0.time < end }) { return found }
    guard let oldest = all.first else { throw noSnapshot(text, "there is none") }
    throw noSnapshot(text, "the oldest is from \(oldest.time.rfc3339)")
  }

  /// Checks that the store did not fail to send a snapshot, which may be the newest one: an older
  /// one must not take its place because of a temporary failure.
  ///
  /// - Throws: the failure.
  public func requireSent() throws(StoreError) {
    try requireSent(hint: "run it again later, or name a snapshot by its id")
  }

  /// The same check for work that needs all snapshots.
  func requireSent(hint: String) throws(StoreError) {
    guard let failure = damaged.first(where: \.isStoreFailure) else { return }
    throw failure.hinting("\(hint); \(Self.neverSentHint)")
  }

  /// The remedy for a permanent failure.
  private static let neverSentHint =
    "if the store never sends this object, its snapshot is lost: 'sandboxctl forget --force ID' with "
    + "its full id removes it"

  /// The same check for work that needs only some snapshots, which exist.
  func requireSent(_ ids: Set<SnapshotID>) throws(StoreError) {
    if ids.isSubset(of: heads.map(\.id)) { return }
    try requireSent(hint: "run it again later")
  }

  /// Removes a head whose snapshot is damaged or gone.
  public mutating func remove(_ id: SnapshotID, because error: StoreError?) {
    heads.removeAll { $0.id == id }
    if let error { damaged.append(error) }
  }

  /// Returns the error for a snapshot that was not found, which may be an unreadable one.
  private func noSnapshot(_ text: String, _ reason: String) -> StoreError {
    guard let first = damaged.first else { return .noSnapshot(text, reason) }
    let hint = "run 'sandboxctl snapshots' to list the snapshots"
    let isRefused = damaged.allSatisfy(\.isRefused)
    return StoreError(
      isRefused ? .system : .damaged, "find the snapshot", subject: text,
      reason: "\(reason) among the readable snapshots", hint: isRefused ? first.hint ?? hint : hint,
      cause: isRefused ? first.cause : nil, needsOlderKey: isRefused && first.needsOlderKey)
  }
}

extension Repository {
  /// Lists the heads of all snapshots, and reads those that are not in the cache. A damaged
  /// snapshot does not affect the others.
  ///
  /// - Throws: `keyRequired` if the repository is encrypted and was opened without an identity;
  ///   `interrupted`; failures of a store that does not answer.
  public func heads(cache: SnapshotHeadCache? = nil) throws(StoreError) -> SnapshotHeads {
    try storage.requireReadable()
    return try knownHeads(cache: cache)
  }

  /// Returns the heads of all snapshots, or without a key those in the cache: of the snapshots that
  /// this host made, or listed with a key.
  public func knownHeads(cache: SnapshotHeadCache?) throws(StoreError) -> SnapshotHeads {
    let statuses = cache == nil ? [:] : try RepositoryListing.snapshotStatuses(storage)
    // Another host shows only regular files, so the listing with sizes has all names.
    let isComplete = cache != nil && storage.isOnAnotherHost
    let ids = isComplete ? statuses.keys.sorted() : try RepositoryListing.snapshots(storage)
    let found = try heads(of: ids, cache: cache, statuses: statuses)
    return SnapshotHeads(found.heads, damaged: found.damaged)
  }

  /// Returns the heads of snapshots in any order, and the errors of damaged ones.
  ///
  /// - Parameter statuses: the sizes and times of the snapshots, which must match those of cached
  ///   heads; nil to use cached heads without checking the snapshots.
  func heads(
    of ids: some Sequence<SnapshotID>, cache: SnapshotHeadCache?,
    statuses: [SnapshotID: ObjectStatus]?
  ) throws(StoreError) -> (heads: [SnapshotHead], damaged: [StoreError]) {
    let known = cache?.load() ?? SnapshotHeadCache.Content()
    var current = SnapshotHeadCache.Content(sharing: known)
    var heads: [SnapshotHead] = []
    var damaged: [StoreError] = []
    var isChanged = false
    var new: [SnapshotID] = []
    for id in ids {
      guard let record = known.records[id], statuses == nil || record.isOf(statuses?[id]) else {
        new.append(id)
        continue
      }
      heads.append(record.head)
      current.records[id] = record
      // The first listing after a snapshot was made shows its time.
      if let status = statuses?[id], status != record.status {
        current.records[id] = SnapshotHeadCache.Record(head: record.head, status: status)
        isChanged = true
      }
    }
    let asks = statuses == nil && cache != nil
    let read = { @Sendable (id: SnapshotID) throws(StoreError) -> (SnapshotHead, ObjectStatus?) in
      let status = asks ? try self.storage.status(self.storage.layout.snapshot(id)) : statuses?[id]
      return (try self.head(id), status)
    }
    try storage.forEach(storage.canRead ? new : [], read) { id, result throws(StoreError) in
      do throws(StoreError) {
        let (found, status) = try result.get()
        let head = current.interned(found)
        isChanged = true
        heads.append(head)
        if let status { current.records[id] = SnapshotHeadCache.Record(head: head, status: status) }
      } catch {
        // A snapshot that no longer exists was removed after the listing.
        if error.code == .missing { return }
        try storage.requireAnswer(after: error)
        damaged.append(error)
      }
    }
    // If none exists, all may be lost: then a check names them.
    let isEmpty = current.records.isEmpty && new.isEmpty
    let isDifferent = isChanged || current.records.count != known.records.count
    if isDifferent, !isEmpty { cache?.save(current) }
    return (heads, damaged)
  }

  /// Adds the head of a snapshot that was just made to a cache. A host that cannot read finds its
  /// earlier snapshots only by this. No request is made: the next listing shows its time.
  ///
  /// - Parameter size: the stored size in bytes.
  func record(_ stored: StoredSnapshot, size: UInt64, in cache: SnapshotHeadCache) {
    let status = ObjectStatus(
      isDirectory: false, size: size, modified: SnapshotHeadCache.Record.unknownTime)
    var content = cache.load()
    let head = content.interned(SnapshotHead(stored))
    content.records[stored.id] = SnapshotHeadCache.Record(head: head, status: status)
    cache.save(content)
  }

  /// Whether the content of objects can be read: false in an encrypted repository without an
  /// identity.
  public var isReadable: Bool { storage.canRead }

  private func head(_ id: SnapshotID) throws(StoreError) -> SnapshotHead {
    let path = storage.layout.snapshot(id)
    let content = try storage.load(id, kind: .snapshot, limit: FormatLimit.snapshot)
    let head = try SnapshotHead(id: id, content: content, object: "\(path)")
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
  ///
  /// - Throws: errors of `choose`, and failures of the store.
  public func snapshot(
    among heads: inout SnapshotHeads, skip: (StoreError) -> Void = { _ in },
    choose: (SnapshotHeads) throws(StoreError) -> SnapshotHead
  ) throws(StoreError) -> StoredSnapshot {
    while true {
      let head = try choose(heads)
      var failure: StoreError?
      if let stored = snapshot(ifReadable: head.id, skip: { failure = $0 }) { return stored }
      heads.remove(head.id, because: failure)
      try heads.requireSent()
      if let failure { skip(failure) }
    }
  }

  /// Reads the snapshots whose heads match. The others are not read if their heads are in the
  /// cache.
  public func snapshots(
    cache: SnapshotHeadCache?, where isSelected: (SnapshotHead) -> Bool
  ) throws(StoreError) -> SnapshotListing {
    let heads = try heads(cache: cache)
    var damaged = heads.damaged
    var listing = SnapshotListing(
      heads.heads.filter(isSelected).compactMap { head in
        snapshot(ifReadable: head.id) { damaged.append($0) }
      })
    listing.damaged = damaged
    return listing
  }
}

/// This host's file of the heads of a repository's snapshots, which saves commands from reading all
/// snapshots (docs/decisions/0020-snapshot-heads.md).
///
/// The cache never determines which snapshots exist: the listing of the repository does. A head is
/// used only while the object's size and modification time are unchanged. If the file is damaged,
/// owned by another user or of another version, the heads are read again, which costs only time.
/// Safe to use from any thread.
public struct SnapshotHeadCache: Sendable {
  /// A head, and the status of the object it was read from.
  struct Record: Hashable {
    let head: SnapshotHead
    let status: ObjectStatus
    /// The offset of the record in the file that it was read from, or nil if it is not in the file.
    var offset: Int?

    /// The time of an object that this host has just made, until it is listed.
    static let unknownTime = Timestamp(seconds: .min)

    /// Whether an object with this status is the one that the head was read from, or was made with.
    func isOf(_ found: ObjectStatus?) -> Bool {
      guard let found else { return false }
      return found == status
        || status.modified == Self.unknownTime && !found.isDirectory && found.size == status.size
    }
  }

  private let file: CacheFile
  private static let limit = 1 << 30

  /// The name of the file.
  public static let fileName: ByteString = "snapshot-heads"

  /// Uses a directory for the heads of one repository, and creates it with its parents if it is
  /// missing. A directory that other users can write to is not used.
  public init(directory: ByteString) {
    file = CacheFile(directory: directory, name: Self.fileName)
  }

  /// Reads the heads. Returns none if there is no intact file.
  func load() -> Content {
    guard let bytes = file.load(limit: Self.limit) else { return Content() }
    return (try? Content(decoding: bytes)) ?? Content()
  }

  /// Replaces the file. If that fails, the heads are read again next time.
  func save(_ content: Content) { file.save(content.encode()) }

  /// Removes all heads, because this host is about to remove the last snapshot. Those that stay
  /// nevertheless are read again.
  package func clear() { file.remove() }
}
