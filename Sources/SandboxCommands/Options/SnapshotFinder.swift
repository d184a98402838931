internal import ArchiveStore
internal import Codecs
internal import Restore
internal import SystemIO

/// Finds the snapshots that a command line names, with a single listing. Each warning about the
/// choice is printed once.
final class SnapshotFinder {
  private let repository: Repository
  private let console: Console
  private var heads: SnapshotHeads?
  /// The identities of the devices for which the warning about other devices was printed.
  private var toldDevices: Set<String> = []

  init(_ repository: Repository, _ console: Console) {
    (self.repository, self.console) = (repository, console)
  }

  /// Returns a snapshot. Warns about unreadable snapshots that may be the one meant, and about
  /// matching snapshots of other devices.
  ///
  /// `latest` and times name snapshots of a whole device, or with `apps` those that contain the
  /// apps. Snapshots that a restore made are named only by their ids.
  func find(_ name: SnapshotName, holding apps: [String] = []) throws -> StoredSnapshot {
    let found = try choose(name, holding: apps)
    for (path, reason) in found.snapshot.unusableContainers {
      console.warning(
        "the snapshot \(found.id.hex.prefix(8)) has an invalid container: "
          + "'\(path)': \(reason)")
    }
    return found
  }

  private func choose(_ name: SnapshotName, holding apps: [String]) throws -> StoredSnapshot {
    let isMeant = { (snapshot: SnapshotHead) in
      snapshot.reason != .preRestore
        && (apps.isEmpty ? snapshot.scope == .device : apps.allSatisfy(snapshot.holds))
    }
    switch name {
    case .id(let text): return try repository.snapshot(matching: text)
    case .latest(let back, let text):
      return try choose(named: text, holding: apps, among: isMeant) { heads throws(StoreError) in
        try heads.latest(back, named: text, where: isMeant)
      }
    case .before(let end, let text):
      let isEarlier = { (snapshot: SnapshotHead) in isMeant(snapshot) && snapshot.time < end }
      return try choose(named: text, holding: apps, among: isEarlier) { heads throws(StoreError) in
        try heads.newest(before: end, named: text, where: isMeant)
      }
    }
  }

  /// Chooses by the heads and reads the snapshot. A damaged snapshot may be the one meant: it is
  /// reported, and another is chosen.
  private func choose(
    named text: String, holding apps: [String], among isMeant: (SnapshotHead) -> Bool,
    _ choose: (SnapshotHeads) throws(StoreError) -> SnapshotHead
  ) throws -> StoredSnapshot {
    var heads = try headsForChoice()
    try requireOne(holding: apps, in: heads)
    let found = try repository.snapshot(
      among: &heads, skip: { console.skipped($0.description) }, choose: choose)
    self.heads = heads
    tell(of: SnapshotHead(found), named: text, among: heads.heads.filter(isMeant))
    return found
  }

  /// Returns the heads. Reports snapshots without one, since they may be the one meant.
  private func headsForChoice() throws(StoreError) -> SnapshotHeads {
    if let heads { return heads }
    let heads = try repository.hostHeads()
    for error in heads.damaged { console.skipped(error.description) }
    self.heads = heads
    return heads
  }

  /// Warns about the device of a snapshot if other devices have a matching one, since no argument
  /// names a device.
  private func tell(
    of found: SnapshotHead, named text: String, among all: [SnapshotHead]
  ) {
    let identity = found.device.identity
    var seen: Set<String> = [identity]
    let others = all.reversed().filter { seen.insert($0.device.identity).inserted }
    guard !others.isEmpty, toldDevices.insert(identity).inserted else { return }
    let hasHosts = others.contains { $0.host != found.host }
    let names = others.prefix(3).map { $0.nameOfDevice(withHost: hasHosts) }
    let more = others.count > 3 ? " and \(Sizes.count(others.count - 3)) more" : ""
    console.warning(
      "'\(text)' is \(found.nameOfDevice(withHost: hasHosts)); other devices have "
        + names.joined(separator: ", ") + more)
    console.hint("give a snapshot's id to choose the device: 'sandboxctl snapshots' lists them")
  }

  private func requireOne(
    holding apps: [String], in heads: SnapshotHeads
  ) throws(OperationError) {
    let isThere = heads.heads.contains { head in
      head.reason != .preRestore && apps.allSatisfy(head.holds)
    }
    if apps.isEmpty || isThere { return }
    let names = apps.map { "'\(ByteString($0))'" }.joined(separator: " and ")
    throw OperationError(
      .notFound, code: .noApp, "cannot find \(names): no snapshot has an app of that name",
      hint: "'sandboxctl snapshots show latest' lists its apps")
  }
}

extension SnapshotHead {
  /// Returns the short id and the device.
  fileprivate func nameOfDevice(withHost: Bool) -> String {
    let host = withHost ? " on '\(ByteString(host))'" : ""
    return "\(id.hex.prefix(8)) of '\(device.root)'\(host)"
  }
}

extension [SnapshotID] {
  /// The short ids, to append to an object: `  (83023a3e, fb294b20 and 3 more)`.
  var shortNames: String {
    let names = prefix(3).map { String($0.hex.prefix(8)) }.joined(separator: ", ")
    return "  (\(names)\(count > 3 ? " and \(Sizes.count(count - 3)) more" : ""))"
  }

  /// The ids as JSON.
  var json: JSON { .array(map { .string($0.hex) }) }
}
