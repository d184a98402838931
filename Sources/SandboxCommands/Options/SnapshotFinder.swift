internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// Finds the snapshots that a command line names, all in one listing. What a user has to know of how
/// they were chosen is told once.
final class SnapshotFinder {
  private let repository: Repository
  private let console: Console
  private var listing: SnapshotListing?
  /// The devices, by identity, of which it was told that they are not the only one.
  private var toldDevices: Set<String> = []

  init(_ repository: Repository, _ console: Console) {
    (self.repository, self.console) = (repository, console)
  }

  /// Finds a snapshot, and warns of those that cannot be read and may be the one that is meant, and
  /// where other devices have one that may be.
  ///
  /// The newest is one of the whole device, or with apps one that holds them; those that a restore
  /// made of what it replaced are named by their ids.
  func find(_ name: SnapshotName, holding apps: [String] = []) throws -> StoredSnapshot {
    let isMeant = { (snapshot: Snapshot) in
      snapshot.reason != .preRestore
        && (apps.isEmpty ? snapshot.scope == .device : apps.allSatisfy(snapshot.holds))
    }
    switch name {
    case .id(let text): return try repository.snapshot(matching: text)
    case .latest(let back, let text):
      let listing = try listForChoice()
      try requireOne(holding: apps, in: listing, where: isMeant)
      let found = try listing.latest(back, named: text, where: isMeant)
      tell(of: found, named: text, among: listing.snapshots.filter { isMeant($0.snapshot) })
      return found
    case .before(let end, let text):
      let listing = try listForChoice()
      try requireOne(holding: apps, in: listing, where: isMeant)
      let found = try listing.newest(before: end, named: text, where: isMeant)
      tell(
        of: found, named: text,
        among: listing.snapshots.filter { isMeant($0.snapshot) && $0.snapshot.time < end })
      return found
    }
  }

  /// The listing, of which one that cannot be read may be the one to choose.
  private func listForChoice() throws(StoreError) -> SnapshotListing {
    if let listing { return listing }
    let listing = try repository.snapshots()
    for error in listing.damaged { console.passedOver(error.description) }
    self.listing = listing
    return listing
  }

  /// Says of which device a snapshot is, where it might as well have been another's: no word of the
  /// command line names one.
  private func tell(
    of found: StoredSnapshot, named text: String, among all: [StoredSnapshot]
  ) {
    let identity = found.snapshot.device.identity
    var seen: Set<String> = [identity]
    let others = all.reversed().filter { seen.insert($0.snapshot.device.identity).inserted }
    guard !others.isEmpty, toldDevices.insert(identity).inserted else { return }
    let hasHosts = others.contains { $0.snapshot.host != found.snapshot.host }
    let names = others.prefix(3).map { $0.nameOfDevice(withHost: hasHosts) }
    let more = others.count > 3 ? " and \(Sizes.count(others.count - 3)) more" : ""
    console.warning(
      "'\(text)' is \(found.nameOfDevice(withHost: hasHosts)); other devices have "
        + names.joined(separator: ", ") + more)
    console.hint("give a snapshot's id to choose the device: 'sandboxctl snapshots' lists them")
  }

  private func requireOne(
    holding apps: [String], in listing: SnapshotListing, where isMeant: (Snapshot) -> Bool
  ) throws(LifecycleError) {
    if apps.isEmpty || listing.snapshots.contains(where: { isMeant($0.snapshot) }) { return }
    let names = apps.map { "'\(ByteString($0))'" }.joined(separator: " and ")
    throw LifecycleError(
      .notFound, "cannot find \(names): no snapshot holds an app that is called so",
      hint: "'sandboxctl snapshots show latest' lists its apps")
  }
}

extension StoredSnapshot {
  /// Its short id, and the device that it is of.
  fileprivate func nameOfDevice(withHost: Bool) -> String {
    let host = withHost ? " on '\(ByteString(snapshot.host))'" : ""
    return "\(id.hex.prefix(8)) of '\(snapshot.device.root)'\(host)"
  }
}
