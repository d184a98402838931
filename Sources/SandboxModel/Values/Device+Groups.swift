package import SystemIO

extension Device {
  /// Returns the device with the given members of groups, by identifier. Memberships from
  /// entitlements remain; guesses about the given groups are removed.
  package func stating(members: [ByteString: Set<ByteString>]) -> Device {
    var device = self
    for index in apps.indices { device.apps[index] = apps[index].stating(members) }
    return device
  }
}

extension App {
  fileprivate func stating(_ members: [ByteString: Set<ByteString>]) -> App {
    var app = self
    app.groups.removeAll { $0.basis == .guessed && members[$0.group.bytes] != nil }
    for (group, apps) in members where apps.contains(identifier.bytes) {
      guard let group = BundleIdentifier(group), !app.groups.contains(where: { $0.group == group })
      else { continue }
      app.groups.append(GroupMembership(group: group, basis: .stated))
    }
    app.groups.sort { $0.group < $1.group }
    return app
  }
}
