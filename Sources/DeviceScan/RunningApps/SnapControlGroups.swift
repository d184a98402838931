internal import SandboxModel
internal import SystemIO

/// The running snaps, determined from control groups. Before it confines a program, snapd starts it
/// in a systemd unit of its own: a scope `snap.<name>.<app>-<uuid>.scope` or a service
/// `snap.<name>.<app>.service` (snapd's `sandbox/cgroup` and `wrappers`). This detects programs
/// without open files as well.
enum SnapControlGroups {
  private static let prefix = Array("snap.".utf8)
  private static let suffixes = [".scope", ".service"]

  /// Returns the snap of a control group, from the innermost component of its path that belongs to
  /// a snap, or nil.
  ///
  /// Names of snaps and of their instances contain neither a dot nor a character that systemd
  /// escapes. The unit of a snap component has the component's name after an escaped `+`.
  static func snap(of group: ByteString) -> ByteString? {
    for unit in group.components.reversed() {
      guard unit.bytes.starts(with: prefix), suffixes.contains(where: unit.hasEnd) else {
        continue
      }
      let inner = unit.bytes.dropFirst(prefix.count)
      let name = inner.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "\\") }
      // The name is followed by the app's name and the type of the unit.
      let rest = inner.dropFirst(name.count).filter { $0 == UInt8(ascii: ".") }
      if !name.isEmpty, rest.count > 1 { return ByteString(name) }
    }
    return nil
  }

  /// Returns a function that tests whether a control group belongs to a snap of the device, or nil
  /// if the device has no snaps.
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
