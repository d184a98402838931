internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The devices of snapshots, with readable names.
struct SnapshotDevices {
  private let identities: Set<String>

  init(_ snapshots: [SnapshotHead]) {
    identities = Set(snapshots.lazy.map(\.device.identity))
  }

  /// Whether the snapshots are of more than one device.
  var areSeveral: Bool { identities.count > 1 }

  /// Returns the device's name as `snapshots list` shows it: "user@host:/path/of/the/device".
  func name(_ head: SnapshotHead) -> String { head.deviceText }

  /// Returns the snapshots grouped by device, in their order.
  func grouped(_ snapshots: [SnapshotHead]) -> [[SnapshotHead]] {
    var order: [String] = []
    var groups: [String: [SnapshotHead]] = [:]
    if !areSeveral { return snapshots.isEmpty ? [] : [snapshots] }
    for head in snapshots {
      let identity = head.device.identity
      if groups[identity] == nil { order.append(identity) }
      groups[identity, default: []].append(head)
    }
    return order.compactMap { groups[$0] }
  }
}

extension [SnapshotHead] {
  /// The identities of their devices, each once, as JSON.
  var deviceIdentities: JSON {
    .array(SnapshotDevices(self).grouped(self).map { .string($0[0].device.identity) })
  }
}
