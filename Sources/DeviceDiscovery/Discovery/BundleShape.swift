package import SystemIO

/// The structure of a bundle (Bundle Programming Guide, Bundle Structures).
package enum BundleShape: String, Hashable, Sendable {
  /// Files at the top level, as on iOS.
  case flat
  /// Files in `Contents`, as on macOS.
  case contents

  package static let contentsDirectory: ByteString = "Contents"

  /// The directories with extensions.
  var extensionDirectories: [ByteString] {
    switch self {
    case .flat: ["PlugIns", "Extensions"]
    case .contents: ["Contents/PlugIns", "Contents/Extensions"]
    }
  }
}
