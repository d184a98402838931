internal import Codecs
internal import SystemIO

/// The common parts of the sample's app bundles: property lists, executable, icon, and the
/// entitlements that name their groups.
struct BundlePlan {
  let name: String
  let identifier: String
  let version: String
  let build: String
  /// The package type: `APPL`, or `XPC!` for an extension.
  var packageType = "APPL"
  /// The groups in the app's entitlements.
  var groups: [String] = []
  /// The additional members of its Info.plist.
  var info: [PropertyList.Member] = []
  /// The day of installation, relative to the sample's day 0.
  var day = -120

  /// Returns the bundle's entries below a directory such as `Notebook.app`.
  func entries(in directory: String) throws(SampleError) -> [SampleEntry] {
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

  /// Returns the entries of an app's bundle, including those that an extension lacks.
  func appEntries() throws(SampleError) -> [SampleEntry] {
    let directory = "\(name).app"
    return try entries(in: directory) + [
      .picture(ByteString("\(directory)/AppIcon60x60@2x.png"), width: 40, height: 40, day: day),
      try .binaryPlist(
        ByteString("\(directory)/en.lproj/InfoPlist.strings"),
        .members(["CFBundleDisplayName": .string(name)]), day: day),
      try .binaryPlist("iTunesMetadata.plist", purchase, day: day),
    ]
  }

  private var infoPlist: PropertyList {
    let common: [PropertyList.Member] = [
      .init("CFBundleDisplayName", .string(name)),
      .init("CFBundleExecutable", .string(name)),
      .init("CFBundleIdentifier", .string(identifier)),
      .init("CFBundleName", .string(name)),
      .init("CFBundlePackageType", .string(packageType)),
      .init("CFBundleShortVersionString", .string(version)),
      .init("CFBundleVersion", .string(build)),
      .init("MinimumOSVersion", .string("16.0")),
    ]
    return .dictionary(common + info)
  }

  private var entitlements: PropertyList {
    let team = "SMPL5DEV1C"
    var members: [PropertyList.Member] = [
      .init("application-identifier", .string("\(team).\(identifier)")),
      .init("com.apple.developer.team-identifier", .string(team)),
    ]
    if !groups.isEmpty {
      let names = groups.map { PropertyList.string($0) }
      members.append(.init("com.apple.security.application-groups", .array(names)))
    }
    return .dictionary(members)
  }

  private var purchase: PropertyList {
    .members([
      "bundleShortVersionString": .string(version),
      "itemName": .string(name),
      "softwareVersionBundleId": .string(identifier),
    ])
  }

  /// A Mach-O header for arm64 (magic, processor, file type 2) without load commands: a program
  /// that does nothing and has an empty signature.
  private static let programHead: [UInt8] =
    [0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0]
    + [UInt8](repeating: 0, count: 16)
}
