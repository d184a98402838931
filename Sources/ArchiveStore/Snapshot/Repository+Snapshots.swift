public import Codecs
internal import SystemIO

/// All snapshots of a repository.
public struct SnapshotListing: Sendable {
  /// The oldest first (docs/repository-format.md, "Snapshot"): by the time when the run began, but
  /// those of one source by their sequence, whatever its clock showed.
  public var snapshots: [StoredSnapshot] = []
  /// What could not be read, one error for each.
  public var damaged: [StoreError] = []

  /// Makes a listing of some that could be read.
  public init(_ snapshots: [StoredSnapshot] = []) { self.snapshots = snapshots }
}

extension Repository {
  /// Lists and reads all snapshots. One that is damaged does not stop the others.
  public func snapshots() throws(StoreError) -> SnapshotListing {
    var listing = SnapshotListing()
    for id in try RepositoryListing.snapshots(storage) {
      do {
        listing.snapshots.append(try snapshot(id))
      } catch {
        // One that is gone was removed since the listing.
        if error.code != .missing { listing.damaged.append(error) }
      }
    }
    Self.sort(&listing.snapshots)
    return listing
  }

  /// Puts the oldest first. A clock that was set back must not hide a source's last snapshot behind
  /// its earlier ones: each counts as begun no earlier than those before it in the sequence.
  static func sort(_ snapshots: inout [some DatedSnapshot]) {
    snapshots.sort { ($0.sequence, $0.time, $0.id) < ($1.sequence, $1.time, $1.id) }
    var latest: [Digest: Timestamp] = [:]
    var aged = snapshots.map { snapshot in
      guard snapshot.sequence > 0 else { return (time: snapshot.time, snapshot: snapshot) }
      let time = Swift.max(snapshot.time, latest[snapshot.source] ?? snapshot.time)
      latest[snapshot.source] = time
      return (time: time, snapshot: snapshot)
    }
    aged.sort {
      ($0.time, $0.snapshot.sequence, $0.snapshot.id)
        < ($1.time, $1.snapshot.sequence, $1.snapshot.id)
    }
    snapshots = aged.map(\.snapshot)
  }

  /// Reads one snapshot, and refuses that of another repository.
  public func snapshot(_ id: SnapshotID) throws(StoreError) -> StoredSnapshot {
    let path = RepositoryLayout.snapshot(id)
    let stored = try StoredSnapshot(
      id: id, bytes: try storage.load(path, limit: FormatLimit.snapshot))
    guard stored.snapshot.repository == self.id else {
      throw .foreign(path)
    }
    return stored
  }

  /// Finds the snapshot that a text names: `latest`, `latest~2` for the second before it (both of
  /// those that `isMeant`), or at least four hexadecimal digits of an id.
  ///
  /// - Throws: `noSnapshot` where none is meant or several are; `damaged` where none is that can be
  ///   read.
  public func snapshot(
    matching text: String, where isMeant: (SnapshotHead) -> Bool = { _ in true }
  ) throws(StoreError) -> StoredSnapshot {
    if let back = SnapshotListing.stepsBack(text) {
      var heads = try heads()
      return try snapshot(among: &heads) { heads throws(StoreError) in
        try heads.latest(back, named: text, where: isMeant)
      }
    }
    let digits = text.lowercased()
    guard digits.utf8.count >= 4, digits.utf8.allSatisfy(Self.isHexadecimal) else {
      throw .noSnapshot(text, "it is neither \"latest\" nor at least four digits of an id")
    }
    let ids = try RepositoryListing.snapshots(storage).filter { $0.hex.hasPrefix(digits) }
    guard let id = ids.first else { throw .noSnapshot(text, "no snapshot's id begins so") }
    guard ids.count == 1 else {
      let names = ids.map { $0.hex.prefix(12) }.joined(separator: ", ")
      throw .noSnapshot(text, "several snapshots' ids begin so: \(names)")
    }
    return try snapshot(id)
  }

  private static func isHexadecimal(_ digit: UInt8) -> Bool {
    (0x30...0x39).contains(digit) || (0x61...0x66).contains(digit)
  }
}

extension StoreError {
  /// A snapshot that lies in a repository that it is not of.
  static func foreign(_ path: ObjectPath) -> StoreError {
    .damaged(path.description, "it belongs to another repository")
  }

  static func noSnapshot(_ text: String, _ reason: String) -> StoreError {
    StoreError(
      .noSnapshot, "find the snapshot", text, reason,
      hint: "'sandboxctl snapshots' lists them")
  }
}

extension SnapshotListing {
  /// 0 for `latest`, 2 for `latest~2`; nothing for any other text.
  public static func stepsBack(_ text: String) -> Int? {
    if text == "latest" { return 0 }
    guard text.hasPrefix("latest~"), let back = Int(text.dropFirst(7)), back >= 0 else {
      return nil
    }
    return back
  }
}
