internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The devices of snapshots, with readable names.
struct SnapshotDevices {
  private let identities: Set<String>

  init(_ snapshots: [StoredSnapshot]) {
    identities = Set(snapshots.map(\.snapshot.device.identity))
  }

  /// Whether the snapshots are of more than one device.
  var areSeveral: Bool { identities.count > 1 }

  /// Returns the device's name as `snapshots list` shows it: "user@host:/path/of/the/device".
  func name(_ stored: StoredSnapshot) -> String {
    let snapshot = stored.snapshot
    return ByteString("\(snapshot.user)@\(snapshot.host):").description
      + snapshot.device.root.description
  }

  /// Returns the snapshots grouped by device, in their order.
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

extension [StoredSnapshot] {
  /// The identities of their devices, each once, as JSON.
  var deviceIdentities: JSON {
    .array(SnapshotDevices(self).grouped(self).map { .string($0[0].snapshot.device.identity) })
  }
}
