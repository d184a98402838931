internal import SystemIO

/// The data of a bundle's Info.plist.
struct BundleInfo {
  var identifier: BundleIdentifier?
  var displayName: ByteString?
  var version: ByteString?
  var build: ByteString?
  /// The name of the bundle's executable.
  var executable: ByteString?
}
