internal import ArchiveStore
internal import SystemIO

/// The devices of some snapshots, by the names that people read.
struct SnapshotDevices {
  private let identities: Set<String>

  init(_ snapshots: [StoredSnapshot]) {
    identities = Set(snapshots.map(\.snapshot.device.identity))
  }

  /// Whether the snapshots are of more than one device.
  var areSeveral: Bool { identities.count > 1 }

  /// "user@host:/path/of/the/device", as `snapshots list` shows it.
  func name(_ stored: StoredSnapshot) -> String {
    let snapshot = stored.snapshot
    return ByteString("\(snapshot.user)@\(snapshot.host):").description
      + snapshot.device.root.description
  }

  /// The snapshots device by device, both in the order in which they were given.
  func grouped(_ snapshots: [StoredSnapshot]) -> [[StoredSnapshot]] {
    var order: [String] = []
    var groups: [String: [StoredSnapshot]] = [:]
    for stored in snapshots {
      let identity = stored.snapshot.device.identity
      if groups[identity] == nil { order.append(identity) }
      groups[identity, default: []].append(stored)
    }
    return order.compactMap { groups[$0] }
  }
}
