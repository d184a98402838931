internal import Codecs
internal import SandboxModel
internal import SystemIO

/// An installed snap.
struct InstalledSnap {
  let info: BundleInfo
  /// Whether it provides programs; snaps that only support others are not listed.
  let hasPrograms: Bool
}

extension Survey {
  /// Returns the snaps mounted below a directory (`/snap`), by name; empty if the directory does
  /// not exist.
  mutating func snaps(in mounts: ByteString) -> [BundleIdentifier: InstalledSnap] {
    guard let directory = outside(mounts) else { return [:] }
    var snaps: [BundleIdentifier: InstalledSnap] = [:]
    for name in names(in: directory, as: mounts) {
      guard let identifier = BundleIdentifier(name),
        let home = inner([name], of: directory, as: mounts)
      else { continue }
      snaps[identifier] = snap(identifier, in: home, as: mounts.appending(name))
    }
    return snaps
  }

  /// Reads `meta/snap.yaml` of the current revision (snapcraft.io, The snap format).
  private mutating func snap(
    _ identifier: BundleIdentifier, in home: borrowing Directory, as path: ByteString
  ) -> InstalledSnap? {
    guard
      let revision = linked(SnapHome.current, in: home, as: path, components: 1)?.first,
      let bytes = text(
        "snap.yaml", [revision, "meta"], of: home, as: path)
    else { return nil }
    let file = path.appending(revision).appending("meta/snap.yaml")
    do {
      let node = try YAML.parse(bytes)
      var info = BundleInfo(identifier: identifier)
      info.displayName = Self.text("title", of: node) ?? Self.text("name", of: node)
      info.version = Self.text("version", of: node)
      info.build = revision
      return InstalledSnap(info: info, hasPrograms: node["apps"]?.mapping?.isEmpty == false)
    } catch {
      warn(.unusableFile, at: file, because: "it is not usable YAML: \(error.reason)")
      return InstalledSnap(info: BundleInfo(identifier: identifier), hasPrograms: false)
    }
  }

  private static func text(_ key: String, of node: YAMLNode) -> ByteString? {
    node[key]?.text.flatMap { $0.isEmpty ? nil : ByteString($0) }
  }
}
