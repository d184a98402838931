package import ArchiveStore

/// The snapshots of one host: those with its name, and those that it made of the same devices under
/// a name that it had before.
///
/// The machine ID in the identity of a device tells that both names are of one machine. Machines
/// that were cloned may share it, so a name that was used after the present one was taken up may be
/// that of another host: its snapshots are not this host's.
package struct HostOwnership {
  private let host: String
  /// The former names, by the identity of the device.
  private var former: [String: Set<String>] = [:]
  /// The other names under which snapshots of this host's devices are made: by another host with
  /// the same machine ID, or by this one, whose name changes.
  package private(set) var sharing: Set<String> = []

  /// Finds the names of a host.
  ///
  /// - Parameters:
  ///   - heads: the snapshots that this host accepts, the oldest first.
  ///   - machine: the machine ID of the host; nil if it has none, and thus no former names.
  package init(of host: String, machine: String?, in heads: some Sequence<SnapshotHead>) {
    self.host = host
    guard let machine, !machine.isEmpty else { return }
    let prefix = "place:\(machine):"
    var names: [String: Set<String>] = [:]
    for head in heads where head.device.identity.hasPrefix(prefix) {
      let device = head.device.identity
      if head.host == host {
        // Names from before the first snapshot with the present one.
        if former[device] == nil { former[device] = names[device] ?? [] }
      } else if former[device] != nil {
        sharing.insert(head.host)
      } else {
        names[device, default: []].insert(head.host)
      }
    }
    for device in former.keys { former[device]?.subtract(sharing) }
  }

  /// Whether a snapshot is this host's.
  package func contains(_ head: SnapshotHead) -> Bool {
    head.host == host || former[head.device.identity]?.contains(head.host) == true
  }
}
