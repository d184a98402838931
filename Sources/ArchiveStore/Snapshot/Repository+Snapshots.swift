public import Codecs
public import SystemIO

/// All snapshots of a repository.
public struct SnapshotListing: Sendable {
  /// The oldest first (docs/repository-format.md, "Snapshot"): by the time when the run began, but
  /// those of one source by their sequence, whatever its clock showed.
  public var snapshots: [StoredSnapshot] = []
  /// What could not be read, one error for each.
  public var damaged: [StoreError] = []
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
      throw .damaged(path.description, "it belongs to another repository")
    }
    return stored
  }

  /// Finds the snapshot that a text names: `latest`, `latest~2` for the second before it (both of
  /// those that `isMeant`), or at least four hexadecimal digits of an id.
  ///
  /// `tell` gets what cannot be read where the others are looked through: the one that is meant may
  /// be among it.
  ///
  /// - Throws: `noSnapshot` where none is meant or several are.
  public func snapshot(
    matching text: String, where isMeant: (Snapshot) -> Bool = { _ in true },
    unreadable tell: (StoreError) -> Void = { _ in }
  ) throws(StoreError) -> StoredSnapshot {
    if let back = Self.stepsBack(text) {
      let listing = try snapshots()
      for error in listing.damaged { tell(error) }
      let all = listing.snapshots.filter { isMeant($0.snapshot) }
      guard back < all.count else {
        let found =
          all.isEmpty
          ? "there is none" : all.count == 1 ? "there is only 1" : "there are only \(all.count)"
        throw noSnapshot(text, found)
      }
      return all[all.count - 1 - back]
    }
    let digits = text.lowercased()
    guard digits.utf8.count >= 4, digits.utf8.allSatisfy(Self.isHexadecimal) else {
      throw noSnapshot(text, "it is neither \"latest\" nor at least four digits of an id")
    }
    let ids = try RepositoryListing.snapshots(storage).filter { $0.hex.hasPrefix(digits) }
    guard let id = ids.first else { throw noSnapshot(text, "no snapshot's id begins so") }
    guard ids.count == 1 else {
      let names = ids.map { $0.hex.prefix(12) }.joined(separator: ", ")
      throw noSnapshot(text, "several snapshots' ids begin so: \(names)")
    }
    return try snapshot(id)
  }

  /// Finds the newest snapshot that was begun before a moment, which a user calls `text`.
  ///
  /// - Throws: `noSnapshot` where all are later.
  public func newestSnapshot(
    before end: Timestamp, named text: String, where isMeant: (Snapshot) -> Bool = { _ in true },
    unreadable tell: (StoreError) -> Void = { _ in }
  ) throws(StoreError) -> StoredSnapshot {
    let listing = try snapshots()
    for error in listing.damaged { tell(error) }
    let all = listing.snapshots.filter { isMeant($0.snapshot) }
    if let found = all.last(where: { $0.snapshot.time < end }) { return found }
    guard let oldest = all.first else { throw noSnapshot(text, "there is none") }
    throw noSnapshot(text, "the oldest is of \(oldest.snapshot.time.rfc3339)")
  }

  private func noSnapshot(_ text: String, _ reason: String) -> StoreError {
    StoreError(
      .noSnapshot, "find the snapshot", text, reason,
      hint: "'sandboxctl snapshots' lists them")
  }

  private static func isHexadecimal(_ digit: UInt8) -> Bool {
    (0x30...0x39).contains(digit) || (0x61...0x66).contains(digit)
  }

  /// 0 for `latest`, 2 for `latest~2`; nothing for any other text.
  private static func stepsBack(_ text: String) -> Int? {
    if text == "latest" { return 0 }
    guard text.hasPrefix("latest~"), let back = Int(text.dropFirst(7)), back >= 0 else {
      return nil
    }
    return back
  }
}
