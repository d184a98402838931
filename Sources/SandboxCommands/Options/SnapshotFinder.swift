internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// Finds the snapshots that a command line names, all in one listing. What a user has to know of how
/// they were chosen is told once.
final class SnapshotFinder {
  private let repository: Repository
  private let console: Console
  private var heads: SnapshotHeads?
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
    let found = try choose(name, holding: apps)
    for (path, reason) in found.snapshot.unusableContainers {
      console.warning(
        "the snapshot \(found.id.hex.prefix(8)) has a container that no device can have: "
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

  /// Chooses by the heads, and reads the snapshot. One that is damaged may be the one that is meant:
  /// it is named, and another is chosen.
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

  /// The heads. A snapshot of which there is none, as it cannot be read, may be the one to choose.
  private func headsForChoice() throws(StoreError) -> SnapshotHeads {
    if let heads { return heads }
    let heads = try repository.hostHeads()
    for error in heads.damaged { console.skipped(error.description) }
    self.heads = heads
    return heads
  }

  /// Says of which device a snapshot is, where it might as well have been another's: no word of the
  /// command line names one.
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
  ) throws(LifecycleError) {
    let isThere = heads.heads.contains { head in
      head.reason != .preRestore && apps.allSatisfy(head.holds)
    }
    if apps.isEmpty || isThere { return }
    let names = apps.map { "'\(ByteString($0))'" }.joined(separator: " and ")
    throw LifecycleError(
      .notFound, "cannot find \(names): no snapshot holds an app that is called so",
      hint: "'sandboxctl snapshots show latest' lists its apps")
  }
}

extension SnapshotHead {
  /// Its short id, and the device that it is of.
  fileprivate func nameOfDevice(withHost: Bool) -> String {
    let host = withHost ? " on '\(ByteString(host))'" : ""
    return "\(id.hex.prefix(8)) of '\(device.root)'\(host)"
  }
}
