internal import SystemIO

/// How a bundle is laid out (Bundle Programming Guide, Bundle Structures).
public enum BundleShape: String, Hashable, Sendable {
  /// All at its top, as on iOS.
  case flat
  /// In `Contents`, as on macOS.
  case contents

  static let contentsDirectory: ByteString = "Contents"

  /// The directories of its extensions.
  var extensionDirectories: [ByteString] {
    switch self {
    case .flat: ["PlugIns", "Extensions"]
    case .contents: ["Contents/PlugIns", "Contents/Extensions"]
    }
  }
}
