public import Codecs
internal import SystemIO

/// The snapshots of a repository.
public struct SnapshotListing: Sendable {
  /// The snapshots, the oldest first (docs/repository-format.md, "Snapshot"): ordered by start
  /// time, but within one source by sequence, regardless of its clock.
  public var snapshots: [StoredSnapshot] = []
  /// The errors of snapshots that could not be read.
  public var damaged: [StoreError] = []

  /// Creates a listing of snapshots.
  public init(_ snapshots: [StoredSnapshot] = []) { self.snapshots = snapshots }
}

extension Repository {
  /// Reads a snapshot, and refuses one of another repository.
  public func snapshot(_ id: SnapshotID) throws(StoreError) -> StoredSnapshot {
    try snapshotWithContent(id).stored
  }

  /// Reads a snapshot with the bytes of its content, and refuses one of another repository.
  func snapshotWithContent(
    _ id: SnapshotID
  ) throws(StoreError) -> (stored: StoredSnapshot, content: [UInt8]) {
    let path = storage.layout.snapshot(id)
    let content = try storage.load(id, kind: .snapshot, limit: FormatLimit.snapshot)
    let stored = try StoredSnapshot(id: id, content: content, object: "\(path)")
    try requireOwn(stored.snapshot.repository, path)
    return (stored, content)
  }

  /// Checks that the snapshot at a path belongs to this repository.
  func requireOwn(_ repository: Digest, _ path: ObjectPath) throws(StoreError) {
    guard repository == id else {
      throw StoreError.damaged("\(path)", "it belongs to another repository")
        .hinting(DamageRemedy.foreignSnapshot)
    }
  }

  /// Finds the snapshot that a text refers to: `latest`, `latest~2` for the second before it (among
  /// those that match `isSelected`), or at least four hexadecimal digits of an id.
  ///
  /// - Throws: `noSnapshot` if none matches; `ambiguousSnapshot` if several ids match; `damaged` if
  ///   the matching one may be among those that cannot be read.
  public func snapshot(
    matching text: String, where isSelected: (SnapshotHead) -> Bool = { _ in true }
  ) throws(StoreError) -> StoredSnapshot {
    if let back = SnapshotListing.stepsBack(text) {
      var heads = try heads()
      try heads.requireSent()
      return try snapshot(among: &heads) { heads throws(StoreError) in
        try heads.latest(back, named: text, where: isSelected)
      }
    }
    return try snapshot(snapshotID(matching: text))
  }

  /// Returns the id that begins with at least four hexadecimal digits. The snapshot is not read.
  ///
  /// - Throws: `noSnapshot` if none matches; `ambiguousSnapshot` if several do.
  public func snapshotID(matching text: String) throws(StoreError) -> SnapshotID {
    let digits = text.lowercased()
    guard digits.utf8.count >= 4, digits.utf8.allSatisfy(Self.isHexadecimal) else {
      throw .noSnapshot(
        text, "it is neither \"latest\" nor at least four hexadecimal digits of an id")
    }
    let ids = try RepositoryListing.snapshots(storage).filter { $0.hex.hasPrefix(digits) }
    guard let id = ids.first else { throw .noSnapshot(text, "no snapshot id begins with it") }
    guard ids.count == 1 else {
      let names = ids.map { $0.hex.prefix(12) }.joined(separator: ", ")
      throw .noSnapshot(
        text, "several snapshot ids begin with it: \(names)", isAmbiguous: true)
    }
    return id
  }

  private static func isHexadecimal(_ digit: UInt8) -> Bool {
    (0x30...0x39).contains(digit) || (0x61...0x66).contains(digit)
  }
}

extension SnapshotListing {
  /// Returns 0 for `latest`, 2 for `latest~2`, or nil for any other text.
  public static func stepsBack(_ text: String) -> Int? {
    if text == "latest" { return 0 }
    guard text.hasPrefix("latest~"), let back = Int(text.dropFirst(7)), back >= 0 else {
      return nil
    }
    return back
  }
}

extension Repository {
  /// The earlier runs of a source in the repository.
  public struct SourceHistory: Sendable {
    /// The last snapshot of the requested scope; without its tables on a host that cannot read, and
    /// if the listing shows that it is still the object whose head is in the cache.
    public let last: StoredSnapshot?
    /// The greatest sequence among the source's snapshots; 0 without snapshots.
    public let sequence: UInt64
    /// The identities of the devices of all snapshots whose heads could be read.
    public var devices: Set<String> = []
  }

  /// Returns the earlier runs of a source. Snapshots without a cached head are read one after
  /// another, and only one is kept in memory. Unreadable snapshots are skipped. The last one is an
  /// accepted snapshot, because a run that begins from it is signed.
  ///
  /// Cached heads are used without checking their snapshots: the last one is read completely, and
  /// of the others only the sequence is used. So the cost hardly depends on the number of
  /// snapshots.
  ///
  /// In a listing with sizes and times, a cached head matches the current object, which is not read
  /// again.
  ///
  /// - Parameters:
  ///   - ids: the snapshots to search, or nil to list them.
  ///   - statuses: their sizes and times, if they were listed with them.
  public func history(
    of source: Digest, scope: Scope, cache: SnapshotHeadCache? = nil,
    in ids: Set<SnapshotID>? = nil, statuses: [SnapshotID: ObjectStatus]? = nil
  ) throws(StoreError) -> SourceHistory {
    let listed: Set<SnapshotID>
    if let ids { listed = ids } else { listed = Set(try RepositoryListing.snapshots(storage)) }
    let found = try heads(of: listed, cache: cache, statuses: statuses)
    let devices = Set(found.heads.map(\.device.identity))
    let heads = found.heads.filter { $0.source == source }.sortedByAge()
    var sequence = heads.map(\.sequence).max() ?? 0
    guard storage.canRead else {
      // Earlier snapshots of the source may be unknown to this host. The seconds exceed any counted
      // number, so the next snapshot comes after them.
      if found.heads.count < listed.count {
        var statuses = statuses
        if statuses == nil { statuses = try RepositoryListing.snapshotStatuses(storage) }
        let times = (statuses ?? [:]).values.map(\.modified.seconds)
        let latest = max(Host.now().seconds, times.max() ?? 0)
        sequence = max(sequence, UInt64(max(0, latest)))
      }
      let last = heads.last { $0.scope == scope }
      return SourceHistory(last: last?.withoutTables, sequence: sequence, devices: devices)
    }
    for head in heads.reversed() where head.scope == scope && refusal(of: head) == nil {
      let known = statuses != nil && cache != nil ? head.withoutTables : nil
      if let stored = known ?? readable(head.id) {
        return SourceHistory(last: stored, sequence: sequence, devices: devices)
      }
    }
    return SourceHistory(last: nil, sequence: sequence, devices: devices)
  }

  private func readable(_ id: SnapshotID) -> StoredSnapshot? { try? snapshot(id) }
}
