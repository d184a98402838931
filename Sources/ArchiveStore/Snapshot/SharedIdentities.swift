/// The devices that several machines have backed up under one identity, as machines do that were
/// cloned together with their machine ID.
///
/// Their snapshots have several host names in turn. A host that was renamed has its names one after
/// the other, so its snapshots are of one device. An identity that is not of a machine, such as the
/// UDID of a phone, is never shared: several computers may back up that phone. After snapshots were
/// removed, the answer may be another one, so it is only good for remarks.
public struct SharedIdentities {
  private var identities: Set<String> = []

  /// Finds them among snapshots, the oldest first.
  public init(_ heads: some Sequence<SnapshotHead>) {
    var names: [String: (last: String, earlier: Set<String>)] = [:]
    for head in heads where head.device.isOfMachine {
      let identity = head.device.identity
      guard let known = names[identity] else {
        names[identity] = (head.host, [])
        continue
      }
      if known.last == head.host { continue }
      if known.earlier.contains(head.host) { identities.insert(identity) }
      names[identity] = (head.host, known.earlier.union([known.last]))
    }
  }

  /// Whether several machines have the identity of a snapshot's device.
  public func contains(_ head: SnapshotHead) -> Bool {
    !identities.isEmpty && identities.contains(head.device.identity)
  }
}

extension DeviceRecord {
  /// Whether the identity is that of a machine and a path on it.
  public var isOfMachine: Bool { identity.hasPrefix("place:") }
}
