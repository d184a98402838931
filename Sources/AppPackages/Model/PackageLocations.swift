internal import DeviceDiscovery
internal import SystemIO

/// The locations of the files that describe a package.
enum PackageLocations {
  static let info: ByteString = "Info.plist"
  static let archived: ByteString = "archived-expanded-entitlements.xcent"
  static let profile: ByteString = "embedded.mobileprovision"
  static let programs: ByteString = "MacOS"
  static let migration: [ByteString] = ["Resources", "container-migration.plist"]
  private static let extensionDirectories: Set<ByteString> = ["PlugIns", "Extensions"]
  private static let named: Set<ByteString> = [info, archived, profile]

  /// A bundle in the package, and a path relative to it.
  struct Location {
    /// The bundle's directory: `Example.app`, or `Example.app/PlugIns/Share.appex`.
    let bundle: ByteString
    /// The bundle's structure.
    let shape: BundleShape
    /// The path below the bundle, or below its `Contents`.
    let inner: [ByteString]
  }

  /// Splits a path of a package.
  static func place(of path: ByteString) -> Location {
    let parts = path.components
    var inner = parts.dropFirst()
    var shape = strip(&inner)
    var length = 1
    if inner.count > 2, extensionDirectories.contains(inner[inner.startIndex]),
      endsInAppex(inner[inner.startIndex + 1])
    {
      inner = inner.dropFirst(2)
      length = parts.count - inner.count
      shape = strip(&inner)
    }
    let bundle = ByteString(joining: parts.prefix(length))
    return Location(bundle: bundle, shape: shape, inner: Array(inner))
  }

  /// Whether a file describes the package.
  static func describesPackage(_ path: ByteString) -> Bool {
    let place = place(of: path)
    if place.shape == .contents, place.inner == migration { return true }
    let inner =
      place.shape == .contents && place.inner.first == programs
      ? place.inner.dropFirst() : place.inner[...]
    return inner.count == 1 && inner.first.map(named.contains) == true
  }

  private static func strip(_ parts: inout ArraySlice<ByteString>) -> BundleShape {
    guard parts.count > 1, parts.first == BundleShape.contentsDirectory else { return .flat }
    parts = parts.dropFirst()
    return .contents
  }

  private static func endsInAppex(_ name: ByteString) -> Bool {
    name.count > 6 && name.bytes.suffix(6).elementsEqual(".appex".utf8)
  }
}
