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
  /// Lists and reads all snapshots. A damaged snapshot does not affect the others.
  public func snapshots() throws(StoreError) -> SnapshotListing {
    var listing = SnapshotListing()
    for id in try RepositoryListing.snapshots(storage) {
      do {
        listing.snapshots.append(try snapshot(id))
      } catch {
        // A snapshot that no longer exists was removed after the listing.
        if error.code != .missing { listing.damaged.append(error) }
      }
    }
    Self.sort(&listing.snapshots)
    return listing
  }

  /// Sorts snapshots, the oldest first. After a clock was set back, a source's last snapshot must
  /// not precede its earlier ones, so each counts as no older than its predecessors in the
  /// sequence. A repaired snapshot comes after its original, which has the same time and sequence.
  static func sort(_ snapshots: inout [some SnapshotListing.Dated]) {
    snapshots.sort { ($0.sequence, $0.time, $0.id) < ($1.sequence, $1.time, $1.id) }
    var latest: [Digest: Timestamp] = [:]
    var aged = snapshots.map { snapshot in
      guard snapshot.sequence > 0 else { return (time: snapshot.time, snapshot: snapshot) }
      let time = Swift.max(snapshot.time, latest[snapshot.source] ?? snapshot.time)
      latest[snapshot.source] = time
      return (time: time, snapshot: snapshot)
    }
    aged.sort {
      ($0.time, $0.snapshot.sequence, $0.snapshot.rank, $0.snapshot.id)
        < ($1.time, $1.snapshot.sequence, $1.snapshot.rank, $1.snapshot.id)
    }
    snapshots = aged.map(\.snapshot)
  }

  /// Reads one snapshot, and refuses one of another repository.
  public func snapshot(_ id: SnapshotID) throws(StoreError) -> StoredSnapshot {
    let path = RepositoryLayout.snapshot(id)
    let stored = try StoredSnapshot(
      id: id, bytes: try storage.load(path, limit: FormatLimit.snapshot))
    try requireOwn(stored.snapshot.repository, path)
    return stored
  }

  /// Checks that the snapshot at a path belongs to this repository.
  func requireOwn(_ repository: Digest, _ path: ObjectPath) throws(StoreError) {
    guard repository == id else { throw .damaged("\(path)", "it belongs to another repository") }
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
    /// The last snapshot of the requested scope.
    public let last: StoredSnapshot?
    /// The greatest sequence among the source's snapshots; 0 without snapshots.
    public let sequence: UInt64
  }
}

extension SnapshotListing {
  /// The members that determine the order of snapshots.
  protocol Dated {
    var id: SnapshotID { get }
    var source: Digest { get }
    var sequence: UInt64 { get }
    var time: Timestamp { get }
    var original: Snapshot.Original? { get }
  }
}

extension SnapshotListing.Dated {
  /// 1 for a snapshot that was made from another one, 0 for any other.
  fileprivate var rank: Int { original == nil ? 0 : 1 }
}

extension StoredSnapshot: SnapshotListing.Dated {
  var source: Digest { snapshot.source }
  var sequence: UInt64 { snapshot.sequence }
  var time: Timestamp { snapshot.time }
  var original: Snapshot.Original? { snapshot.original }
}

extension Repository {
  /// Returns the earlier runs of a source. Snapshots without a cached head are read one after
  /// another, and only one is kept in memory. Unreadable snapshots are skipped.
  ///
  /// Cached heads are used without a look at their snapshots: the last one is read completely, and
  /// of the others only the sequence is used. So the cost hardly grows with the snapshots.
  ///
  /// - Parameter ids: the snapshots to search, or nil to list them.
  public func history(
    of source: Digest, scope: Scope, cache: SnapshotHeadCache? = nil, in ids: Set<SnapshotID>? = nil
  ) throws(StoreError) -> SourceHistory {
    let listed: Set<SnapshotID>
    if let ids { listed = ids } else { listed = Set(try RepositoryListing.snapshots(storage)) }
    let found = try heads(of: listed, cache: cache, statuses: nil)
    let heads = found.heads.filter { $0.source == source }.sortedByAge()
    let sequence = heads.map(\.sequence).max() ?? 0
    for head in heads.reversed() where head.scope == scope {
      if let stored = try? snapshot(head.id) {
        return SourceHistory(last: stored, sequence: sequence)
      }
    }
    return SourceHistory(last: nil, sequence: sequence)
  }
}
