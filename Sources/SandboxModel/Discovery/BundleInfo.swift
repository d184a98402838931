internal import SystemIO

/// What an Info.plist says of a bundle.
struct BundleInfo {
  var identifier: BundleIdentifier?
  var displayName: ByteString?
  var version: ByteString?
  var build: ByteString?
  /// The name of the program in the bundle.
  var executable: ByteString?
}
