internal import Codecs
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// An extended attribute that excludes an entry, and everything below it, from backups.
package struct BackupMark: Sendable, Hashable {
  package let marker: Marker
  /// The name of the attribute on Linux.
  package let attribute: ByteString
  /// The value that is written.
  let value: [UInt8]

  /// Returns the mark that a policy's platform uses in a kind of container, or nil if it has none.
  ///
  /// Policies list the marks of a platform by age, so the last one is the mark of the device's
  /// version. One that the platform itself observes is preferred to one that only this program
  /// observes.
  ///
  /// - Parameter destination: The backups that the mark excludes entries from.
  package static func usual(
    of policy: CompiledPolicy, in kind: ContainerKind, for destination: Destination
  ) -> BackupMark? {
    let candidates = policy.markers.filter { marker in
      marker.kinds.contains(kind) && marker.isInherited
        && marker.settings.backup == setting(destination)
    }.compactMap { BackupMark($0) }
    return candidates.last { $0.isOfPlatform } ?? candidates.last
  }

  /// The setting of a mark that excludes from one destination only.
  private static func setting(_ destination: Destination) -> Settings.Backup {
    switch (destination.isCloud, destination.isUnencrypted) {
    case (false, false): Settings.Backup(.never)
    case (true, false): Settings.Backup(cloud: .never)
    case (false, true): Settings.Backup(unencrypted: .never)
    case (true, true): Settings.Backup(cloud: .never, unencrypted: .never)
    }
  }

  /// Whether the platform's own backup observes it, too.
  package var isOfPlatform: Bool { marker.platform == .same }

  init?(_ marker: Marker) {
    guard case .attribute(let name, let value) = marker.sign, let attribute = marker.linuxAttribute
    else { return nil }
    self.marker = marker
    self.attribute = ByteString(attribute)
    self.value = value.map { Array($0.utf8) } ?? Self.value(ofAttribute: name)
  }

  /// Returns the value that the platform writes if any value is accepted: a property list for an
  /// attribute of Spotlight's metadata (tmutil(8), addexclusion), otherwise one byte 01 (Technical
  /// Q&A QA1719, section iOS 5.0.1).
  private static func value(ofAttribute name: String) -> [UInt8] {
    guard name.hasPrefix("com.apple.metadata:"),
      let list = try? PropertyList.string("com.apple.backupd").binary()
    else { return [1] }
    return list
  }
}
