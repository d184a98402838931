internal import SandboxModel
internal import SystemIO

/// Which snaps run, by their control groups: what snapd starts gets a unit of its own of systemd, a scope
/// `snap.<name>.<app>-<uuid>.scope` or a service `snap.<name>.<app>.service` (snapd's
/// `sandbox/cgroup` and `wrappers`), before it is confined. So it is known even of a program that has no file open.
enum SnapRegister {
  private static let prefix = Array("snap.".utf8)
  private static let suffixes = [".scope", ".service"]

  /// The snap that a control group is of, by its path: the innermost that is a snap's.
  ///
  /// Names of snaps and of their instances have neither a dot nor what systemd escapes; a component of
  /// a snap has its name behind an escaped `+`.
  static func snap(of group: ByteString) -> ByteString? {
    for unit in group.components.reversed() {
      guard unit.bytes.starts(with: prefix), suffixes.contains(where: unit.hasEnd) else {
        continue
      }
      let inner = unit.bytes.dropFirst(prefix.count)
      let name = inner.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "\\") }
      // Behind the name there is the app's, and then the kind of the unit.
      let rest = inner.dropFirst(name.count).filter { $0 == UInt8(ascii: ".") }
      if !name.isEmpty, rest.count > 1 { return ByteString(name) }
    }
    return nil
  }

  /// Whether a control group is one of a device's snaps; nothing where a device has none.
  static func groups(of scan: DeviceScan) -> ((ByteString) -> Bool)? {
    if scan.device.layout != .snap { return nil }
    let apps = Set(scan.containers.compactMap(\.container.owner?.bytes))
    return { group in snap(of: group).map(apps.contains) ?? false }
  }
}

extension ByteString {
  fileprivate func hasEnd(_ end: String) -> Bool {
    bytes.suffix(end.utf8.count).elementsEqual(end.utf8)
  }
}
