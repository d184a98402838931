package import Codecs
package import SandboxModel
package import SystemIO

/// The identity of a source of backups: the machine, or the device's own identity if it has one,
/// the user, the root and the layout.
package enum SourceIdentity {
  /// Returns the digest that names the source in repositories and state files.
  package static func digest(of device: Device) -> Digest {
    digest(
      of: device.identity.description, root: device.root, layout: device.layout.rawValue)
  }

  /// Returns the digest of a source that has no device, such as an archive that is imported.
  package static func digest(of identity: String, root: ByteString, layout: String) -> Digest {
    let parts: [ByteString] = [
      ByteString(identity), ByteString("\(Host.userID)"), root, ByteString(layout),
    ]
    return Blake2b.hash(Array(parts.map(\.bytes).joined(separator: [0])))
  }
}
