internal import SandboxModel
internal import SystemIO

/// What the sample's app bundles have in common: the property lists that say what the app is, its
/// program, its icon, and the entitlements from which its groups are known.
struct BundlePlan {
  let name: String
  let identifier: String
  let version: String
  let build: String
  /// What kind of bundle it is: `APPL`, or `XPC!` for an extension.
  var packageType = "APPL"
  /// The groups that the app's entitlements name.
  var groups: [String] = []
  /// What its Info.plist says beyond the names and numbers.
  var info: [PropertyList.Member] = []
  /// The day it was installed, before the day the sample is of.
  var day = -120

  /// The bundle's entries below `<folder>`, `Notebook.app` say.
  func entries(in directory: String) throws(SampleError) -> [ManifestEntry] {
    [
      try .binaryPlist(ByteString("\(directory)/Info.plist"), infoPlist, day: day),
      .text(ByteString("\(directory)/PkgInfo"), "\(packageType)????", day: day),
      try .xmlPlist(
        ByteString("\(directory)/archived-expanded-entitlements.xcent"), entitlements, day: day),
      try .xmlPlist(
        ByteString("\(directory)/_CodeSignature/CodeResources"), .members(["files": .members([:])]),
        day: day),
      .noise(
        ByteString("\(directory)/\(name)"), head: Self.programHead, bytes: 24_000, day: day,
        permissions: 0o755),
    ]
  }

  /// What an app's bundle has beside what an extension's has.
  func appEntries() throws(SampleError) -> [ManifestEntry] {
    let directory = "\(name).app"
    return try entries(in: directory) + [
      .picture(ByteString("\(directory)/AppIcon60x60@2x.png"), width: 40, height: 40, day: day),
      try .binaryPlist(
        ByteString("\(directory)/en.lproj/InfoPlist.strings"),
        .members(["CFBundleDisplayName": .string(ByteString(name))]), day: day),
      try .binaryPlist("iTunesMetadata.plist", purchase, day: day),
    ]
  }

  private var infoPlist: PropertyList {
    let common: [PropertyList.Member] = [
      .init("CFBundleDisplayName", .string(ByteString(name))),
      .init("CFBundleExecutable", .string(ByteString(name))),
      .init("CFBundleIdentifier", .string(ByteString(identifier))),
      .init("CFBundleName", .string(ByteString(name))),
      .init("CFBundlePackageType", .string(ByteString(packageType))),
      .init("CFBundleShortVersionString", .string(ByteString(version))),
      .init("CFBundleVersion", .string(ByteString(build))),
      .init("MinimumOSVersion", .string("16.0")),
    ]
    return .dictionary(common + info)
  }

  private var entitlements: PropertyList {
    let team = "SMPL5DEV1C"
    var members: [PropertyList.Member] = [
      .init("application-identifier", .string(ByteString("\(team).\(identifier)"))),
      .init("com.apple.developer.team-identifier", .string(ByteString(team))),
    ]
    if !groups.isEmpty {
      let names = groups.map { PropertyList.string(ByteString($0)) }
      members.append(.init("com.apple.security.application-groups", .array(names)))
    }
    return .dictionary(members)
  }

  private var purchase: PropertyList {
    .members([
      "bundleShortVersionString": .string(ByteString(version)),
      "itemName": .string(ByteString(name)),
      "softwareVersionBundleId": .string(ByteString(identifier)),
    ])
  }

  /// A Mach-O header for arm64 (magic, processor, file type 2) with no load commands: a program that
  /// does nothing, and whose signature holds nothing.
  private static let programHead: [UInt8] =
    [0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0]
    + [UInt8](repeating: 0, count: 16)
}
