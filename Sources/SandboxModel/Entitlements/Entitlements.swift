internal import SystemIO

/// What a bundle's entitlements say of its groups.
///
/// Looked at in this order: the program's code signature, its section of entitlements, the archived
/// entitlements, the provisioning profile. The first that names groups holds. When some could be
/// read and none names groups, the bundle is known to have none; when none could be read, nothing
/// is known.
struct Entitlements {
  /// The most bytes of a property list of entitlements, or of a provisioning profile.
  static let limit = 1 << 20

  private(set) var groups: [(group: BundleIdentifier, source: EntitlementSource)] = []
  /// Whether any entitlements could be read.
  private(set) var isKnown = false

  /// Adds a property list of entitlements, unless groups are known from an earlier one.
  mutating func add(_ list: PropertyList, from source: EntitlementSource) {
    isKnown = true
    guard groups.isEmpty, let named = list["com.apple.security.application-groups"] else { return }
    let values = named.arrayValue ?? [named]
    groups = values.compactMap { value in
      value.stringValue.flatMap { BundleIdentifier($0) }.map { ($0, source) }
    }
  }

  /// The property list in a provisioning profile, which is a signed message around it.
  static func propertyList(inProfile bytes: [UInt8]) -> [UInt8]? {
    guard let start = find("<?xml", in: bytes, from: 0),
      let end = find("</plist>", in: bytes, from: start)
    else { return nil }
    return Array(bytes[start..<(end + 8)])
  }

  private static func find(_ text: StaticString, in bytes: [UInt8], from start: Int) -> Int? {
    text.withUTF8Buffer { wanted in
      guard let first = wanted.first else { return nil }
      var at = start
      while let found = bytes[at...].firstIndex(of: first) {
        if bytes[found...].starts(with: wanted) { return found }
        at = found + 1
      }
      return nil
    }
  }
}
