import Codecs
import PolicyEngine
import SystemIO

@testable import PolicyEngine
@testable import SandboxModel

extension Target {
  /// What lies in devices and beside them.
  static let modelTargets = [
    Target(name: "property-list", run: propertyList),
    Target(name: "key-file", run: keyFile),
    Target(name: "mach-o", run: machO),
    Target(name: "json", run: json),
    Target(name: "policy", run: policy),
  ]

  /// A property list of either kind, as an Info.plist and the metadata of containers are.
  @Sendable private static func propertyList(_ bytes: [UInt8]) {
    let limits = PropertyList.Limits(bytes: 1 << 20, depth: 64, objects: 100_000)
    guard let list = try? PropertyList(reading: bytes, limits: limits) else { return }
    var entitlements = Entitlements()
    entitlements.add(list, from: .signature)
    _ = list["MCMMetadataIdentifier"]?.stringValue
    _ = list["CFBundleIdentifier"]?.stringValue.flatMap { BundleIdentifier($0) }
  }

  /// Flatpak's metadata and what lies beside it.
  @Sendable private static func keyFile(_ bytes: [UInt8]) {
    _ = KeyFile(bytes).value("Name", in: "Desktop Entry")
    _ = Metainfo.newestRelease(in: bytes)
    _ = Entitlements.propertyList(inProfile: bytes)
  }

  /// A program, in which entitlements are looked for.
  @Sendable private static func machO(_ bytes: [UInt8]) {
    guard let file = try? Descriptor.inMemory(bytes) else { return }
    for found in (try? MachO.entitlements(in: file)) ?? [] {
      require(found.propertyList.count <= Entitlements.limit, "more entitlements than there may be")
    }
  }

  /// JSON: what is accepted is the same when it is written and read again.
  @Sendable private static func json(_ bytes: [UInt8]) {
    guard let json = try? JSON(parsing: bytes) else { return }
    require((try? JSON(parsing: json.compactBytes)) == json, "JSON was not written as it was read")
  }

  /// The text of a policy.
  @Sendable private static func policy(_ bytes: [UInt8]) {
    let source = PolicySource(name: "fuzz.yaml", bytes: bytes, origin: .commandLine)
    let (document, issues) = PolicyDocument.read(source)
    require(document != nil || !issues.isEmpty, "a policy was refused without a reason")
  }
}
