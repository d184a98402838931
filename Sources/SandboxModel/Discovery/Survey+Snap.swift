internal import Codecs
internal import SystemIO

/// A snap that is installed.
struct InstalledSnap {
  let info: BundleInfo
  /// Whether it brings programs: what other snaps are built upon is not listed.
  let hasPrograms: Bool
}

extension Survey {
  /// The snaps that are mounted below a directory (`/snap`), by name; none when there is no such directory.
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

  /// What `meta/snap.yaml` of the revision in use says (snapcraft.io, The snap format).
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
      warn(.unusableFile, file, "it is no usable YAML: \(error.reason)")
      return InstalledSnap(info: BundleInfo(identifier: identifier), hasPrograms: false)
    }
  }

  private static func text(_ key: String, of node: YAMLNode) -> ByteString? {
    node[key]?.text.flatMap { $0.isEmpty ? nil : ByteString($0) }
  }
}
