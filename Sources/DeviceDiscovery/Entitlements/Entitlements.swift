internal import Codecs
package import SandboxModel
internal import SystemIO

/// The groups in a bundle's entitlements.
///
/// Sources, in order of precedence: the executable's code signature, its entitlements section, the
/// archived entitlements, the provisioning profile. The first one that names groups is used. If at
/// least one could be read and none names groups, the bundle is known to have none; if none could
/// be read, its groups are unknown.
package struct Entitlements {
  /// The maximum size of a property list with entitlements or of a provisioning profile, in bytes.
  package static let limit = 1 << 20

  package private(set) var groups: [(group: BundleIdentifier, source: App.EntitlementSource)] = []
  /// Whether any entitlements could be read.
  package private(set) var isKnown = false

  /// Creates entitlements to which the sources are added.
  package init() {}

  /// Adds a property list with entitlements, unless an earlier one named groups.
  mutating func add(_ list: PropertyList, from source: App.EntitlementSource) {
    isKnown = true
    guard groups.isEmpty, let named = list["com.apple.security.application-groups"] else { return }
    let values = named.arrayValue ?? [named]
    groups = values.compactMap { value in
      value.stringValue.flatMap { BundleIdentifier(ByteString($0)) }.map { ($0, source) }
    }
  }

  /// Returns the property list in a provisioning profile, which is a signed message that contains
  /// it.
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
