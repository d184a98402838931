public import SystemIO

/// The snapshots of one host in a repository of several hosts.
public struct HostSnapshots: Sendable, Hashable {
  /// The name of the host, as recorded in its snapshots.
  public let host: String
  /// The number of its snapshots.
  public private(set) var count: Int
  /// The start of the newest, by the clock of that host.
  public private(set) var newest: Timestamp

  /// Groups snapshots by host. Returns the hosts in the order of their names.
  public static func grouped(
    _ snapshots: some Sequence<(host: String, time: Timestamp)>
  ) -> [HostSnapshots] {
    var hosts: [String: HostSnapshots] = [:]
    for (host, time) in snapshots {
      var found = hosts[host] ?? HostSnapshots(host: host, count: 0, newest: time)
      found.count += 1
      found.newest = max(found.newest, time)
      hosts[host] = found
    }
    return hosts.values.sorted { $0.host < $1.host }
  }
}
