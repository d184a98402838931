package import Codecs
package import SandboxModel
internal import SystemIO

/// The identity of a source of backups: the machine, or the device's own identity if it has one,
/// the user, the root and the layout.
package enum SourceIdentity {
  /// Returns the digest that names the source in repositories and state files.
  package static func digest(of device: Device) -> Digest {
    let parts: [ByteString] = [
      ByteString(device.identity.description), ByteString("\(Host.userID)"), device.root,
      ByteString(device.layout.rawValue),
    ]
    return Blake2b.hash(Array(parts.map(\.bytes).joined(separator: [0])))
  }
}
